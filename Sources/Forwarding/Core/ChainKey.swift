import Replication

/// One chain: the changes of one replica in one partition.
package struct ChainKey: Hashable, Comparable, Sendable {
  package let partition: PartitionID
  package let replica: ReplicaID

  package init(partition: PartitionID, replica: ReplicaID) { (self.partition, self.replica) = (partition, replica) }

  package static func < (a: ChainKey, b: ChainKey) -> Bool { (a.partition, a.replica) < (b.partition, b.replica) }
}

/// So much of a log.
package struct LogAmount: Hashable, Sendable {
  package var changes: Int64
  /// Of runs as they are stored.
  package var bytes: Int64

  package init(changes: Int64 = 0, bytes: Int64 = 0) { (self.changes, self.bytes) = (changes, bytes) }

  package static func += (a: inout LogAmount, b: LogAmount) {
    a.changes += b.changes
    a.bytes += b.bytes
  }

  /// Never below zero: amounts of backlogs are estimates in bytes.
  package func exceeding(_ other: LogAmount) -> LogAmount {
    LogAmount(changes: max(0, changes - other.changes), bytes: max(0, bytes - other.bytes))
  }
}
