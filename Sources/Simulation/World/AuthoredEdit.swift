import Engine
import Replication

/// What people write: few documents, so that they meet, with values that tell which write they came from. All of it follows
/// from a seed and from the version that is there.
struct AuthoredEdit: DocumentEdit {
  let id: Value
  let seed: UInt64
  /// Now and then a value that is too large to travel inside its run.
  let largestByteCount: Int?

  var collection: Text { "c" }

  private static let hints = WriteHints([
    ([.key("list")], .list(key: nil)), ([.key("set")], .set), ([.key("count")], .counter),
  ])

  func outcome(on present: PresentDocument) throws -> DocumentOutcome {
    var random = SimulationRandom(seed: seed)
    if let body = present.body, let state = present.state {
      if random.chance(12) { return .deleted }
      if random.chance(10), let conflict = random.pick(state.inbox()) { return .decided(body, closing: [conflict]) }
      return .body(edited(body, &random), hints: AuthoredEdit.hints)
    }
    if (present.state?.generation ?? 0) > 0, !random.chance(40) { return .deleted }
    return .body(edited(ValueMap(), &random), hints: AuthoredEdit.hints)
  }

  private func edited(_ old: ValueMap, _ random: inout SimulationRandom) -> ValueMap {
    var body = old
    for _ in 0..<random.between(1...2) {
      switch random.below(11) {
      case 0, 1: body["a"] = value(&random)
      case 2:
        var inner = if case .map(let inner)? = body["map"] { inner } else { ValueMap() }
        inner[random.chance(50) ? "x" : "y"] = value(&random)
        body["map"] = .map(inner)
      case 3: body["list"] = .array(changed(old["list"], &random))
      case 4: body["set"] = .array(changed(old["set"], &random))
      case 5:
        let count: Int64 = if case .int(let count)? = old["count"] { count } else { 0 }
        body["count"] = .int(count &+ 1)
      case 6: body[random.chance(50) ? "a" : "map"] = nil
      case 7: body["list"] = .array(changed(body["list"], &random))
      case 8: body["count"] = .int(Int64(random.below(100)))
      default: body[random.pick(["a", "map", "list", "count"]) ?? "a"] = ofAnyKind(&random)
      }
    }
    if let largestByteCount, random.chance(25) {
      let word = UInt8(truncatingIfNeeded: random.next())
      body["large"] = .bytes([UInt8](repeating: word, count: random.between(17_000...largestByteCount)))
    }
    return body
  }

  private func changed(_ old: Value?, _ random: inout SimulationRandom) -> [Value] {
    var items = if case .array(let items)? = old { items } else { [Value]() }
    if !items.isEmpty, random.chance(40) {
      items.remove(at: random.below(items.count))
    } else {
      items.insert(value(&random), at: random.below(items.count + 1))
    }
    return items
  }

  /// What stood there as another kind is hidden by it, or hides it where two do not know of one another.
  private func ofAnyKind(_ random: inout SimulationRandom) -> Value {
    var map = ValueMap()
    map["x"] = value(&random)
    return random.pick([.map(map), .array([value(&random)]), value(&random)]) ?? .null
  }

  private func value(_ random: inout SimulationRandom) -> Value { .int(Int64(truncatingIfNeeded: random.next() >> 8)) }
}
