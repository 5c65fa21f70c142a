extension DocumentState {
  /// The document as it is shown, as a tree; absent unless it is alive.
  package func rendered() -> Shown {
    guard isAlive else { return .absent }
    return Renderer(entries: present).document()
  }

  /// The entries of this life, in path order.
  private var present: [Entry] {
    let isOfOneLife = entries.allSatisfy { $0.generation == generation }
    let present = isOfOneLife ? entries : entries.filter { $0.generation == generation }
    // Every change's entries are in path order already: those of one change need no sorting, and sorting merges runs.
    let isOfOneChange = present.first?.dot == present.last?.dot
    return isOfOneChange ? present : present.sorted { $0.path.order($1.path) == .before }
  }

  /// The document's body without `_id`; nil unless it is alive.
  package func shown() -> ValueMap? {
    if case .map(let body) = rendered().value { body } else { nil }
  }
}

/// Finds what is shown of surviving entries of one generation (M7–M9).
private struct Renderer {
  /// In path order.
  let entries: [Entry]

  func document() -> Shown { node(entries.indices, depth: 0) }

  /// `range`: the entries at and below one path of `depth` segments.
  private func node(_ range: Range<Int>, depth: Int) -> Shown {
    var here = Writes()
    var index = range.lowerBound
    while index < range.upperBound, entries[index].path.count == depth {
      here.take(entries[index])
      index += 1
    }
    if index == range.upperBound, depth > 0, here.increments == nil, let winner = here.winner, winner.marker == nil {
      return leaf(winner)
    }
    let groups = children(index..<range.upperBound, depth: depth)
    return here.shown(groups, isDocument: depth == 0)
  }

  private func leaf(_ winner: Entry) -> Shown {
    guard winner.kind != .remove, let value = winner.value else { return .absent }
    return Shown(value.isNumber && winner.kind == .set ? .number : .scalar, value, base: value, stamp: winner.stamp)
  }

  private func children(_ range: Range<Int>, depth: Int) -> Groups {
    var groups = Groups()
    var start = range.lowerBound
    while start < range.upperBound {
      let segment = entries[start].path[depth]
      var end = start + 1
      while end < range.upperBound, entries[end].path[depth].order(segment) == .same { end += 1 }
      let shown = node(start..<end, depth: depth + 1)
      if shown.kind != .absent { groups.add(segment, shown) }
      start = end
    }
    return groups
  }
}

/// What is shown below a path, by kind of segment.
private struct Groups {
  struct Group {
    var children: [Shown.Child] = []
    var stamp = WriteStamp.none
  }

  var map = Group()
  var list = Group()
  var set = Group()

  mutating func add(_ segment: PathSegment, _ shown: Shown) {
    let child = Shown.Child(segment: segment, shown: shown)
    switch segment {
    case .key: map.add(child)
    case .element: list.add(child)
    case .member: set.add(child)
    }
  }
}

extension Groups.Group {
  mutating func add(_ child: Shown.Child) {
    children.append(child)
    stamp = max(stamp, child.shown.stamp)
  }
}

/// What is written exactly at one path.
private struct Writes {
  /// The greatest of the sets, removes and additions.
  var winner: Entry?
  /// Sum, wrapped, and greatest stamp.
  var increments: (sum: Int64, stamp: WriteStamp)?

  mutating func take(_ entry: Entry) {
    if entry.kind == .increment {
      let old = increments ?? (0, .none)
      increments = (old.sum &+ entry.amount, max(old.stamp, entry.stamp))
    } else if winner.map({ $0.stamp < entry.stamp }) ?? true {
      winner = entry
    }
  }

  func shown(_ groups: Groups, isDocument: Bool) -> Shown {
    guard let kind = isDocument ? .map : kind(groups) else { return .absent }
    let implied = winner == nil && !isDocument
    switch kind {
    case .absent: return .absent
    case .scalar:
      let value = winner?.value ?? .null
      return Shown(.scalar, value, base: value, stamp: winner?.stamp ?? .none)
    case .number: return number
    case .map:
      let entries = groups.map.children.compactMap { child -> ValueMap.Entry? in
        guard case .key(let key) = child.segment else { return nil }
        return ValueMap.Entry(key: key, value: child.shown.value)
      }
      return container(.map, .map(ValueMap(ascending: entries)), base: .map(ValueMap()), groups.map, implied)
    case .list: return container(.list, groups.list.items, base: .array([]), groups.list, implied)
    case .set: return container(.set, groups.set.items, base: .array([]), groups.set, implied)
    }
  }

  /// Nil: nothing is shown here.
  private func kind(_ groups: Groups) -> Shown.Kind? {
    let containers: [(Shown.Kind, WriteStamp)] =
      [(.map, groups.map), (.list, groups.list), (.set, groups.set)].compactMap { kind, group in
        group.children.isEmpty ? nil : (kind, group.stamp)
      }
    guard let winner else { return Writes.latest(containers + (increments.map { [(.number, $0.stamp)] } ?? [])) }
    switch (winner.kind, winner.marker) {
    case (.remove, _): return nil
    case (_, .map?): return .map
    case (_, .array?): return Writes.latest(containers.filter { $0.0 != .map }) ?? .list
    case (.set, nil): return winner.value?.isNumber == true ? .number : .scalar
    case (_, nil): return .scalar
    }
  }

  /// The kind with the greatest stamp; of equal ones the last.
  private static func latest(_ kinds: [(kind: Shown.Kind, stamp: WriteStamp)]) -> Shown.Kind? {
    var best = kinds.first
    for next in kinds.dropFirst() where best.map({ $0.stamp <= next.stamp }) ?? true { best = next }
    return best?.kind
  }

  /// The base with the wrapped sum of increments; to a double it is added once (M9).
  private var number: Shown {
    let base = winner?.value ?? .int(0)
    let sum = increments?.sum ?? 0
    let value: Value =
      switch base {
      case .int(let base): .int(base &+ sum)
      case .double(let base): .double(sum == 0 ? base : base + Double(sum))
      default: base
      }
    let stamp = max(winner?.stamp ?? .none, increments?.stamp ?? .none)
    return Shown(.number, value, base: base, stamp: stamp)
  }

  private func container(
    _ kind: Shown.Kind, _ value: Value, base: Value, _ group: Groups.Group, _ isImplied: Bool
  ) -> Shown {
    Shown(
      kind, value, base: base, children: group.children, isImplied: isImplied,
      stamp: max(group.stamp, winner?.stamp ?? .none))
  }
}

extension Groups.Group {
  var items: Value { .array(children.map(\.shown.value)) }
}

extension Value {
  var isNumber: Bool {
    switch self {
    case .int, .double: true
    default: false
    }
  }
}
