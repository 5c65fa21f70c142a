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

  var isNothing: Bool { !hasBegun && waiting.isEmpty }
}

extension Mesh {
  /// Nobody wants it any more, and nothing of it is here.
  package mutating func forget(_ partition: PartitionID) {
    guard let state = ledger.partitions[partition], state.log.received.isEmpty else { return }
    ledger.partitions[partition] = nil
    catchUps.end(partition)
    for id in sessions.keys { sessions[id]?.live?.forget(partition) }
  }

  /// Takes an own run into the log, within the transaction that commits it. Nil where it does not follow: a programming
  /// error that must not reach the disk.
  package mutating func learnOwn(_ run: Run, in partition: PartitionID, signer: PublicKey) -> LogChange? {
    guard let summary = ledger.summary(ofOwn: run, in: partition, signer: signer),
      case .done(let change)? = learn(summary, in: partition)
    else { return nil }
    return change
  }
}
