// What the log of this node does not give any more is asked for anew.
extension Mesh {
  /// The probe that has a peer show what of a chain lies above a position (nil: all of it), and whom to ask: the next after
  /// `last` of those who hold the chain through `sequence`. Nil where nobody does.
  package func asking(
    for replica: ReplicaID, in partition: PartitionID, above position: ChainPosition?, through sequence: UInt64,
    after last: SessionID?
  ) -> (SessionID, ChainProbe)? {
    guard let state = ledger.partitions[partition] else { return nil }
    let able = sessions.values.filter { session in
      guard session.phase == .live, session.isInScope(state, ledger), let live = session.live else { return false }
      let isLevel = live.streams[partition] == nil && live.level.contains(partition, state.name)
      let known = isLevel ? state.committed : live.streams[partition]?.known ?? VersionVector()
      return known.sequence(of: replica) >= sequence
    }.map(\.id).sorted()
    guard let id = able.first(where: { id in last.map { id > $0 } ?? true }) ?? able.first else { return nil }
    let positions = position.map { [$0] } ?? []
    return (id, ChainProbe(name: state.name, replica: replica, positions: positions, wantsReply: false))
  }
}
