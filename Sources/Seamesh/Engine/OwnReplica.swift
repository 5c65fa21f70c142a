import Identity
import Replication

/// This node's own chains: under which replica it writes, how far, and whether it may go on under it.
struct OwnReplica {
  struct End {
    var sequence: UInt64
    var hash: Digest
    var context: VersionVector
  }

  var replica: ReplicaSidecar.Incarnation?
  /// Own changes committed so far, over all partitions and replicas of this store.
  var commits: UInt64 = 0
  /// Reasons to draw a new replica id at the next write (rule C20).
  var causes: Set<RenewalCause> = []
  var lastTimestamp = HybridTimestamp.zero
  /// Of the current replica, where it has written.
  var ends: [PartitionID: End] = [:]

  /// Commits that the sidecar's mark names already.
  var marked: UInt64 = 0

  var isRenewalDue: Bool { replica == nil || !causes.isEmpty }

  func current() throws -> ReplicaSidecar.Incarnation {
    guard let replica else { throw NodeError(.failed, "this node has no replica id to write under") }
    return replica
  }

  mutating func nextTimestamp() -> HybridTimestamp {
    lastTimestamp = HybridTimestamp.next(
      after: lastTimestamp, referenceMilliseconds: UInt64(clamping: WallClock.milliseconds))
    return lastTimestamp
  }

  func sequence(in partition: PartitionID) -> UInt64 { ends[partition]?.sequence ?? 0 }
  func tip(in partition: PartitionID) -> Digest? { ends[partition]?.hash }
  func context(in partition: PartitionID) -> VersionVector { ends[partition]?.context ?? VersionVector() }

  mutating func advance(_ partition: PartitionID, _ run: Run) {
    ends[partition] = End(sequence: run.record.last, hash: run.record.hashAtLast, context: run.record.context)
  }

  /// Goes on as another replica; its chains begin anew.
  mutating func renew(_ incarnation: ReplicaSidecar.Incarnation) {
    (replica, ends) = (incarnation, [:])
    causes = []
  }
}
