/// Which change a write belongs to, and what that change had seen.
package struct WriteContext: Hashable, Sendable {
  package let dot: Dot
  package let timestamp: HybridTimestamp
  /// The context of the change's run. Its own chain is left out there: it is always seen up to the change itself.
  package let context: VersionVector
  /// Where a chain has forked and the context names another branch than the one accepted here, its entry reaches no
  /// higher than the fork (rule C23). Empty as long as no chain has forked.
  package let ceilings: [ReplicaID: UInt64]

  package init(
    dot: Dot, timestamp: HybridTimestamp, context: VersionVector, ceilings: [ReplicaID: UInt64] = [:]
  ) {
    (self.dot, self.timestamp, self.context, self.ceilings) = (dot, timestamp, context, ceilings)
  }

  /// Whether the change has the accepted change `other` in its context. It never sees itself.
  package func sees(_ other: Dot) -> Bool {
    if other.replica == dot.replica { return other.sequence < dot.sequence }
    guard context.covers(other) else { return false }
    return ceilings.isEmpty || other.sequence <= ceilings[other.replica] ?? .max
  }

  /// Whether the change names `other` lawfully: its context covers it, or it is of its own chain, itself included.
  /// Forks known here do not count, since every node must judge alike (M4).
  package func names(_ other: Dot) -> Bool {
    other.replica == dot.replica ? other.sequence <= dot.sequence : context.covers(other)
  }

  package var stamp: WriteStamp { WriteStamp(timestamp: timestamp, dot: dot) }
}

/// Breaks ties between concurrent writes, and nothing else (M7).
package struct WriteStamp: Hashable, Comparable, Sendable {
  package let timestamp: HybridTimestamp
  package let dot: Dot

  /// Before every write.
  static let none = WriteStamp(timestamp: .zero, dot: Dot(replica: .zero, sequence: 0))

  package static func < (a: WriteStamp, b: WriteStamp) -> Bool { (a.timestamp, a.dot) < (b.timestamp, b.dot) }
}

/// One change's part in one document, with what the change had seen: what merging works on.
package struct AcceptedWrite: Hashable, Sendable {
  package let context: WriteContext
  package let write: DocumentWrite
  package init(_ context: WriteContext, _ write: DocumentWrite) { (self.context, self.write) = (context, write) }
}
