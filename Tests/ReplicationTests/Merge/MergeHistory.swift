import Replication
import Simulation

/// Random histories of a few replicas: writes, deliveries, falling prefixes; clocks that contradict causality.
struct MergeHistory {
  enum Mode { case writer, raw }

  struct Peer {
    let replica: ReplicaID
    var store = ReferenceStore()
    var sequence: UInt64 = 0
    var context = VersionVector()
    /// Versions that were read earlier, to write from.
    var read: [DocumentKey: DocumentState] = [:]
  }

  static let hints = WriteHints([
    ([.key("l")], .list(key: nil)), ([.key("l"), .anyElement, .key("n")], .list(key: nil)),
    ([.key("k")], .list(key: "id")), ([.key("s")], .set), ([.key("c")], .counter),
    ([.key("m"), .key("c")], .counter),
  ])

  let mode: Mode
  var random: MergeRandom
  var peers: [Peer]
  var changes: [ReferenceChange] = []

  init(seed: UInt64, steps: Int) {
    random = MergeRandom(seed: seed)
    mode = seed.isMultiple(of: 2) ? .raw : .writer
    peers = (0..<2 + random.below(3)).map { Peer(replica: ReplicaID(high: 65 + UInt64($0), low: 0)) }
    let ids: [Value] = random.chance(80) ? [.string("d")] : [.string("d"), .int(5)]
    let clock = random.pick([1, 4, 1000])
    if mode == .writer, random.chance(50) { beginTogether() }
    for _ in 0..<steps { step(ids, clock: clock) }
  }

  /// One document that all hold before they part, so that they write to the same lists and counters.
  private mutating func beginTogether() {
    var body = ValueMap()
    body["l"] = .array([random.element(), random.element()])
    body["m"] = .map(ValueMap(ascending: [.init(key: "x", value: .int(1))]))
    body["c"] = .int(3)
    body["s"] = .array([.int(1)])
    let write = try? LocalWrite.write(
      "c", .string("d"), state: nil, body: body, hints: Self.hints, erase: false, dot: nextDot(0), random: &random)
    commit([write].compactMap { $0 }, by: 0, clock: 1)
    for index in peers.indices.dropFirst() { pull(into: index, from: 0, limit: 1) }
  }

  /// The peer learns all that any peer holds.
  mutating func gather(into index: Int) {
    for _ in peers {
      for other in peers.indices { pull(into: index, from: other, limit: .max) }
    }
  }

  private mutating func step(_ ids: [Value], clock: Int) {
    let index = random.below(peers.count)
    if random.chance(60) {
      let writes = ids.compactMap { id in random.chance(80) ? write(id, by: index) : nil }
      if !writes.isEmpty { commit(writes, by: index, clock: random.below(clock)) }
      return
    }
    let other = random.below(peers.count)
    if random.chance(97) {
      pull(into: index, from: other, limit: random.pick([1, 2, 99]))
    } else if other != index, let last = peers[index].store.accepted[peers[other].replica], last > 0 {
      peers[index].store.cut(peers[other].replica, to: last - 1)
    }
  }

  /// Causal delivery of what the other holds, in its order of arrival.
  mutating func pull(into index: Int, from other: Int, limit: Int) {
    var left = limit
    for change in peers[other].store.log where left > 0 {
      let accepted = peers[index].store.accepted
      guard change.dot.sequence == accepted[change.dot.replica, default: 0] + 1,
        change.context.context.entries.allSatisfy({ accepted[$0.key, default: 0] >= $0.value.sequence })
      else { continue }
      peers[index].store.accept(change)
      left -= 1
    }
  }

  mutating func commit(_ writes: [DocumentWrite], by index: Int, clock: Int) {
    for (replica, sequence) in peers[index].store.accepted where replica != peers[index].replica && sequence > 0 {
      peers[index].context.join(VersionVector([replica: ChainPosition(sequence: sequence, tip: .zero)]))
    }
    peers[index].sequence += 1
    let context = WriteContext(
      dot: Dot(replica: peers[index].replica, sequence: peers[index].sequence),
      timestamp: HybridTimestamp(rawValue: UInt64(clock)), context: peers[index].context)
    let change = ReferenceChange(context, writes: writes)
    peers[index].store.accept(change)
    changes.append(change)
  }

  func nextDot(_ index: Int) -> Dot { Dot(replica: peers[index].replica, sequence: peers[index].sequence + 1) }

  private mutating func write(_ id: Value, by index: Int) -> DocumentWrite? {
    let key = DocumentKey(collection: "c", id: id)
    let state = peers[index].store.documents[key] ?? DocumentState()
    if !state.isAlive, state.generation > 0, random.chance(50) { return nil }
    if random.chance(8), state.isAlive { return try? LocalWrite.delete("c", id, state: state) }
    if mode == .raw {
      let operations = rawOperations(state, dot: nextDot(index))
      if state.isAlive, operations.isEmpty { return nil }
      return DocumentWrite(
        collection: "c", id: id, kind: state.isAlive ? .edit : .create,
        generation: state.isAlive ? state.generation : state.generation + 1, operations: operations)
    }
    let conflicts = state.inbox()
    if state.isAlive, !conflicts.isEmpty, random.chance(10) {
      return LocalWrite.keep("c", id, state: state, closing: random.pick(conflicts))
    }
    let old = peers[index].read[key].flatMap { $0.generation == state.generation ? $0 : nil }
    let read = old != nil && random.chance(40) ? old : nil
    if random.chance(30) { peers[index].read[key] = state }
    let body = random.mutated((read ?? state).shown() ?? ValueMap())
    return try? LocalWrite.write(
      "c", id, state: state, read: read, body: body, hints: Self.hints, erase: random.chance(70),
      dot: nextDot(index), random: &random)
  }

  /// Operations that no honest writer would make, but that are well formed.
  private mutating func rawOperations(_ state: DocumentState, dot: Dot) -> [Operation] {
    let context = WriteContext(
      dot: dot, timestamp: .zero,
      context: VersionVector(
        Dictionary(uniqueKeysWithValues: peers.map { ($0.replica, ChainPosition(sequence: .max, tip: .zero)) })))
    let elements = state.entries.flatMap(\.path).filter { if case .element = $0 { true } else { false } }
    var operations: [Operation] = []
    for _ in 0..<1 + random.below(2) {
      let next = rawOperation(elements)
      let write = DocumentWrite(
        collection: "c", id: .null, kind: .edit, generation: 1, operations: operations + [next])
      if context.malformation(of: [write]) == nil { operations.append(next) }
    }
    return operations
  }

  private mutating func rawOperation(_ elements: [PathSegment]) -> Operation {
    var path = (0..<1 + random.below(2)).map { _ in PathSegment.key(random.pick(["a", "b"])) }
    if !elements.isEmpty, random.chance(40) {
      path = [path[0], random.pick(elements)] + random.pick([[], [.key("x")]])
    }
    let value: Value
    let kind = random.pick(Operation.Kind.allCases + [.set, .listInsert])
    switch kind {
    case .set: value = random.pick([.int(1), .int(2), .double(1.5), .string("x"), .map(ValueMap()), .array([])])
    case .increment: value = .int(random.pick([1, -1, .max]))
    case .listInsert: value = random.pick([.int(1), .map(ValueMap()), .array([]), .string("x")])
    case .setAdd, .setRemove: value = random.pick([.int(1), .double(1), .string("x")])
    case .remove, .listRemove: return Operation(kind, path)
    }
    return Operation(kind, path, value: value, position: kind == .listInsert ? [UInt8(1 + random.below(3))] : [])
  }
}

extension MergeRandom {
  private static let scalars: [Value] = [
    .int(0), .int(1), .int(2), .double(1), .string(""), .string("x"), .null, .bool(true), .array([.int(1)]),
    .array([.int(1), .int(2)]), .date(5),
  ]

  private mutating func value(depth: Int = 0) -> Value {
    let roll = below(100)
    if depth < 3, roll < 25 {
      return .map(
        (["x", "y", "z"] as [Text]).reduce(into: ValueMap()) { map, key in
          if chance(40) { map[key] = value(depth: depth + 1) }
        })
    }
    return roll < 30 ? .array([]) : pick(Self.scalars)
  }

  mutating func element() -> Value {
    if chance(50) { return pick([.int(1), .int(2), .string("x")]) }
    var map = ValueMap()
    map["id"] = .int(Int64(below(3)))
    map["v"] = pick(Self.scalars)
    map["n"] = .array((0..<below(3)).map { _ in .int(Int64(below(3))) })
    return .map(map)
  }

  /// A body as someone may have edited it.
  mutating func mutated(_ body: ValueMap) -> ValueMap {
    var body = body
    for _ in 0..<1 + below(2) {
      let field: Text = pick(["l", "l", "k", "s", "c", "m", "m", "a"])
      let roll = below(100)
      if roll < 10 {
        body[field] = nil
      } else if roll < 18 {
        body[field] = value()
      } else {
        body[field] = edited(field, body[field])
      }
    }
    return body
  }

  private mutating func edited(_ field: Text, _ old: Value?) -> Value {
    switch field {
    case "l", "k": return .array(editedList((try? old?.items) ?? []))
    case "s":
      var members = Set((try? old?.items) ?? [])
      let member = pick([.int(1), .double(1), .string("x"), .bool(true), .array([.int(1)])] as [Value])
      if members.remove(member) == nil { members.insert(member) }
      return .array(members.sorted { $0.canonicalBytes.lexicographicallyPrecedes($1.canonicalBytes) })
    case "c": return counted(old)
    default:
      var inner = (try? old?.map) ?? ValueMap()
      let key: Text = pick(["x", "y", "c"])
      if inner[key] != nil, chance(30) {
        inner[key] = nil
      } else {
        inner[key] = key == "c" ? counted(inner[key]) : value(depth: 1)
      }
      return .map(inner)
    }
  }

  private mutating func counted(_ old: Value?) -> Value {
    let step = pick([1, 2, -1] as [Int64])
    return if case .int(let number)? = old { .int(number &+ step) } else { .int(step) }
  }

  private mutating func editedList(_ old: [Value]) -> [Value] {
    var list = old
    for _ in 0..<1 + below(2) {
      let roll = below(100)
      if !list.isEmpty, roll < 30 {
        list.remove(at: below(list.count))
      } else if roll < 60, case .map(var map)? = list.last {
        map["v"] = pick(Self.scalars)
        list[list.count - 1] = .map(map)
      } else if roll < 70 {
        list.shuffle(using: &self)
      } else {
        list.insert(element(), at: below(list.count + 1))
      }
    }
    return list
  }
}
