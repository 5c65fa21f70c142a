import Replication

/// What people write: few documents, so that they meet, with values that tell which write they came from.
struct DocumentAuthor {
  let world: World
  private var random: SimulationRandom

  static let collection: Text = "c"
  /// Values from here on are given once in a run; below are those of counters.
  static let firstUniqueValue: Int64 = 1_000_000

  private static let hints = WriteHints([
    ([.key("list")], .list(key: nil)), ([.key("set")], .set), ([.key("count")], .counter),
  ])

  init(world: World, seed: UInt64) { (self.world, random) = (world, SimulationRandom(seed: seed)) }

  /// Ids in random order.
  mutating func documents(_ count: Int) -> [Value] {
    var ids = (0..<world.plan.documents).map { Value.int(Int64($0)) }
    ids.shuffle(using: &random)
    return Array(ids.prefix(count))
  }

  /// Nil where nothing is to be said.
  mutating func write(_ id: Value, _ state: DocumentState?, dot: Dot) -> DocumentWrite? {
    if let state, state.isAlive {
      if random.chance(12) {
        world.count(.deleted)
        return try? LocalWrite.delete(DocumentAuthor.collection, id, state: state)
      }
      if random.chance(10), let conflict = random.pick(state.inbox()) {
        world.count(.kept)
        return LocalWrite.keep(DocumentAuthor.collection, id, state: state, closing: conflict)
      }
    } else if (state?.generation ?? 0) > 0 {
      guard random.chance(40) else { return nil }
      world.count(.recreated)
    }
    return try? LocalWrite.write(
      DocumentAuthor.collection, id, state: state, body: body(state?.shown() ?? ValueMap()),
      hints: DocumentAuthor.hints, erase: true, dot: dot, random: &random)
  }

  private mutating func body(_ old: ValueMap) -> ValueMap {
    var body = old
    for _ in 0..<random.between(1...2) {
      switch random.below(7) {
      case 0, 1: body["a"] = world.uniqueValue()
      case 2:
        var inner = if case .map(let inner)? = body["map"] { inner } else { ValueMap() }
        inner[random.chance(50) ? "x" : "y"] = world.uniqueValue()
        body["map"] = .map(inner)
      case 3: body["list"] = .array(changed(old["list"]))
      case 4: body["set"] = .array(changed(old["set"]))
      case 5:
        let count: Int64 = if case .int(let count)? = old["count"] { count } else { 0 }
        body["count"] = .int(count &+ 1)
      default: body[random.chance(50) ? "a" : "map"] = nil
      }
    }
    return body
  }

  private mutating func changed(_ old: Value?) -> [Value] {
    var items = if case .array(let items)? = old { items } else { [Value]() }
    if !items.isEmpty, random.chance(40) {
      items.remove(at: random.below(items.count))
    } else {
      items.insert(world.uniqueValue(), at: random.below(items.count + 1))
    }
    return items
  }
}
