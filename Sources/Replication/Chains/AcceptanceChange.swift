/// How the accepted prefix of one chain moved: undo ``lost``, then fold in ``gained``.
package struct AcceptanceChange: Hashable, Sendable {
  package let replica: ReplicaID
  /// The prefix that counted before and counts still.
  package let shared: UInt64
  /// Hashes of the changes above ``shared`` that count no longer, ascending.
  package let lost: [Digest]
  /// Hashes of the changes above ``shared`` that count now, ascending.
  package let gained: [Digest]

  package init(replica: ReplicaID, shared: UInt64, lost: [Digest], gained: [Digest]) {
    (self.replica, self.shared, self.lost, self.gained) = (replica, shared, lost, gained)
  }

  /// Number of the last accepted change before and after.
  package var from: UInt64 { shared + UInt64(lost.count) }
  package var to: UInt64 { shared + UInt64(gained.count) }
}

/// A change that is here and does not count.
package struct HeldChange: Hashable, Sendable {
  package let dot: Dot
  package let hash: Digest
  package let reason: HoldReason
}

/// An accepted change that gained or lost its effect, because another of the same original came or went (rule C22).
package struct EffectChange: Hashable, Sendable {
  package let dot: Dot
  package let hash: Digest
  package let hasEffect: Bool
}

/// What one event changed in a ``PartitionLog``.
package struct LogChange: Hashable, Sendable {
  package var acceptance: [AcceptanceChange] = []
  package var effects: [EffectChange] = []
  /// Originals and re-issues that have other kin than before, or whose kin other contexts cover: what they write is to be
  /// built anew, and where list elements go by their dots (rule M17).
  package var regrouped: Set<Dot> = []
  /// The chain whose fork point is new or fell.
  package var forkedReplica: ReplicaID?
  /// The chain of which another branch begins, at whatever height: it goes to the peers.
  package var branchedReplica: ReplicaID?

  package init() {}
}

/// The log needs the chain's stored runs that hold any of these sequences: ``PartitionLog/unfold(_:runs:)``.
package struct HeaderRequest: Hashable, Sendable {
  package let replica: ReplicaID
  package let sequences: ClosedRange<UInt64>
  package init(replica: ReplicaID, sequences: ClosedRange<UInt64>) {
    (self.replica, self.sequences) = (replica, sequences)
  }
}

/// Storage and log disagree on what was stored: the database is damaged.
package enum UnfoldError: Error, Hashable {
  case storedRunsDoNotReachTrunk
}

/// Two changes of one chain with the same predecessor (rule C5): their signed runs, shown together, prove the fork.
package struct ForkProof: Hashable, Sendable {
  package let replica: ReplicaID
  package let sequence: UInt64
  package let hashBefore: Digest
  /// The two lowest hashes known, ascending.
  package let first: Digest
  package let second: Digest

  package init(replica: ReplicaID, sequence: UInt64, hashBefore: Digest, first: Digest, second: Digest) {
    (self.replica, self.sequence, self.hashBefore) = (replica, sequence, hashBefore)
    (self.first, self.second) = (first, second)
  }
}

extension [ForkProof] {
  /// The vector's own digest where nothing has forked.
  package func digest(beside vector: Digest, _ hash: HashFunction) -> Digest {
    guard !isEmpty else { return vector }
    var input = DomainTag.forks.bytes
    vector.append(to: &input)
    for proof in self {
      proof.replica.append(to: &input)
      appendBigEndian(proof.sequence, to: &input)
      proof.first.append(to: &input)
      proof.second.append(to: &input)
    }
    return Digest.of(input, hash)
  }
}
