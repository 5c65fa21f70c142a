import Replication

/// A node's own chains: under which replica it writes, how far, and whether it may go on under it.
struct OwnReplica {
  struct End {
    var sequence: UInt64
    var hash: Digest
    var context: VersionVector
  }

  var replica: ModelDisk.Incarnation?
  var commits: UInt64 = 0
  /// Reasons to draw a new replica id at the next write (rule C20).
  var causes: Set<RenewalCause> = []
  var lastTimestamp = HybridTimestamp.zero
  /// Of the current replica, where it has written.
  var ends: [PartitionID: End] = [:]

  var isRenewalDue: Bool { replica == nil || !causes.isEmpty }

  mutating func nextTimestamp(wall: Int64) -> HybridTimestamp {
    lastTimestamp = HybridTimestamp.next(after: lastTimestamp, referenceMilliseconds: UInt64(clamping: wall))
    return lastTimestamp
  }

  mutating func advance(_ partition: PartitionID, _ run: Run) {
    ends[partition] = End(sequence: run.record.last, hash: run.record.hashAtLast, context: run.record.context)
  }

  func demanding(_ cause: RenewalCause) -> OwnReplica {
    var own = self
    own.causes.insert(cause)
    return own
  }

  mutating func renew(_ incarnation: ModelDisk.Incarnation) {
    (replica, ends, causes) = (incarnation, [:], [])
  }
}
