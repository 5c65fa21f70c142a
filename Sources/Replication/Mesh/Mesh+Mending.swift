// What the log of this node does not give any more is asked for anew.
extension Mesh {
  /// The probe that has a peer show what of a chain lies above a position (nil: all of it), and whom to ask: the next after
  /// `last` of those who hold the chain through `sequence`. Of a chain that is forked or held no vector tells who has it: then
  /// it may be anyone. Nil where nobody does.
  package func asking(
    for replica: ReplicaID, in partition: PartitionID, above position: ChainPosition?, through sequence: UInt64,
    after last: SessionID?
  ) -> (SessionID, ChainProbe)? {
    guard let state = ledger.partitions[partition] else { return nil }
    let isToldByVectors = state.log.isToldByVectors(replica)
    let able = sessions.values.filter { session in
      guard session.phase == .live, session.isInScope(state, ledger), let live = session.live else { return false }
      guard isToldByVectors else { return true }
      let isLevel = live.streams[partition] == nil && live.level.contains(partition, state.name)
      let known = isLevel ? state.committed : live.streams[partition]?.known ?? VersionVector()
      return known.sequence(of: replica) >= sequence
    }.map(\.id).sorted()
    guard let id = able.first(where: { id in last.map { id > $0 } ?? true }) ?? able.first else { return nil }
    let positions = position.map { [$0] } ?? []
    return (id, ChainProbe(name: state.name, replica: replica, positions: positions, wantsReply: false))
  }

  /// Statements are adopted where headers did not read for it; runs that led nowhere lead on; and peers are shown what was
  /// kept back behind the damaged ones.
  mutating func logMended(
    _ partition: PartitionID, _ replicas: Set<ReplicaID>, _ stored: [StoredHeaders], _ step: inout Step
  ) {
    for chain in stored {
      for change in ledger.learnStored(chain, in: partition) { step.emit(.rebuild(partition, change)) }
    }
    if ledger.lookAtTrunksAgain(of: replicas, in: partition) { adoptAuthority(partition, &step) }
    guard let log = ledger.partitions[partition]?.log else { return }
    for replica in replicas.sorted() where log.shownEnd(of: replica) == .max {
      sessions.showNews(of: replica, partition, ledger, &step)
    }
  }
}

extension PartitionLog {
  /// What is here of the chain is what a vector says of it.
  fileprivate func isToldByVectors(_ replica: ReplicaID) -> Bool {
    forkPoints[replica] == nil && clipped[replica] == received[replica] && !unreadTrunks.contains(replica)
      && !incompleteChains.contains(replica)
  }
}
