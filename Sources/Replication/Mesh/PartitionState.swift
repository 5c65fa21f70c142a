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
  /// A partition that this node begins to write or to want.
  package mutating func begin(_ name: PartitionName) -> PartitionID {
    let id = name.id(fleet: local.fleet, hash: cryptography.hash)
    if partitions[id] == nil { partitions[id] = PartitionState(id: id, name: name, log: newLog(id, name)) }
    partitions[id]?.hasBegun = true
    return id
  }

  /// Back to what was before own runs that did not reach the disk; a partition that was not there goes again.
  package mutating func restore(_ before: [PartitionID: PartitionState?]) {
    for (id, state) in before { partitions[id] = state }
    countTakes()
  }

  /// Nobody wants it any more, and nothing of it is here.
  package mutating func forget(_ partition: PartitionID) {
    guard let state = partitions[partition], state.log.received.isEmpty else { return }
    partitions[partition] = nil
    catchUps[partition] = nil
    for id in sessions.keys { sessions[id]?.forget(partition) }
  }

  /// From the disk: so what comes next is known to be new to all that is stored, or not.
  package mutating func noteContexts(_ joined: VersionVector, in partition: PartitionID) {
    partitions[partition]?.log.learnContexts(joined)
  }

  /// Takes an own run into the log, within the transaction that commits it. Nil where it does not follow: a programming
  /// error that must not reach the disk.
  package mutating func learnOwn(_ run: Run, in partition: PartitionID, signer: PublicKey) -> LogChange? {
    guard let name = partitions[partition]?.name else { return nil }
    let summary = RunSummary(run, in: name, signer: signer, formats: cryptography.formats) { _ in nil }
    guard case .done(let change)? = learn(summary, in: partition) else { return nil }
    return change
  }
}

/// One peer brings what is lacking of a partition; the others wait.
struct CatchUp: Sendable {
  let session: SessionID
  var progress: MonotonicTime
}
