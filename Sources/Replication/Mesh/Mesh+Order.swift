// On a link with an order one partition goes before the other, both ways: a later one waits while an earlier one is read, or
// comes, on the same session. Nobody else is asked to keep it: what comes is what was asked for.
extension Mesh {
  /// Nothing that goes before it is being read for the peer.
  func isItsTurn(_ session: PeerSession, _ partition: PartitionID, _ name: PartitionName) -> Bool {
    guard session.passage.isOrdered, let rank = session.passage.rank(partition, name) else { return true }
    return !session.streams.contains { id, stream in
      stream.outgoing.isLoading && session.passage.rank(id, stream.name).map { $0 < rank } ?? false
    }
  }

  /// Nothing that goes before it is coming from the peer.
  func isItsTurnToCome(_ session: PeerSession, _ partition: PartitionID, _ name: PartitionName) -> Bool {
    guard session.passage.isOrdered, let rank = session.passage.rank(partition, name) else { return true }
    return !catchUps.contains { id, catchUp in
      catchUp.session == session.id
        && session.streams[id].flatMap { session.passage.rank(id, $0.name) }.map { $0 < rank } ?? false
    }
  }

  /// What waited while this partition was read goes on: what goes behind it alone, since of others something may be left that
  /// cannot be sent yet, and they would be read by turns without end.
  mutating func pumpBehind(_ partition: PartitionID, _ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], session.passage.isOrdered,
      let rank = session.streams[partition].flatMap({ session.passage.rank(partition, $0.name) })
    else { return }
    let behind = inOrder(id).filter { other in
      session.streams[other].flatMap { session.passage.rank(other, $0.name) }.map { $0 > rank } ?? false
    }
    for other in behind { pump(id, other, &step) }
  }

  mutating func pullInOrder(_ id: SessionID, _ step: inout Step) {
    guard sessions[id]?.passage.isOrdered == true else { return }
    for partition in inOrder(id) { considerPull(id, partition, &step) }
  }

  /// The session's streams, what goes first before the rest.
  func inOrder(_ id: SessionID) -> [PartitionID] {
    guard let session = sessions[id] else { return [] }
    guard session.passage.isOrdered else { return session.streams.keys.sorted() }
    let ranked = session.streams.map { (session.passage.rank($0.key, $0.value.name) ?? .max, $0.key) }
    return ranked.sorted { $0 < $1 }.map(\.1)
  }

  /// The same of any ledger.partitions. A peer without an order of its own asks for them as they were named to it, and what is asked
  /// for first has been read, and waits in the transport, before the rest is asked for.
  func inOrder(_ ids: Set<PartitionID>, _ session: PeerSession) -> [PartitionID] {
    guard session.passage.isOrdered else { return ids.sorted() }
    let ranked = ids.map { id in (ledger.partitions[id].flatMap { session.passage.rank(id, $0.name) } ?? .max, id) }
    return ranked.sorted { $0 < $1 }.map(\.1)
  }

  func loadByteLimit(_ session: PeerSession) -> Int {
    session.passage.isThin
      ? min(configuration.loadByteLimit, MeshConfiguration.thinLoadByteLimit) : configuration.loadByteLimit
  }
}
