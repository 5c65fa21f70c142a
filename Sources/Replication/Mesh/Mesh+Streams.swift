// The sending side of the stream rule (C9): one stream per session and partition, catch-up first and live as its
// continuation, in order of arrival, skipping only what the peer has announced after its commit.
extension Mesh {
  mutating func receivePull(_ id: SessionID, _ number: UInt64, _ wanted: PartitionVector, _ step: inout Step) {
    guard let session = sessions[id], number > 0 else { return }
    let partition = wanted.name.id(fleet: local.fleet, hash: cryptography.hash)
    guard isInScope(session, partition, wanted.name) else { return }
    guard var stream = session.streams[partition] ?? newStream(session, partition, wanted.name, step.now) else {
      return
    }
    // Who pulls did not find it level.
    if session.streams[partition] == nil { stream.incoming = nil }
    stream.known = boundedVector(declared(wanted.vector, partition), id, partition, step.now)
    stream.sent = VersionVector()
    voidLoad(id, partition)
    stream.isLoading = false
    stream.outgoing = number
    stream.staged = Dictionary(wanted.staged.map { ($0.hash, $0.byteCount) }) { first, _ in first }
    stream.outgoingBase = nil
    sessions[id]?.relaysDue[partition] = nil
    sessions[id]?.streams[partition] = stream
    checkPeerVector(id, partition, wanted, &step)
    showForks(id, partition, anew: false, &step)
    considerPull(id, partition, &step)
    pump(id, partition, &step)
  }

  /// Asks the log for what the peer lacks, if there is room to send it.
  mutating func pump(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let session = sessions[id], session.phase == .live, session.isWritable, let state = partitions[partition],
      let stream = session.streams[partition], stream.outgoing != nil, !stream.isLoading,
      lacks(stream, partition), isItsTurn(session, partition, stream.name)
    else { return }
    var have = stream.announcedOrSent
    for replica in stream.forked { have[replica] = state.log.clipped[replica] }
    sessions[id]?.streams[partition]?.isLoading = true
    sessions[id]?.relaysDue[partition] = nil
    let byteLimit = stream.loadByteLimit ?? loadByteLimit(session)
    step.emit(.load(id, partition, have: have, byteLimit: byteLimit))
  }

  private func lacks(_ stream: PeerStream, _ partition: PartitionID) -> Bool {
    guard let state = partitions[partition] else { return false }
    return state.log.clipped.entries.contains {
      !stream.covers($0.key, $0.value.sequence) && !stream.forked.contains($0.key)
    }
  }

  mutating func loaded(
    _ id: SessionID, _ partition: PartitionID, _ runs: [LoggedRun], _ hasMore: Bool, _ step: inout Step
  ) {
    guard !isVoidLoad(id, partition), let before = sessions[id]?.streams[partition] else { return }
    sessions[id]?.streams[partition]?.isLoading = false
    send(runs, to: id, partition, &step)
    // What was all left out would be read again and again: past it lies what can go.
    let isStuck = hasMore && sessions[id]?.streams[partition]?.sent == before.sent
    let limit = before.loadByteLimit ?? sessions[id].map(loadByteLimit) ?? configuration.loadByteLimit
    // What nothing can be sent of within the largest load waits for the searches that hold it back.
    guard !isStuck || limit < MeshConfiguration.largestLoadByteLimit else { return pumpBehind(partition, id, &step) }
    sessions[id]?.streams[partition]?.loadByteLimit =
      isStuck ? min(limit.multipliedReportingOverflow(by: 2).partialValue, MeshConfiguration.largestLoadByteLimit) : nil
    if hasMore { pump(id, partition, &step) }
    pumpBehind(partition, id, &step)
  }

  /// What was asked of the log for the stream as it is now is not sent on the next one. The log answers in order.
  mutating func voidLoad(_ id: SessionID, _ partition: PartitionID) {
    guard sessions[id]?.streams[partition]?.isLoading == true else { return }
    sessions[id]?.voidLoads[partition, default: 0] += 1
  }

  private mutating func isVoidLoad(_ id: SessionID, _ partition: PartitionID) -> Bool {
    guard let count = sessions[id]?.voidLoads[partition] else { return false }
    sessions[id]?.voidLoads[partition] = count > 1 ? count - 1 : nil
    return true
  }

  /// Sends what the peer still lacks of these runs, in their order.
  private mutating func send(_ runs: [LoggedRun], to id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard var stream = sessions[id]?.streams[partition], let number = stream.outgoing,
      let name = partitions[partition]?.name
    else { return }
    var batch: [RunBatch.Entry] = []
    var bytes = 0
    func close() {
      if !batch.isEmpty { step.emit(.send(id, .runs(RunBatch(name: name, stream: number, entries: batch)))) }
      (batch, bytes) = ([], 0)
    }
    var hasForks = !stream.forked.isEmpty || partitions[partition]?.log.forkPoints.isEmpty == false
    for run in runs where !stream.covers(run.replica, run.last) && !stream.forked.contains(run.replica) {
      // Where nothing has forked, the order of arrival is enough.
      if hasForks { guard isChosen(run, partition), isCovered(run, stream, partition) else { continue } }
      guard continues(stream, run) else {
        hasForks = true
        stream.forked.insert(run.replica)
        searchFork(id, partition, run.replica, &step)
        continue
      }
      if let apart = run.apart {
        close()
        for piece in apart.pieces(from: stream.staged[apart.hash] ?? 0, of: name, on: number) {
          step.emit(.send(id, .payloadPiece(piece)))
        }
      }
      batch.append(
        RunBatch.Entry(context: ContextForm.shorter(run.context, base: stream.outgoingBase), encoded: run.encoded))
      stream.outgoingBase = run.context
      stream.sent[run.replica] = ChainPosition(sequence: run.last, tip: .zero)
      bytes += run.encoded.count + run.context.count * RunBatch.contextEntryBytes
      if bytes >= RunBatch.byteTarget || batch.count == RunBatch.entryLimit { close() }
    }
    close()
    sessions[id]?.streams[partition] = stream
  }

  /// Off the branch that counts here nothing is sent on a stream; forks are shown apart.
  private func isChosen(_ run: LoggedRun, _ partition: PartitionID) -> Bool {
    guard let log = partitions[partition]?.log, log.forkPoints[run.replica] != nil else { return true }
    guard let hash = run.hashAtLast else { return false }
    return log.judge(ChainPosition(sequence: run.last, tip: hash.tip), of: run.replica, stored: { _, _ in hash.tip })
      == .known
      && log.standing(
        of: ChainPosition(sequence: run.last, tip: hash.tip), of: run.replica, stored: { _, _ in hash.tip }) == run.last
  }

  /// The peer has, or gets before it, what the run follows and what it has seen.
  private func isCovered(_ run: LoggedRun, _ stream: PeerStream, _ partition: PartitionID) -> Bool {
    guard let log = partitions[partition]?.log else { return true }
    return (run.first == 1 || stream.covers(run.replica, run.first - 1))
      && run.context.entries.allSatisfy { replica, position in
        stream.covers(replica, position.sequence)
          || !stream.forked.contains(replica)
            && stream.covers(replica, log.owed(position.sequence, of: replica))
      }
  }

  /// The run follows on what the peer says it has: its tip is our hash there. If not, the histories differ (C5).
  private func continues(_ stream: PeerStream, _ run: LoggedRun) -> Bool {
    guard let known = stream.known[run.replica], known.sequence == run.first - 1 else { return true }
    return known.tip == run.hashBefore.tip
  }

  /// Durable now: tell everyone who cares, and send it to those who lack it.
  mutating func committed(_ partition: PartitionID, _ source: SessionID?, _ runs: [LoggedRun], _ step: inout Step) {
    guard let state = partitions[partition] else { return }
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
    guard let session = sessions[id], session.streams[partition] == nil, let state = partitions[partition],
      session.level.contains(partition, state.name)
    else { return }
    sessions[id]?.streams[partition] = PeerStream(state.name, known: before, number: PeerStream.level, now: step.now)
  }

  private mutating func announce(
    _ id: SessionID, _ state: PartitionState, _ runs: [LoggedRun], source: SessionID?, _ step: inout Step
  ) {
    // Own runs are announced by sending them, where a stream is open.
    guard source != nil || sessions[id]?.streams[state.id]?.outgoing == nil else { return }
    let offered = state.log.clipped
    var changed = VersionVector()
    for run in runs where changed[run.replica] == nil { changed[run.replica] = offered[run.replica] }
    guard !changed.isEmpty else { return }
    send(PartitionVector(name: state.name, vector: changed), to: id, &step) { .have($0) }
  }

  private mutating func push(
    _ id: SessionID, _ partition: PartitionID, _ source: SessionID?, _ runs: [LoggedRun], _ step: inout Step
  ) {
    guard id != source, let session = sessions[id], let stream = session.streams[partition], stream.outgoing != nil
    else { return }
    if source == nil {
      // From memory when the peer lacks nothing before them, from the log otherwise.
      let isNext =
        session.isWritable && !stream.isLoading && session.relaysDue[partition] == nil && followOn(runs, stream)
        && isItsTurn(session, partition, stream.name)
      if isNext { send(runs, to: id, partition, &step) } else { pump(id, partition, &step) }
    } else if runs.contains(where: { !stream.covers($0.replica, $0.last) }), session.relaysDue[partition] == nil {
      sessions[id]?.relaysDue[partition] = step.now.advanced(byMilliseconds: configuration.relayMilliseconds)
    }
  }

  private func followOn(_ runs: [LoggedRun], _ stream: PeerStream) -> Bool {
    runs.allSatisfy { run in
      run.first == 1 || stream.covers(run.replica, run.first - 1)
        || runs.contains { $0.replica == run.replica && $0.last == run.first - 1 }
    } && runs.allSatisfy { run in run.context.entries.allSatisfy { stream.covers($0.key, $0.value.sequence) } }
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
