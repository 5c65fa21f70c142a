// The receiving side: what peers say they hold, whom to ask, and what to do with the runs that come.
extension Mesh {
  mutating func receiveVector(_ id: SessionID, _ item: PartitionVector, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let partition = item.name.id(fleet: local.fleet, hash: cryptography.hash)
    guard isInScope(session, partition, item.name) else { return }
    ensurePartition(partition, item.name, &step)
    var stream = session.streams[partition] ?? newStream(session, partition, step.now)
    note(item.vector, on: &stream, partition)
    sessions[id]?.streams[partition] = stream
    checkPeerVector(id, partition, item.vector, &step)
    doubtLevelStream(id, partition)
    repullIfSilent(id, partition, &step)
    considerPull(id, partition, &step)
  }

  /// Equal summaries open streams only where both ends held the same scope against them, and an interest that changed
  /// during the handshake may have reached one of them alone. A peer that names more than it sent is therefore asked.
  private mutating func doubtLevelStream(_ id: SessionID, _ partition: PartitionID) {
    guard let stream = sessions[id]?.streams[partition], stream.incoming == PeerStream.level,
      isAhead(stream, partition), partitions[partition]?.catchUp == nil
    else { return }
    sessions[id]?.streams[partition]?.incoming = nil
  }

  /// Of a forked chain only what lies on the branch chosen here is what the peer has of it.
  private func note(_ vector: VersionVector, on stream: inout PeerStream, _ partition: PartitionID) {
    stream.known.join(vector)
    guard let log = partitions[partition]?.log else { return }
    for (replica, entry) in vector.entries where log.forkPoints[replica] != nil {
      let standing = log.standing(of: entry, of: replica) { _, _ in entry.tip }
      stream.known[replica] = standing > 0 ? ChainPosition(sequence: standing, tip: entry.tip) : nil
      stream.sent[replica] = nil
    }
  }

  func newStream(_ session: PeerSession, _ partition: PartitionID, _ now: MonotonicTime) -> PeerStream {
    guard let state = partitions[partition], session.isLevel(state) else {
      return PeerStream(known: VersionVector(), lastProgress: now)
    }
    return PeerStream(
      known: state.log.clipped, outgoing: PeerStream.level, incoming: PeerStream.level, lastProgress: now)
  }

  mutating func ensurePartition(_ id: PartitionID, _ name: PartitionName, _ step: inout Step) {
    guard partitions[id] == nil else { return }
    partitions[id] = PartitionState(
      id: id, name: name, log: newLog(id, name))
    step.emit(.createPartition(id, name))
  }

  func newLog(_ id: PartitionID, _ name: PartitionName) -> PartitionLog {
    let (fleet, hash) = (local.fleet, cryptography.hash)
    return PartitionLog(name, authority: authority) { replica in
      ChainIdentity(fleet: fleet, partition: id, replica: replica).genesis(hash)
    }
  }

  /// The peer has something that this node lacks.
  private func isAhead(_ stream: PeerStream, _ partition: PartitionID) -> Bool {
    guard let state = partitions[partition] else { return false }
    let received = state.log.received
    return stream.known.entries.contains {
      $0.value.sequence > received.sequence(of: $0.key) && !stream.forked.contains($0.key)
    }
  }

  /// A stream is asked for once: at once from a peer that has nothing new, else from one peer at a time.
  mutating func considerPull(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let session = sessions[id], session.phase == .live, let stream = session.streams[partition],
      stream.incoming == nil
    else { return }
    if isAhead(stream, partition) {
      guard partitions[partition]?.catchUp == nil else { return }
      partitions[partition]?.catchUp = (id, step.now)
    }
    pull(id, partition, &step)
  }

  private mutating func pull(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let session = sessions[id], let state = partitions[partition] else { return }
    sessions[id]?.nextStream += 1
    sessions[id]?.streams[partition]?.incoming = session.nextStream
    sessions[id]?.streams[partition]?.incomingBase = nil
    sessions[id]?.streams[partition]?.lastProgress = step.now
    let vector = PartitionVector(
      name: state.name, vector: state.log.clipped, staged: Array(staged.prefix(PartitionVector.stagedLimit)))
    step.emit(.send(id, .pull(stream: session.nextStream, vector)))
  }

  /// An open stream that brings nothing although the peer is ahead is asked for anew: pairwise exchange is the truth.
  private mutating func repullIfSilent(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let stream = sessions[id]?.streams[partition], stream.incoming != nil, isAhead(stream, partition),
      step.now.millisecondsSince(stream.lastProgress) > configuration.catchUpSilenceMilliseconds,
      partitions[partition]?.catchUp.map({ $0.session == id }) ?? true
    else { return }
    partitions[partition]?.catchUp = (id, step.now)
    pull(id, partition, &step)
  }

  mutating func pullWherePossible(_ partition: PartitionID, _ step: inout Step) {
    for id in sessions.keys.sorted() { considerPull(id, partition, &step) }
  }

  /// Level with the peer that did the catch-up: the others may open their streams now.
  mutating func noteProgress(_ partition: PartitionID, _ source: SessionID?, _ step: inout Step) {
    guard let catchUp = partitions[partition]?.catchUp else { return }
    if catchUp.session == source { partitions[partition]?.catchUp?.progress = step.now }
    guard let stream = sessions[catchUp.session]?.streams[partition], isAhead(stream, partition) else {
      partitions[partition]?.catchUp = nil
      if let name = partitions[partition]?.name { step.emit(.note(catchUp.session, .levelWith(name))) }
      return pullWherePossible(partition, &step)
    }
  }

  // MARK: Runs

  mutating func receiveRuns(_ id: SessionID, _ batch: RunBatch, _ runs: [IncomingRun], _ step: inout Step) {
    guard let session = sessions[id], session.phase == .live else { return }
    sessions[id]?.lastHeard = step.now
    let partition = batch.name.id(fleet: local.fleet, hash: cryptography.hash)
    guard isInScope(session, partition, batch.name) else { return }
    ensurePartition(partition, batch.name, &step)
    let opened = session.streams[partition] ?? newStream(session, partition, step.now)
    sessions[id]?.streams[partition] = opened
    if !batch.isForkEvidence {
      // Batches of a stream that was since asked for anew are void: their contexts stand on another base. One that only
      // the peer took for open is asked for now.
      guard opened.incoming == batch.stream else { return considerPull(id, partition, &step) }
      sessions[id]?.streams[partition]?.lastProgress = step.now
    }
    var resolved: [DeliveredRun] = []
    for run in runs {
      guard let context = resolve(run, id, partition, isForkEvidence: batch.isForkEvidence, &step) else { break }
      resolved.append(DeliveredRun(incoming: run, context: context))
    }
    let parked = ParkedRuns(session: id, runs: resolved[...], isForkEvidence: batch.isForkEvidence)
    guard partitions[partition]?.awaitedHeaders == 0 else {
      partitions[partition]?.parked.append(parked)
      return
    }
    process(parked, partition, &step)
  }

  /// Nil after the session was failed: the resolved context must be what the author hashed.
  private mutating func resolve(
    _ run: IncomingRun, _ id: SessionID, _ partition: PartitionID, isForkEvidence: Bool, _ step: inout Step
  ) -> VersionVector? {
    guard let stream = sessions[id]?.streams[partition] else { return nil }
    let context = run.context.resolved(on: isForkEvidence ? nil : stream.incomingBase)
    guard RunRecord.digest(of: context, cryptography.hash) == run.contextDigest else {
      fail(id, .protocolError, "a context that does not match its digest", &step)
      return nil
    }
    guard run.elementDots.allSatisfy({ $0.value <= context.sequence(of: $0.key) }) else {
      fail(id, .protocolError, "a change that names list elements it had not seen", &step)
      return nil
    }
    if !isForkEvidence { sessions[id]?.streams[partition]?.incomingBase = context }
    return context
  }

  mutating func process(_ batch: ParkedRuns, _ partition: PartitionID, _ step: inout Step) {
    guard let name = partitions[partition]?.name else { return }
    var kept: [DeliveredRun] = []
    var rest = batch.runs
    walk: while let run = rest.first {
      guard let summary = RunSummary(run, in: name) else {
        fail(batch.session, .protocolError, "a run by a replica that nobody declared", &step)
        break
      }
      notePeerHolds(run, batch.session, partition)
      switch partitions[partition]?.log.deliver(summary) {
      case .take: break
      case .have, nil:
        rest.removeFirst()
        continue walk
      case .aside(let reason):
        if reason == .fork {
          if run.incoming.replica == ownReplica { step.emit(.renewReplica(name)) }
          searchFork(batch.session, partition, run.incoming.replica, &step)
        }
        // Work that does not count now is kept all the same; what nothing leads to yet is asked for again later.
        guard reason.isKept || batch.isForkEvidence, isCausal(run, batch, partition) else {
          rest.removeFirst()
          continue walk
        }
      case .error where mayComeAhead(batch, partition):
        postpone(run, batch, partition)
        rest.removeFirst()
        continue walk
      case .needsHeaders(let request):
        emit(kept, partition, batch.session, &step)
        return park(batch.rest(rest), partition, until: [request], &step)
      case .refuse(let reason):
        fail(batch.session, .protocolError, "a run that nobody may send: \(reason)", &step)
        break walk
      case .error(let reason):
        fail(batch.session, .protocolError, "an undeliverable run: \(reason)", &step)
        break walk
      }
      switch partitions[partition]?.log.learn(summary) {
      case .done(let change):
        if run.incoming.replica == ownReplica { step.emit(.renewReplica(name)) }
        kept.append(settled(run, change, partition))
        if let forked = change.forkedReplica { spreadFork(forked, partition, &step) }
      case .needsHeaders(let requests):
        emit(kept, partition, batch.session, &step)
        return park(batch.rest(rest), partition, until: requests, &step)
      case .ignored, nil: break
      }
      rest.removeFirst()
    }
    emit(kept, partition, batch.session, &step)
    if !kept.isEmpty { takePostponed(partition, &step) }
  }

  private func emit(_ kept: [DeliveredRun], _ partition: PartitionID, _ source: SessionID, _ step: inout Step) {
    if !kept.isEmpty { step.emit(.apply(partition, source: source, kept)) }
  }

  /// Marks the run with what it moved, unless that is the usual: all of it counts, is new to everything that counts, and
  /// was not issued before.
  private func settled(_ run: DeliveredRun, _ change: LogChange, _ partition: PartitionID) -> DeliveredRun {
    guard let state = partitions[partition] else { return run }
    var run = run
    let (replica, acceptance) = (run.incoming.replica, change.acceptance)
    let isPlain =
      acceptance.count == 1 && acceptance[0].lost.isEmpty && acceptance[0].gained == run.incoming.hashes
      && change.effects.isEmpty && run.incoming.facts.allSatisfy { $0.origin == nil }
      && !state.log.hasForkIn(run.context, of: replica)
      && authority.floor(of: replica, in: state.name) == .max
    run.change = isPlain ? nil : change
    return run
  }

  /// Whoever sends from its log has it.
  private mutating func notePeerHolds(_ run: DeliveredRun, _ id: SessionID, _ partition: PartitionID) {
    guard let tip = run.incoming.hashes.last?.tip else { return }
    var one = VersionVector()
    one[run.incoming.replica] = ChainPosition(sequence: run.last, tip: tip)
    sessions[id]?.streams[partition]?.known.join(one)
  }
}

extension AsideReason {
  /// Kept although it does not count.
  fileprivate var isKept: Bool {
    switch self {
    case .fork, .aboveBound: true
    case .gap, .fallenRight: false
    }
  }
}

extension RunSummary {
  /// Nil where the signer could not be found out: the replica is not declared.
  init?(_ run: DeliveredRun, in partition: PartitionName) {
    guard let signer = run.incoming.signer else { return nil }
    self.init(
      partition: partition, replica: run.incoming.replica, first: run.incoming.first,
      hashBefore: run.incoming.hashBefore, hashes: run.incoming.hashes, context: run.context, signer: signer,
      facts: run.incoming.facts)
  }
}
