/// By whom its sender wants chains of one partition to be pushed to it: by the receiver (eager), by another one, of which
/// the receiver is told nothing (lazy), or by whom its receiver takes to be the one (released).
package struct PushChoice: Sendable, Equatable {
  package let name: PartitionName
  package let eager: Set<ReplicaID>
  package let lazy: Set<ReplicaID>
  package let released: Set<ReplicaID>

  /// Chains of one message, and of what is kept of one peer and partition.
  package static let limit = 256

  package init(
    _ name: PartitionName, eager: Set<ReplicaID> = [], lazy: Set<ReplicaID> = [], released: Set<ReplicaID> = []
  ) {
    (self.name, self.eager, self.lazy, self.released) = (name, eager, lazy, released)
  }

  /// No chain is in two of the lists, and there are not too many in all.
  package var isSound: Bool {
    let count = eager.count + lazy.count + released.count
    return count <= PushChoice.limit && eager.union(lazy).union(released).count == count
  }
}
