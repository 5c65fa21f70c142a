// Vectors: told of what differs, in messages that the receiver takes, put together again, and what follows from them.
extension Mesh {
  /// Names what is held of these ledger.partitions. On an open stream that is what the peer neither announced nor is being sent;
  /// all of it, where that did not make the two level since the last comparison.
  mutating func sendVectors(
    _ id: SessionID, _ meant: Set<PartitionID>, inComparison: Bool = false, _ step: inout Step
  ) {
    guard let session = sessions[id] else { return }
    var vectors: [PartitionVector] = []
    for partition in inOrder(meant, session) {
      guard let state = ledger.partitions[partition], isInScope(session, state) else { continue }
      let comparison = inComparison ? session.comparison.count : nil
      let vector = session.streams[partition]?.untold(state.log, in: comparison) ?? state.log.clipped
      if inComparison {
        sessions[id]?.streams[partition]?.noteDifference(in: session.comparison.count)
        showHeld(id, partition, &step)
      }
      if !vector.isEmpty { vectors.append(PartitionVector(name: state.name, vector: vector)) }
    }
    for batch in PartitionVector.batches(vectors) { step.emit(.send(id, .vectors(batch))) }
  }

  func send(_ vector: PartitionVector, to id: SessionID, _ step: inout Step, _ message: (PartitionVector) -> Message) {
    for part in vector.parts { step.emit(.send(id, message(part))) }
  }

  // MARK: Received

  /// - Parameter pulls: false where whoever calls looks afterwards what is to be asked for first.
  mutating func receiveVector(_ id: SessionID, _ item: PartitionVector, pulls: Bool = true, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let partition = ledger.id(of: item.name)
    guard isInScope(session, partition, item.name) else { return }
    guard var stream = session.streams[partition] ?? newStream(session, partition, item.name, step.now) else { return }
    let told = boundedVector(declared(item.vector, partition), id, partition, step.now)
    stream.note(told, ledger.partitions[partition]?.log)
    sessions[id]?.streams[partition] = stream
    checkPeerVector(id, partition, item, &step)
    doubtLevelStream(id, partition)
    repullIfSilent(id, partition, &step)
    if pulls { considerPull(id, partition, &step) }
  }

  /// What nobody declared may be anything, and without end.
  func declared(_ vector: VersionVector, _ partition: PartitionID) -> VersionVector {
    let log = ledger.partitions[partition]?.log
    func isKnown(_ replica: ReplicaID) -> Bool {
      ledger.authority.signer(of: replica) != nil || log?.received[replica] != nil
    }
    guard !vector.entries.keys.allSatisfy(isKnown) else { return vector }
    return VersionVector(vector.entries.filter { isKnown($0.key) })
  }

  // MARK: Parts

  mutating func receiveVectors(_ id: SessionID, _ list: [PartitionVector], _ step: inout Step) {
    let isOrdered = sessions[id]?.passage.isOrdered == true
    for (index, item) in list.enumerated() {
      guard !item.hasMore || index == list.count - 1 else {
        return fail(id, .protocolError, "a vector that ends in the middle", &step)
      }
      guard let whole = joined(item, id, .vectors, &step) else { continue }
      receiveVector(id, whole, pulls: !isOrdered, &step)
      showForks(id, ledger.id(of: whole.name), anew: true, &step)
    }
    pullInOrder(id, &step)
  }

  /// The whole vector once its last part is here; nil until then, and after the session was failed. Nothing else that
  /// carries vectors comes between its parts.
  mutating func joined(
    _ part: PartitionVector, _ id: SessionID, _ carrier: PartialVector.Carrier, _ step: inout Step
  ) -> PartitionVector? {
    guard var partial = sessions[id]?.partial else {
      guard part.hasMore else { return sessions[id] == nil ? nil : part }
      sessions[id]?.partial = PartialVector(part, in: carrier)
      if sessions[id]?.partial == nil { fail(id, .protocolError, "an empty part of a vector", &step) }
      return nil
    }
    // Taken out while it grows, so that it is not copied.
    sessions[id]?.partial = nil
    guard partial.append(part, in: carrier) else {
      fail(id, .protocolError, "a part that does not go on from the one before", &step)
      return nil
    }
    guard part.hasMore else { return partial.whole }
    sessions[id]?.partial = partial
    return nil
  }
}
