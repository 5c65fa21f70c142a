/// An accepted operation that nothing dominates and whose effect is not shown (M11): kept until someone decides.
package struct Conflict: Hashable, Sendable {
  package let generation: UInt64
  /// Of an addition to a set, the member's path.
  package let path: [PathSegment]
  /// `set`, `remove`, `increment` or `add`.
  package let kind: Entry.Kind
  /// Of increments: the wrapped sum of those of one chain. Absent for `remove`.
  package let value: Value?
  /// Of increments: the last one's.
  package let dot: Dot
  package let timestamp: HybridTimestamp

  init(_ entry: Entry) {
    (self.generation, self.path, self.kind, self.value) = (entry.generation, entry.path, entry.kind, entry.value)
    (self.dot, self.timestamp) = (entry.dot, entry.timestamp)
  }

  private init(_ last: Conflict, sum: Int64) {
    (self.generation, self.path, self.kind, self.value) = (last.generation, last.path, last.kind, .int(sum))
    (self.dot, self.timestamp) = (last.dot, last.timestamp)
  }

  /// The order of the inbox: generation, path, dot.
  fileprivate static func standsBefore(_ a: Conflict, _ b: Conflict) -> Bool {
    if a.generation != b.generation { return a.generation < b.generation }
    let order = a.path.order(b.path)
    return order == .same ? a.dot < b.dot : order == .before
  }

  /// Whether `next`, which follows in the order of the inbox, is an increment of the same chain at the same place.
  private func isContinued(by next: Conflict) -> Bool {
    dot.replica == next.dot.replica && generation == next.generation && path.order(next.path) == .same
  }

  /// Increments, in the order of the inbox, as one conflict per chain, place and generation; sums of 0 are none.
  fileprivate static func summed(_ increments: [Conflict]) -> [Conflict] {
    var sums: [Conflict] = []
    for next in increments {
      if let last = sums.last, last.isContinued(by: next) {
        sums[sums.count - 1] = Conflict(next, sum: last.amount &+ next.amount)
      } else {
        sums.append(next)
      }
    }
    return sums.filter { $0.amount != 0 }
  }

  private var amount: Int64 {
    if case .int(let amount)? = value { amount } else { 0 }
  }
}

extension DocumentState {
  /// What is not shown, by generation, path and dot. `shown`, if at hand, is what ``rendered()`` gives.
  package func inbox(shown: Shown? = nil) -> [Conflict] {
    let shown = shown ?? rendered()
    let hidden = entries.filter { !hasEffect($0, in: shown) }
    if hidden.isEmpty { return [] }
    let increments = hidden.filter { $0.kind == .increment }.map { Conflict($0) }.sorted(by: Conflict.standsBefore)
    let others = hidden.filter { $0.kind != .increment }
    let listed = Conflict.summed(increments) + others.filter { $0.marker == nil }.map { Conflict($0) }
    let markers = others.filter { $0.marker != nil }.map { Conflict($0) }
    return (listed + DocumentState.unspokenFor(markers, by: listed)).sorted(by: Conflict.standsBefore)
  }

  fileprivate func hasEffect(_ entry: Entry, in shown: Shown) -> Bool {
    let place = shown[path: entry.path]
    return switch entry.kind {
    case .set: place?.base == entry.value
    case .increment: entry.generation == generation && place?.kind == .number
    case .add: place != nil
    case .remove: place == nil
    case .drop, .create, .delete: true
    }
  }

  /// The markers with nothing listed below them, for which no other entry speaks.
  private static func unspokenFor(_ markers: [Conflict], by listed: [Conflict]) -> [Conflict] {
    var unspokenFor: [Conflict] = []
    // In path order, what is below a path stands right behind it: going backwards, `below` is the last path listed that
    // is not the present one.
    var (below, present): ([PathSegment]?, [PathSegment]?) = (nil, nil)
    let candidates = (markers.map { ($0, true) } + listed.map { ($0, false) })
      .sorted { $0.0.path.order($1.0.path) == .after }
    for (conflict, isMarker) in candidates {
      if let path = present, path.order(conflict.path) != .same { below = path }
      if isMarker, let below, conflict.path.isAbove(below) { continue }
      if isMarker { unspokenFor.append(conflict) }
      present = conflict.path
    }
    return unspokenFor
  }
}

/// The writes that make what a document shows.
package struct ShownWrites {
  private let making: [Entry]
  private let removing: [Entry]

  package init(_ state: DocumentState) {
    guard state.isAlive else {
      (making, removing) = ([], [])
      return
    }
    let shown = state.rendered()
    let effective = state.entries.filter { entry in
      entry.generation == state.generation && state.hasEffect(entry, in: shown)
    }
    making = effective.filter { [.set, .increment, .add].contains($0.kind) }
    removing = effective.filter { $0.kind == .remove }
  }

  /// The latest of the writes that make what is shown at a place and below; of something removed, the latest that removed it, there,
  /// above or below. Nil where the state keeps none: it does not keep who deleted a document.
  package func last(at place: [PathSegment]) -> Entry? {
    ShownWrites.latest(making.lazy.filter { $0.path.starts(with: place) })
      ?? ShownWrites.latest(removing.lazy.filter { place.starts(with: $0.path) || $0.path.starts(with: place) })
  }

  private static func latest(_ entries: some Sequence<Entry>) -> Entry? { entries.max { $0.stamp < $1.stamp } }
}
