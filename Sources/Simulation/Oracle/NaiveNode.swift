import Replication

/// What is shown at one path (M7–M9).
struct NaiveNode {
  enum Kind { case scalar, number, map, list, set }

  let kind: Kind
  let value: Value
  /// Value of the winning write: of a counter without its increments; of a container its marker.
  let base: Value
  /// What is shown in a container, in byte order of the segments.
  let children: [Child]
  /// The greatest stamp among what is shown here.
  let stamp: NaiveStamp?

  struct Child {
    let segment: PathSegment
    let step: [UInt8]
    let node: NaiveNode
  }

  /// What is shown at a path below; nil: nothing.
  func node(at path: OraclePath) -> NaiveNode? {
    path.steps.reduce(self) { node, step in node?.children.first { $0.step == step }?.node }
  }

  /// M10: `operations`: the survivors of the present generation. A document is a map, whatever is written in it.
  static func document(of operations: [NaiveOperation]) -> NaiveNode {
    shown(Parts(operations, depth: 0), as: .map)
  }

  private static func node(_ operations: [NaiveOperation], depth: Int) -> NaiveNode? {
    let parts = Parts(operations, depth: depth)
    return kind(parts).map { shown(parts, as: $0) }
  }

  /// What is written at and below one path.
  private struct Parts {
    /// M7: the greatest of the writes exactly here.
    let winner: NaiveOperation?
    let increments: [NaiveOperation]
    let keys, elements, members: [Child]

    init(_ operations: [NaiveOperation], depth: Int) {
      let here = operations.filter { $0.path.segments.count == depth }
      increments = here.filter { $0.kind == .increment }
      winner = here.filter { $0.kind != .increment }.max { NaiveStamp.areInOrder($0.stamp, $1.stamp) }
      let below = Dictionary(grouping: operations.filter { $0.path.segments.count > depth }) {
        $0.path.steps[depth]
      }
      // M13: the byte order of keys, of elements' places and of members.
      let children = below.sorted { OracleBytes.areInOrder($0.key, $1.key) }.compactMap { step, below in
        NaiveNode.node(below, depth: depth + 1).map {
          Child(segment: below[0].path.segments[depth], step: step, node: $0)
        }
      }
      keys = children.filter { if case .key = $0.segment { true } else { false } }
      elements = children.filter { if case .element = $0.segment { true } else { false } }
      members = children.filter { if case .member = $0.segment { true } else { false } }
    }
  }

  /// Nil: nothing is shown.
  private static func kind(_ parts: Parts) -> Kind? {
    guard let winner = parts.winner else {
      // M8: nothing written exactly there.
      return latest([
        (.map, parts.keys.compactMap(\.node.stamp)), (.list, parts.elements.compactMap(\.node.stamp)),
        (.set, parts.members.compactMap(\.node.stamp)), (.number, parts.increments.map(\.stamp)),
      ])
    }
    // M7: remove: absent; {}: the map of keys below; []: the list or set below; number: M9; else the value.
    if winner.kind == .remove { return nil }
    switch winner.opened {
    case .map: return .map
    case .array:
      // M8: under [], elements against members likewise.
      return latest([
        (.list, parts.elements.compactMap(\.node.stamp)), (.set, parts.members.compactMap(\.node.stamp)),
      ]) ?? .list
    case nil: return winner.isNumber ? .number : .scalar
    }
  }

  /// M8: the group with the greatest stamp; of the same change: keys < elements < members < increments, the order in which
  /// they are given.
  private static func latest(_ groups: [(kind: Kind, stamps: [NaiveStamp])]) -> Kind? {
    var best: (kind: Kind, stamp: NaiveStamp)?
    for group in groups {
      guard let stamp = NaiveStamp.greatest(group.stamps) else { continue }
      if let best, NaiveStamp.areInOrder(stamp, best.stamp) { continue }
      best = (group.kind, stamp)
    }
    return best?.kind
  }

  private static func shown(_ parts: Parts, as kind: Kind) -> NaiveNode {
    let own = parts.winner.map { [$0.stamp] } ?? []
    func container(_ children: [Child], _ value: Value, _ base: Value) -> NaiveNode {
      let stamp = NaiveStamp.greatest(own + children.compactMap(\.node.stamp))
      return NaiveNode(kind: kind, value: value, base: base, children: children, stamp: stamp)
    }
    switch kind {
    case .scalar:
      let value = parts.winner?.value ?? .null
      return NaiveNode(kind: kind, value: value, base: value, children: [], stamp: parts.winner?.stamp)
    case .number:
      let base = parts.winner?.value ?? .int(0)
      return NaiveNode(
        kind: kind, value: total(base, parts.increments), base: base, children: [],
        stamp: NaiveStamp.greatest(own + parts.increments.map(\.stamp)))
    case .map: return container(parts.keys, map(parts.keys), .map(ValueMap()))
    case .list: return container(parts.elements, .array(parts.elements.map(\.node.value)), .array([]))
    case .set: return container(parts.members, .array(parts.members.map(\.node.value)), .array([]))
    }
  }

  private static func map(_ children: [Child]) -> Value {
    .map(
      ValueMap(
        ascending: children.compactMap { child in
          guard case .key(let name) = child.segment else { return nil }
          return .init(key: name, value: child.node.value)
        }))
  }

  /// M9: the base and the surviving increments; int64 wraps; to a double the wrapped sum is added once.
  private static func total(_ base: Value, _ increments: [NaiveOperation]) -> Value {
    let sum = NaiveInbox.sum(increments)
    switch base {
    case .int(let base): return .int(base &+ sum)
    // -0.0 + 0 would be 0.0: nothing is added where there is nothing to add.
    case .double(let base): return .double(sum == 0 ? base : base + Double(sum))
    default: return base
    }
  }
}
