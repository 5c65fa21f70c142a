// The sending side of the stream rule (C9): one stream per session and partition, catch-up first and live as its
// continuation, in order of arrival, skipping only what the peer has announced after its commit.
extension Mesh {
  mutating func receivePull(_ id: SessionID, _ number: UInt64, _ wanted: PartitionVector, _ step: inout Step) {
    guard let session = sessions[id], number > 0 else { return }
    let partition = ledger.id(of: wanted.name)
    guard isInScope(session, partition, wanted.name) else { return }
    guard var stream = session.streams[partition] ?? newStream(session, partition, wanted.name, step.now) else {
      return
    }
    // Who pulls did not find it level.
    if session.streams[partition] == nil { stream.incoming.close() }
    stream.known = boundedVector(declared(wanted.vector, partition), id, partition, step.now)
    voidLoad(id, partition)
    stream.outgoing.begin(number, naming: wanted.staged)
    sessions[id]?.relaysDue[partition] = nil
    sessions[id]?.streams[partition] = stream
    checkPeerVector(id, partition, wanted, &step)
    showForks(id, partition, anew: false, &step)
    considerPull(id, partition, &step)
    pump(id, partition, &step)
  }

  /// Asks the log for what the peer lacks, if there is room to send it.
  mutating func pump(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let session = sessions[id], session.phase == .live, session.isWritable,
      let state = ledger.partitions[partition],
      let stream = session.streams[partition], stream.outgoing.number != nil, !stream.outgoing.isLoading,
      stream.lacks(state.log), isItsTurn(session, partition, stream.name)
    else { return }
    let have = stream.have(of: state.log)
    sessions[id]?.relaysDue[partition] = nil
    let usual = loadByteLimit(session)
    let byteLimit = sessions[id]?.streams[partition]?.outgoing.beginLoad(usual) ?? usual
    step.emit(.load(id, partition, have: have, byteLimit: byteLimit))
  }

  mutating func loaded(
    _ id: SessionID, _ partition: PartitionID, _ runs: [LoggedRun], _ hasMore: Bool, _ step: inout Step
  ) {
    guard !isVoidLoad(id, partition), let before = sessions[id]?.streams[partition] else { return }
    sessions[id]?.streams[partition]?.outgoing.endLoad()
    send(runs, to: id, partition, &step)
    let isStuck = hasMore && sessions[id]?.streams[partition]?.outgoing.sent == before.outgoing.sent
    let usual = sessions[id].map(loadByteLimit) ?? configuration.loadByteLimit
    guard sessions[id]?.streams[partition]?.outgoing.setNextLoad(isStuck: isStuck, usual: usual) == true else {
      return pumpBehind(partition, id, &step)
    }
    if hasMore { pump(id, partition, &step) }
    pumpBehind(partition, id, &step)
  }

  /// What was asked of the log for the stream as it is now is not sent on the next one. The log answers in order.
  mutating func voidLoad(_ id: SessionID, _ partition: PartitionID) {
    guard sessions[id]?.streams[partition]?.outgoing.isLoading == true else { return }
    sessions[id]?.voidLoads[partition, default: 0] += 1
  }

  private mutating func isVoidLoad(_ id: SessionID, _ partition: PartitionID) -> Bool {
    guard let count = sessions[id]?.voidLoads[partition] else { return false }
    sessions[id]?.voidLoads[partition] = count > 1 ? count - 1 : nil
    return true
  }

  /// Sends what the peer still lacks of these runs, in their order.
  private mutating func send(_ runs: [LoggedRun], to id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let session = sessions[id], var stream = session.streams[partition], let number = stream.outgoing.number,
      let state = ledger.partitions[partition]
    else { return }
    let name = state.name
    var batch: [RunBatch.Entry] = []
    var bytes = 0
    func close() {
      if !batch.isEmpty { step.emit(.send(id, .runs(RunBatch(name: name, stream: number, entries: batch)))) }
      (batch, bytes) = ([], 0)
    }
    var hasForks = !stream.forks.heldBack.isEmpty || !state.log.forkPoints.isEmpty
    for run in runs where !stream.covers(run.replica, run.last) && !stream.forks.holdsBack(run.replica) {
      // Where nothing has forked, the order of arrival is enough.
      guard !hasForks || stream.maySend(run, state.log) else { continue }
      guard stream.continues(run) else {
        hasForks = true
        if !sparesBranches(of: run.replica, session), stream.forks.begin(run.replica) {
          tellSearch(id, partition, run.replica, &step)
        }
        stream.forks.holdBack(run.replica)
        continue
      }
      if let apart = run.apart {
        close()
        for piece in stream.outgoing.pieces(of: apart, in: name, on: number) {
          step.emit(.send(id, .payloadPiece(piece)))
        }
      }
      batch.append(stream.outgoing.put(run))
      bytes += run.encoded.count + run.context.count * RunBatch.contextEntryBytes
      if bytes >= RunBatch.byteTarget || batch.count == RunBatch.entryLimit { close() }
    }
    close()
    sessions[id]?.streams[partition] = stream
  }

  /// Durable now: tell everyone who cares, and send it to those who lack it.
  mutating func committed(_ partition: PartitionID, _ source: SessionID?, _ runs: [LoggedRun], _ step: inout Step) {
    guard let state = ledger.partitions[partition] else { return }
    noteGrowth(state, runs)
    let before = Mesh.vector(state.log.clipped, before: runs)
    // By id: a session that were held here would be copied, with all its streams, by the first of them to change.
    for id in sessions.keys.sorted() where sessions[id].map({ isInScope($0, state) }) == true {
      let isCompared = isComparedWith(id, partition)
      // Also where it is told only at the comparison's end: what the peer says or sends until then finds the stream as it
      // was before the change, not one on which the peer has it already.
      openIfLevel(id, partition, before, &step)
      guard isCompared else {
        if sessions[id]?.comparison.changed[partition] == nil { sessions[id]?.comparison.changed[partition] = before }
        continue
      }
      announce(id, state, runs, source: source, &step)
      push(id, partition, source, runs, &step)
    }
    if source == nil { placeGained(partition, &step) }
    noteProgress(partition, source, &step)
  }

  /// No comparison is under way, or still to come, that does not know of what was just committed.
  private func isComparedWith(_ id: SessionID, _ partition: PartitionID) -> Bool {
    guard let session = sessions[id], session.phase == .live, session.comparison.hasBegun else { return false }
    return !session.comparison.isUnderWay || session.streams[partition] != nil
  }

  private static func vector(_ vector: VersionVector, before runs: [LoggedRun]) -> VersionVector {
    var before = vector
    for run in runs.reversed() {
      before[run.replica] =
        run.first > 1 ? ChainPosition(sequence: run.first - 1, tip: run.hashBefore.tip) : nil
    }
    return before
  }

  /// Between equal summaries and the first change the stream needs no entry: it begins with the vector of then.
  private mutating func openIfLevel(
    _ id: SessionID, _ partition: PartitionID, _ before: VersionVector, _ step: inout Step
  ) {
    guard let session = sessions[id], session.streams[partition] == nil, let state = ledger.partitions[partition],
      session.level.contains(partition, state.name)
    else { return }
    sessions[id]?.streams[partition] = PeerStream(state.name, known: before, number: PeerStream.level, now: step.now)
  }

  private mutating func announce(
    _ id: SessionID, _ state: PartitionState, _ runs: [LoggedRun], source: SessionID?, _ step: inout Step
  ) {
    // Own runs are announced by sending them, where a stream is open.
    guard source != nil || sessions[id]?.streams[state.id]?.outgoing.number == nil else { return }
    let offered = state.log.clipped
    var changed = VersionVector()
    for run in runs where changed[run.replica] == nil { changed[run.replica] = offered[run.replica] }
    guard !changed.isEmpty else { return }
    send(PartitionVector(name: state.name, vector: changed), to: id, &step) { .have($0) }
  }

  private mutating func push(
    _ id: SessionID, _ partition: PartitionID, _ source: SessionID?, _ runs: [LoggedRun], _ step: inout Step
  ) {
    guard id != source, let session = sessions[id], let stream = session.streams[partition],
      stream.outgoing.number != nil
    else { return }
    if source == nil {
      // From memory when the peer lacks nothing before them, from the log otherwise.
      let isNext =
        session.isWritable && !stream.outgoing.isLoading && session.relaysDue[partition] == nil
        && stream.isFollowed(by: runs) && isItsTurn(session, partition, stream.name)
      if isNext { send(runs, to: id, partition, &step) } else { pump(id, partition, &step) }
    } else if runs.contains(where: { !stream.covers($0.replica, $0.last) }), session.relaysDue[partition] == nil {
      sessions[id]?.relaysDue[partition] = step.now.advanced(byMilliseconds: configuration.relayMilliseconds)
    }
  }

  /// Room again: go on with whatever this peer lacks.
  mutating func resume(_ id: SessionID, _ step: inout Step) {
    guard sessions[id]?.isWritable == false else { return }
    sessions[id]?.isWritable = true
    pumpStatements(id, &step)
    for partition in inOrder(id) { pump(id, partition, &step) }
  }

  /// The shell's send queue for this session is above its mark.
  package mutating func pause(_ id: SessionID) { sessions[id]?.isWritable = false }
}
