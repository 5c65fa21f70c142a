import Replication

/// This node's own chains: under which replica it writes, how far, and whether it may go on under it.
package struct OwnReplica {
  struct End {
    var sequence: UInt64
    var hash: Digest
    var context: VersionVector
  }

  package internal(set) var replica: Incarnation?
  /// Own changes committed so far, over all partitions and replicas of this store.
  package internal(set) var commits: UInt64 = 0
  /// Reasons to draw a new replica id at the next write (rule C20).
  package internal(set) var causes: Set<RenewalCause> = []
  var lastTimestamp = HybridTimestamp.zero
  /// The end of each chain that the current replica has written.
  var ends: [PartitionID: End] = [:]

  var isRenewalDue: Bool { replica == nil || !causes.isEmpty }

  mutating func nextTimestamp(wallMilliseconds: Int64) -> HybridTimestamp {
    lastTimestamp = HybridTimestamp.next(
      after: lastTimestamp, referenceMilliseconds: UInt64(clamping: wallMilliseconds))
    return lastTimestamp
  }

  func sequence(in partition: PartitionID) -> UInt64 { ends[partition]?.sequence ?? 0 }
  func tip(in partition: PartitionID) -> Digest? { ends[partition]?.hash }
  func context(in partition: PartitionID) -> VersionVector { ends[partition]?.context ?? VersionVector() }

  mutating func advance(_ partition: PartitionID, _ run: Run) {
    ends[partition] = End(sequence: run.record.last, hash: run.record.hashAtLast, context: run.record.context)
  }

  /// Goes on as another replica; its chains begin anew.
  mutating func renew(_ incarnation: Incarnation) {
    (replica, ends) = (incarnation, [:])
    causes = []
  }
}
