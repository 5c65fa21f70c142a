extension Entry {
  /// Where an operation's path stands to another's.
  enum Relation { case above, same, below }

  /// Whether this operation takes `other` out if it has seen it (M6); `relation` is where its path stands to the
  /// other's.
  func overrides(_ other: Entry, _ relation: Relation) -> Bool {
    guard generation >= other.generation else { return false }
    let sameLife = generation == other.generation
    switch (kind, relation) {
    case (.create, _), (.delete, _): return !sameLife
    case (.drop, _): return relation == .same
    case (_, .above): return true
    case (.increment, .same): return !(sameLife && other.isNumeric)
    case (_, .same): return true
    // A remove says nothing about what is above it.
    case (.remove, .below): return false
    // A write below a path spares the marker it stands on.
    case (_, .below):
      return !(sameLife && other.marker != nil && other.marker == path[other.path.count].standsOn)
    }
  }

  /// What an increment builds on.
  private var isNumeric: Bool {
    switch (kind, value) {
    case (.increment, _), (.set, .int?), (.set, .double?): true
    default: false
    }
  }
}

extension PathSegment {
  fileprivate var standsOn: Marker { isKey ? .map : .array }
}

/// The operations of some writes, in path order, to ask which entries they dominate (M5).
///
/// Path order makes what stands at and below a path two neighbouring ranges, so that an entry meets only the operations
/// it could lose to.
struct Dominators {
  private struct Operation {
    let entry: Entry
    /// Index of its write in `contexts`.
    let write: Int
  }

  private let contexts: [WriteContext]
  private let documentOperations: [Operation]
  private let operations: [Operation]

  /// `entries`: those of each write in turn.
  init(_ entries: [[Entry]], of contexts: [WriteContext]) {
    self.contexts = contexts
    let all = entries.enumerated().flatMap { write, entries in entries.map { Operation(entry: $0, write: write) } }
    documentOperations = all.filter { $0.entry.path.isEmpty }
    operations = all.filter { !$0.entry.path.isEmpty }.sorted { Dominators.standsBefore($0.entry, $1.entry) }
  }

  /// At one path the likeliest dominators come first: of the latest life, no increment, the latest stamp. In a long
  /// history nearly every entry then meets its dominator at once.
  private static func standsBefore(_ a: Entry, _ b: Entry) -> Bool {
    let order = a.path.order(b.path)
    if order != .same { return order == .before }
    if a.generation != b.generation { return a.generation > b.generation }
    if (a.kind == .increment) != (b.kind == .increment) { return b.kind == .increment }
    return a.stamp > b.stamp
  }

  func dominate(_ entry: Entry) -> Bool {
    documentOperations.contains { wins($0, over: entry, .above) }
      || (1..<max(1, entry.path.count)).contains { anyAt($0, of: entry, .above) }
      || anyAt(entry.path.count, of: entry, .same)
      || anyBelow(entry)
  }

  private func wins(_ operation: Operation, over entry: Entry, _ relation: Entry.Relation) -> Bool {
    operation.entry.overrides(entry, relation) && contexts[operation.write].sees(entry.dot)
  }

  /// Looks at the operations exactly at the first `count` segments of the entry's path.
  private func anyAt(_ count: Int, of entry: Entry, _ relation: Entry.Relation) -> Bool {
    var index = firstIndex { entry.path.order(upTo: count, $0) != .after }
    while index < operations.count, entry.path.order(upTo: count, operations[index].entry.path) == .same {
      let operation = operations[index]
      if wins(operation, over: entry, relation) { return true }
      // Only more increments of its life and earlier lives follow an increment: if it spares the entry, they all do.
      if operation.entry.kind == .increment, !operation.entry.overrides(entry, relation) { return false }
      index += 1
    }
    return false
  }

  private func anyBelow(_ entry: Entry) -> Bool {
    var index = firstIndex { entry.path.order($0) == .before }
    while index < operations.count, entry.path.isAbove(operations[index].entry.path) {
      if wins(operations[index], over: entry, .below) { return true }
      index += 1
    }
    return false
  }

  private func firstIndex(where reached: ([PathSegment]) -> Bool) -> Int {
    var (low, high) = (0, operations.count)
    while low < high {
      let middle = (low + high) / 2
      if reached(operations[middle].entry.path) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
