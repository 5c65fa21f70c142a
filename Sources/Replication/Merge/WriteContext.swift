/// Which change a write belongs to, and what that change had seen.
package struct WriteContext: Hashable, Sendable {
  package let dot: Dot
  package let timestamp: HybridTimestamp
  /// The context of the change's run. Its own chain is left out there: it is always seen up to the change itself.
  package let context: VersionVector
  /// What of that holds here.
  package let sight: Sight

  package init(dot: Dot, timestamp: HybridTimestamp, context: VersionVector, sight: Sight = .plain) {
    (self.dot, self.timestamp, self.context, self.sight) = (dot, timestamp, context, sight)
  }

  /// Whether the change has the accepted change `other` in its context, or another of its kin (rule M5). It never sees
  /// itself.
  package func sees(_ other: Dot) -> Bool {
    covers(other) || (!sight.kin.isEmpty && other != dot && sight.coversKin(of: other, covers))
  }

  private func covers(_ other: Dot) -> Bool {
    if other.replica == dot.replica { return other.sequence < dot.sequence }
    guard context.covers(other) else { return false }
    let ceilings = sight.ceilings
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

/// One change's part in one document, with what the change had seen: what merging works on. Of kin only the one that has
/// effect is merged.
package struct AcceptedWrite: Hashable, Sendable {
  package let context: WriteContext
  package let write: DocumentWrite
  package init(_ context: WriteContext, _ write: DocumentWrite) { (self.context, self.write) = (context, write) }
}
