/// What a node knows of one partition without looking at the disk.
package struct PartitionState: Sendable {
  package let id: PartitionID
  package let name: PartitionName
  package internal(set) var log: PartitionLog
  /// False while nothing of it is here but fork evidence that waits for what leads to it.
  package internal(set) var hasBegun: Bool
  var waiting = WaitingRuns()
  /// Of chains that the log knows more of than was committed: where they ended at the last commit; nil where they begin.
  private var endsAtCommit: [ReplicaID: ChainPosition?] = [:]

  package init(id: PartitionID, name: PartitionName, log: PartitionLog, hasBegun: Bool = true) {
    (self.id, self.name, self.log, self.hasBegun) = (id, name, log, hasBegun)
  }

  /// These runs were taken: what waits for their chains is looked at again.
  mutating func noteKept(_ runs: [DeliveredRun]) {
    hasBegun = true
    guard !waiting.ahead.isEmpty else { return }
    waiting.ahead.release(behind: Set(runs.map(\.incoming.replica)), log)
  }

  /// Statements of this reach move nothing of it.
  func isUntouched(by reach: StatementReach) -> Bool {
    guard !waiting.awaitsAuthority, !reach.rooms.contains(name) else { return false }
    return reach.isOfRoomsAlone || log.isUntouched(by: reach.replicas)
  }

  // MARK: Commits

  /// What the log announces, without what no commit has brought to the disk yet. A peer whose summary was equal knows this
  /// much: what is here and not committed goes to it afterwards.
  var committed: VersionVector {
    var vector = log.clipped
    for (replica, end) in endsAtCommit where vector.sequence(of: replica) > end?.sequence ?? 0 { vector[replica] = end }
    return vector
  }

  mutating func learn(_ run: RunSummary) -> PartitionLog.Outcome {
    let end = log.clipped[run.replica]
    let outcome = log.learn(run)
    if endsAtCommit[run.replica] == nil, log.clipped[run.replica] != end { endsAtCommit[run.replica] = .some(end) }
    return outcome
  }

  mutating func noteCommitted() { endsAtCommit = [:] }

  /// What was learnt and is to be kept in the same step is something already.
  var isNothing: Bool { !hasBegun && waiting.isEmpty && log.holdsNothing }
}
