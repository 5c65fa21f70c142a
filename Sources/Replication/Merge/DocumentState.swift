/// One document, merged: its generation and the operations that no accepted one dominates, of this and earlier lives.
///
/// A function of the set of accepted writes alone (I1): equal sets give equal states, entry by entry.
package struct DocumentState: Hashable, Sendable {
  /// The greatest accepted (M10); 0: nothing accepted. Odd: alive.
  package private(set) var generation: UInt64
  /// By dot, then by path.
  package private(set) var entries: [Entry]

  package init() { (generation, entries) = (0, []) }

  package var isAlive: Bool { !generation.isMultiple(of: 2) }

  /// What somebody who sees no document has read of one that was deleted: that its lives have ended, so that he may begin another
  /// one, and nothing of what was written to them and waits for a decision.
  package var asEnded: DocumentState { DocumentState(generation: generation, groups: []) }

  /// The state of a set of accepted writes in any order, each dot once.
  package static func merged(of writes: some Collection<AcceptedWrite>) -> DocumentState {
    let entries = writes.map(\.entries)
    let dominators = Dominators(entries, of: writes.map(\.context))
    var state = DocumentState()
    state.generation = writes.map(\.write.generation).max() ?? 0
    state.entries = entries.joined().filter { $0.leavesTrace && !dominators.dominate($0) }
    state.entries.sort(by: Entry.standsBefore)
    return state
  }

  /// Adds a write that no accepted context covers yet (M12): what it has seen may lose to it, it loses to nothing.
  ///
  /// Each dot once. A write that others have moved past, or a fall of an accepted prefix, takes ``merged(of:)`` over all
  /// accepted writes of the document instead.
  package mutating func apply(_ write: AcceptedWrite) {
    let added = write.entries
    let dominators = Dominators([added], of: [write.context])
    generation = max(generation, write.write.generation)
    entries.removeAll { dominators.dominate($0) }
    let kept = added.filter(\.leavesTrace).sorted(by: Entry.standsBefore)
    let place = entries.firstIndex { $0.dot > write.context.dot } ?? entries.count
    entries.insert(contentsOf: kept, at: place)
  }
}

/// What a state keeps of one change.
package struct OperationGroup: Hashable, Sendable {
  package let dot: Dot
  package let timestamp: HybridTimestamp
  package let generation: UInt64
  /// By path. A group taken over from a payload as it is may hold `setRemove`, which leaves no entry.
  package let operations: [Operation]

  package init(dot: Dot, timestamp: HybridTimestamp, generation: UInt64, operations: [Operation]) {
    (self.dot, self.timestamp, self.generation, self.operations) = (dot, timestamp, generation, operations)
  }
}

extension DocumentState {
  /// The entries as they are stored, by dot.
  package var groups: [OperationGroup] {
    var groups: [OperationGroup] = []
    var rest = entries[...]
    while let first = rest.first {
      let group = rest.prefix { $0.dot == first.dot }
      rest = rest.dropFirst(group.count)
      groups.append(
        OperationGroup(
          dot: first.dot, timestamp: first.timestamp, generation: first.generation,
          operations: group.compactMap(\.operation)))
    }
    return groups
  }

  /// The inverse of ``groups``; takes them in any order, and operations that leave no entry, which it drops.
  package init(generation: UInt64, groups: some Sequence<OperationGroup>) {
    (self.generation, entries) = (generation, [])
    for group in groups {
      let context = WriteContext(dot: group.dot, timestamp: group.timestamp, context: VersionVector())
      entries.reserveCapacity(entries.count + group.operations.count)
      for operation in group.operations {
        let entry = Entry(operation, in: context, generation: group.generation)
        if entry.leavesTrace { entries.append(entry) }
      }
    }
    if !isInOrder { entries.sort(by: Entry.standsBefore) }
  }

  /// As nearly always what was stored: looking costs half of sorting it.
  private var isInOrder: Bool {
    entries.indices.dropFirst().allSatisfy { !Entry.standsBefore(entries[$0], entries[$0 - 1]) }
  }
}
