/// Turns the difference between the version read and a new one into operations (M14).
///
/// Differences are taken from `base`, the version read, so that nobody's edit in between is reverted; markers are
/// decided on `now`, the state whose vector becomes the change's context, since that is what they would wipe.
struct Differ<Random: RandomNumberGenerator> {
  /// Of the change that is being made: names the elements it inserts.
  let dot: Dot
  /// Whether what the new version lacks is removed.
  let erase: Bool
  var random: Random

  mutating func operations(
    _ path: [PathSegment], _ hints: WriteHints, base: Shown, now: Shown, new: Value
  ) -> [Operation] {
    if base.kind != .absent, base.value.isSame(as: new) { return [] }
    switch (new, hints.kind) {
    case (.map(let map), _):
      let below = mapOperations(path, hints, base: base, now: now, new: map)
      return opened(.map, path, base: base, now: now, new: new, below)
    case (.array(let items), .list(let key)):
      return listOperations(path, hints, base: base, now: now, new: items, key: key)
    case (.array(let items), .set):
      return setOperations(path, base: base, now: now, new: items)
    case (.array(let items), nil) where now.kind == .list && !now.children.isEmpty:
      return listOperations(path, hints, base: base, now: now, new: items, key: nil)
    case (.array(let items), nil) where now.kind == .set && !now.children.isEmpty:
      return setOperations(path, base: base, now: now, new: items)
    case (.int(let new), .counter):
      guard now.kind == .number, case .int = now.base, case .int(let old) = base.value else { break }
      return [Operation(.increment, path, value: .int(new &- old))]
    default: break
    }
    return [Operation(.set, path, value: new)]
  }

  /// Puts the marker first where the path is not now a container of this kind, so that no other's child is wiped by it.
  private func opened(
    _ kind: Shown.Kind, _ path: [PathSegment], base: Shown, now: Shown, new: Value, _ below: [Operation]
  ) -> [Operation] {
    func fits(_ shown: Shown) -> Bool {
      // An empty list and an empty set are the same marker.
      shown.kind == kind || kind == .set && shown.kind == .list && shown.children.isEmpty
    }
    let marker = Marker(new)
    // Without a marker of its own, what is emptied would vanish as a whole.
    if marker != nil, now.isImplied, below.count == now.children.count {
      return [Operation(.set, path, value: new)]
    }
    if fits(now) || path.isEmpty || (fits(base) && below.isEmpty) { return below }
    return [Operation(.set, path, value: kind == .map ? .map(ValueMap()) : .array([]))] + below
  }

  private mutating func mapOperations(
    _ path: [PathSegment], _ hints: WriteHints, base: Shown, now: Shown, new: ValueMap
  ) -> [Operation] {
    let base = base.kind == .map ? base : .absent
    let now = now.kind == .map ? now : .absent
    var operations: [Operation] = []
    for child in base.children where erase {
      guard case .key(let key) = child.segment, new[key] == nil, now[child.segment] != nil else { continue }
      operations.append(Operation(.remove, path + [child.segment]))
    }
    for entry in new.entries {
      let segment = PathSegment.key(entry.key)
      operations += self.operations(
        path + [segment], hints.below(.key(entry.key)), base: base[segment] ?? .absent, now: now[segment] ?? .absent,
        new: entry.value)
    }
    return operations
  }

  private func setOperations(_ path: [PathSegment], base: Shown, now: Shown, new: [Value]) -> [Operation] {
    let old = base.kind == .set && now.kind == .set ? base : .absent
    let members = Set(new).map { (segment: PathSegment.member($0.canonicalBytes), value: $0) }
      .sorted { $0.segment.order($1.segment) == .before }
    let kept = Set(members.map(\.segment))
    let removals = old.children.filter { !kept.contains($0.segment) && now[$0.segment] != nil }
      .map { Operation(.setRemove, path, value: $0.shown.value) }
    let additions = members.filter { !(old[$0.segment]?.value.isSame(as: $0.value) ?? false) }.map {
      Operation(.setAdd, path, value: $0.value)
    }
    return opened(.set, path, base: base, now: now, new: .array(new), removals + additions)
  }
}

// MARK: - Lists

extension Differ {
  private mutating func listOperations(
    _ path: [PathSegment], _ hints: WriteHints, base: Shown, now: Shown, new: [Value], key: Text?
  ) -> [Operation] {
    let elements = base.kind == .list && now.kind == .list ? base.children : []
    let held = now.kind == .list ? now : .absent
    var operations = listOperations(path, hints, from: elements, held: held, new: new, key: key)
    if operations.contains(where: { $0.position.count > ListElement.positionByteLimit }) {
      // No room between two neighbours: the whole list is written anew.
      operations =
        elements.filter { held[$0.segment] != nil }.map { Operation(.listRemove, path + [$0.segment]) }
        + listOperations(path, hints, from: [], held: held, new: new, key: key)
    }
    return opened(.list, path, base: base, now: now, new: .array(new), operations)
  }

  /// `old`: the elements that were read; `held`: the list as shown now, or absent.
  private mutating func listOperations(
    _ path: [PathSegment], _ hints: WriteHints, from old: [Shown.Child], held: Shown, new: [Value], key: Text?
  ) -> [Operation] {
    let pairs = Alignment(old.map(\.shown.value), new, key: key).pairs
    var places = [Place](repeating: .new, count: new.count)
    for pair in pairs {
      let child = old[pair.old]
      if let present = held[child.segment] {
        places[pair.new] = .held(child, present)
      } else if child.shown.value == new[pair.new] {
        places[pair.new] = .gone(child)
      }
    }
    let positions = positions(for: places)
    let paired = Set(pairs.map(\.old))
    var operations = old.enumerated().filter { !paired.contains($0.offset) && held[$0.element.segment] != nil }
      .map { Operation(.listRemove, path + [$0.element.segment]) }
    for (index, value) in new.enumerated() {
      switch places[index] {
      case .new:
        operations += insertion(of: value, path, hints.below(.anyElement), at: positions[index])
      case .held(let child, let present):
        operations += self.operations(
          path + [child.segment], hints.below(.anyElement), base: child.shown, now: present, new: value)
      case .gone: break
      }
    }
    return operations
  }

  private mutating func insertion(
    of value: Value, _ path: [PathSegment], _ hints: WriteHints, at position: [UInt8]
  ) -> [Operation] {
    let element = PathSegment.element(ListElement(position: position, dot: dot))
    let written = operations(path + [element], hints, base: .absent, now: .absent, new: value)
    // What is written where nothing was begins with a set of the path itself: that one is the insert.
    return [Operation(.listInsert, path, value: written.first?.value, position: position)] + written.dropFirst()
  }

  /// A position for each new item, runs of them between their neighbours; empty for the others.
  private mutating func positions(for places: [Place]) -> [[UInt8]] {
    var positions: [[UInt8]] = []
    while positions.count < places.count {
      let start = positions.count
      let end = places[start...].firstIndex { $0.key != nil } ?? places.count
      let (low, high) = (start == 0 ? nil : places[start - 1].key, end == places.count ? nil : places[end].key)
      if start < end {
        positions += Positions.places(between: low, and: high, count: end - start, random: &random)
      }
      if end < places.count { positions.append([]) }
    }
    return positions
  }
}

/// Where an item of a new list comes from.
private enum Place {
  case new
  /// An element as it was read and as it is shown now.
  case held(Shown.Child, Shown)
  /// Removed since it was read, and not changed by this write: stays removed.
  case gone(Shown.Child)

  /// The element's key; nil for a new one.
  var key: [UInt8]? {
    switch self {
    case .new: nil
    case .held(let child, _), .gone(let child):
      if case .element(let element) = child.segment { element.key } else { nil }
    }
  }
}
