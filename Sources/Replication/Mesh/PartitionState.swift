/// What a node knows of one partition without looking at the disk.
package struct PartitionState: Sendable {
  package let id: PartitionID
  package let name: PartitionName
  package internal(set) var log: PartitionLog
  /// False while nothing of it is here but fork evidence that waits for what leads to it.
  package internal(set) var hasBegun: Bool
  var waiting = WaitingRuns()

  package init(id: PartitionID, name: PartitionName, log: PartitionLog, hasBegun: Bool = true) {
    (self.id, self.name, self.log, self.hasBegun) = (id, name, log, hasBegun)
  }

  /// Something of these chains was taken.
  mutating func releaseAhead(behind chains: Set<ReplicaID>) {
    guard !waiting.ahead.isEmpty else { return }
    waiting.ahead.release(behind: chains, log)
  }

  var isNothing: Bool { !hasBegun && waiting.isEmpty }
}
