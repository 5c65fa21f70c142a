import Replication
import Wire

/// Restores every partition's acceptance state: trunks at their word, then everything above them learned anew.
struct PartitionLoading {
  let store: any LogStore
  let reader: RunReader
  let authority: Authority
  /// What of the stored marks no longer holds, or held then and is more now, by partition: all that lies above the trunks
  /// counts as moved.
  private(set) var moved: [(PartitionID, LogChange)] = []
  /// Runs that do not read: what stands on them is as if it were not here.
  private(set) var damaged: [(partition: PartitionID, run: DamagedRun)] = []

  init(store: any LogStore, reader: RunReader, authority: Authority) {
    (self.store, self.reader, self.authority) = (store, reader, authority)
  }

  mutating func all() throws -> [PartitionState] {
    // One at a time: all chains at once would take more memory than what becomes of them.
    try store.logPartitions().map { partition in
      PartitionState(
        id: partition.id, name: partition.name,
        log: try log(partition, try store.logChains(of: partition.id), try store.reissues(in: partition.id)))
    }
  }

  private func identity(_ partition: LogPartition, _ replica: ReplicaID) -> ChainIdentity {
    ChainIdentity(fleet: reader.fleet, partition: partition.id, replica: replica)
  }

  private mutating func log(
    _ partition: LogPartition, _ chains: [LogChain], _ reissues: Set<Reissue>
  ) throws -> PartitionLog {
    let (fleet, hash, authority) = (reader.fleet, reader.hash, authority)
    let trunks = chains.filter { $0.marks.accepted.sequence > 0 }.map { chain in
      let mark = chain.marks.accepted
      return (chain.replica, ChainTrunk(sequence: mark.sequence, hash: mark.hash, documents: .any))
    }
    var log = PartitionLog(
      restoring: PartitionLog.Snapshot(trunks: Dictionary(trunks) { first, _ in first }, reissues: reissues),
      partition.name, root: authority.root
    ) { ChainIdentity(fleet: fleet, partition: partition.id, replica: $0).genesis(hash) }
    try settle(&log, partition) { $0.adopt(authority) }
    for chain in chains where chain.marks.received.sequence > chain.marks.accepted.sequence || chain.marks.isForked {
      let (runs, unread) = try headers(of: chain.replica, after: chain.marks.accepted.sequence, partition)
      // Before anything of it is learned: what counts must not go into the trunk past what does not read.
      if !unread.isEmpty { log.noteIncomplete(chain.replica) }
      for run in runs { try settle(&log, partition) { $0.learn(run) } }
    }
    return log
  }

  private mutating func headers(
    of replica: ReplicaID, after sequence: UInt64, _ partition: LogPartition
  ) throws -> (runs: [RunSummary], unread: [any StoreFailure]) {
    let found = try reader.headers(
      of: identity(partition, replica), after: sequence, partition.name, authority, in: store)
    damaged += found.unread.compactMap { failure in failure.runAtFault.map { (partition.id, $0) } }
    return found
  }

  /// Answers what the log asks of the disk until it is done.
  private mutating func settle(
    _ log: inout PartitionLog, _ partition: LogPartition, _ step: (inout PartitionLog) -> PartitionLog.Outcome
  ) throws {
    while true {
      let outcome = step(&log)
      if case .done(let change) = outcome, change != LogChange() { moved.append((partition.id, change)) }
      guard case .needsHeaders(let requests) = outcome else { return }
      for request in requests {
        let (runs, unread) = try headers(of: request.replica, after: request.sequences.lowerBound - 1, partition)
        do {
          try log.unfold(request, runs: runs)
        } catch {
          guard !unread.isEmpty else { throw error }
          log.leaveTrunk(of: request.replica)
        }
      }
    }
  }
}
