// The receiving side: whom to ask, and what to do with the runs that come.
extension Mesh {
  /// A stream is asked for once: at once from a peer that has nothing new, else from one peer at a time.
  mutating func considerPull(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let session = sessions[id], let stream = session.live?.streams[partition],
      stream.incoming.number == nil
    else { return }
    if stream.isAhead(of: ledger.partitions[partition]?.log) {
      guard catchUps.session(of: partition) == nil, isItsTurnToCome(session, partition, stream.name) else { return }
      catchUps.begin(partition, on: id, for: stream.known, step.now)
    }
    sessions[id]?.pull(partition, ledger, &step)
  }

  /// What comes does not fit the stream that equal summaries opened: now it is asked for, under a number of its own.
  mutating func pullInsteadOfLevel(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    sessions[id]?.live?.streams[partition]?.incoming.close()
    considerPull(id, partition, &step)
  }

  private func isOnLevelStream(_ batch: ParkedRuns, _ partition: PartitionID) -> Bool {
    sessions[batch.session]?.live?.streams[partition]?.incoming.isLevel == true
  }

  /// Whether what such runs stand on may come from somebody else.
  private func isLeftToOthers(_ batch: ParkedRuns) -> Bool {
    !batch.isForkEvidence && sessions[batch.session]?.sparing != nil && hasOthers(than: batch.session)
  }

  /// Equal summaries open streams only where both ends held the same scope against them, and an interest that changed
  /// during the handshake may have reached one of them alone. A peer that names more than it sent is therefore asked. What
  /// others than the two wrote it may leave to others: that is asked for where nobody brings it.
  mutating func doubtLevelStream(_ id: SessionID, _ partition: PartitionID) {
    guard let session = sessions[id], let stream = session.live?.streams[partition], stream.incoming.isLevel,
      catchUps.session(of: partition) == nil
    else { return }
    let ahead = stream.chainsAhead(of: ledger.partitions[partition]?.log)
    let both = [session.peer, ledger.device]
    guard
      ahead.contains(where: { replica in
        session.sparing == nil || !hasOthers(than: id)
          || ledger.authority.author(of: replica).map(both.contains) ?? true
      })
    else { return }
    sessions[id]?.live?.streams[partition]?.incoming.close()
  }

  /// Nothing that goes before it on a link with an order is coming from the peer.
  func isItsTurnToCome(_ session: PeerSession, _ partition: PartitionID, _ name: PartitionName) -> Bool {
    guard session.passage.isOrdered, let rank = session.passage.rank(partition, name) else { return true }
    return !catchUps.partitions(of: session.id).contains { other in
      session.live?.streams[other].flatMap { session.passage.rank(other, $0.name) }.map { $0 < rank } ?? false
    }
  }

  mutating func pullInOrder(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], session.passage.isOrdered else { return }
    for partition in session.inOrder { considerPull(id, partition, &step) }
  }

  /// An open stream that brings nothing although the peer is ahead is asked for anew: pairwise exchange is the truth.
  mutating func repullIfSilent(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let stream = sessions[id]?.live?.streams[partition], stream.incoming.number != nil,
      stream.isAhead(of: ledger.partitions[partition]?.log),
      stream.incoming.isSilent(for: configuration.catchUpSilenceMilliseconds, step.now),
      catchUps.session(of: partition) ?? id == id
    else { return }
    catchUps.begin(partition, on: id, for: stream.known, step.now)
    sessions[id]?.pull(partition, ledger, &step)
  }

  mutating func pullWherePossible(_ partition: PartitionID, _ step: inout Step) {
    for id in sessions.keys.sorted() { considerPull(id, partition, &step) }
  }

  /// Level with the peer that did the catch-up: the others may open their streams now.
  mutating func noteProgress(
    _ partition: PartitionID, _ source: SessionID?, byteCount: Int = 0, _ step: inout Step
  ) {
    guard let session = catchUps.session(of: partition) else { return }
    if session == source { catchUps.noteProgress(partition, byteCount, step.now) }
    guard let stream = sessions[session]?.live?.streams[partition],
      stream.isAhead(of: ledger.partitions[partition]?.log)
    else {
      catchUps.end(partition)
      // Who has brought it all hears at once that it is here.
      sessions[session]?.announceGathered(ledger, &step)
      if let name = ledger.partitions[partition]?.name { step.emit(.note(session, .levelWith(name))) }
      pullWherePossible(partition, &step)
      return pullInOrder(session, &step)
    }
  }

  // MARK: Runs

  mutating func receiveRuns(_ id: SessionID, _ batch: RunBatch, _ runs: [IncomingRun], _ step: inout Step) {
    guard let session = sessions[id], session.phase == .live else { return }
    sessions[id]?.pulse.hear(step.now)
    let partition = ledger.id(of: batch.name)
    guard session.isInScope(partition, batch.name, ledger) else {
      guard batch.isForkEvidence, session.takesHeldWork(runs, partition, batch.name, ledger) else { return }
      return take(batch, runs, id, partition, &step)
    }
    guard let opened = session.stream(partition, batch.name, ledger, step.now) else { return }
    sessions[id]?.live?.streams[partition] = opened
    if !batch.isForkEvidence {
      // Batches of a stream that was since asked for anew are void: their contexts stand on another base. One that only
      // the peer took for open is asked for now.
      guard opened.incoming.number == batch.stream else { return considerPull(id, partition, &step) }
      sessions[id]?.live?.streams[partition]?.incoming.noteProgress(step.now)
    }
    take(batch, runs, id, partition, &step)
  }

  private mutating func take(
    _ batch: RunBatch, _ runs: [IncomingRun], _ id: SessionID, _ partition: PartitionID, _ step: inout Step
  ) {
    let parked = ParkedRuns(
      session: id, runs: runs.map { .arrived($0) }[...], stream: batch.isForkEvidence ? nil : batch.stream)
    take(parked, partition, batch.name, &step)
  }

  private mutating func take(
    _ parked: ParkedRuns, _ partition: PartitionID, _ name: PartitionName, _ step: inout Step
  ) {
    guard ledger.partitions[partition]?.waiting.awaitsHeaders != true else {
      ledger.partitions[partition]?.waiting.append(parked)
      return
    }
    // A partition begins with the first run that is kept.
    ledger.expect(partition, name)
    process(parked, partition, &step)
    ledger.dropNothing(partition)
  }

  /// Judged as evidence that a peer shows: it stands outside of every stream. What is not taken is nobody's breach, since
  /// no session brought it, and does not wait for what leads to it: whoever reads a ledger brings that first.
  mutating func receiveFromLedger(_ name: PartitionName, _ run: DeliveredRun, _ step: inout Step) {
    let parked = ParkedRuns(session: .ledger, runs: [.resolved(run)], stream: nil)
    take(parked, ledger.id(of: name), name, &step)
  }

  /// The run with its context put together. Nil where the session has ended, or asked for its stream anew since, and after it
  /// was failed: the context must be what the author hashed.
  private mutating func resolved(
    _ waiting: ParkedRuns.Waiting, _ batch: ParkedRuns, _ partition: PartitionID, entries: inout Int,
    _ step: inout Step
  ) -> DeliveredRun? {
    guard case .arrived(let run) = waiting else {
      if case .resolved(let run) = waiting { return run }
      return nil
    }
    let id = batch.session
    guard let session = sessions[id],
      batch.isForkEvidence || session.live?.streams[partition]?.incoming.number == batch.stream
    else {
      return nil
    }
    let place = ledger.partitions[partition].map {
      BrokenRule.Place(partition: $0.name, replica: run.replica, sequence: run.first)
    }
    let context = run.context.resolved(on: batch.isForkEvidence ? nil : session.live?.streams[partition]?.incoming.base)
    entries += context.count
    guard context.count <= RunSummary.contextEntryLimit, entries <= RunBatch.contextEntryLimit else {
      fail(id, breaking: "contexts of one message with too many entries", place, &step)
      return nil
    }
    guard RunRecord.digest(of: context, cryptography.hash) == run.contextDigest else {
      if !batch.isForkEvidence, session.live?.streams[partition]?.incoming.lacksBase(of: run) == true {
        pullInsteadOfLevel(id, partition, &step)
      } else {
        fail(id, breaking: "a context that does not match its digest", place, &step)
      }
      return nil
    }
    guard run.elementDots.allSatisfy({ $0.value <= context.sequence(of: $0.key) }) else {
      fail(id, breaking: "a change that names list elements it had not seen", place, &step)
      return nil
    }
    if !batch.isForkEvidence { sessions[id]?.live?.streams[partition]?.incoming.base = context }
    return DeliveredRun(incoming: run, context: context)
  }

  mutating func process(_ batch: ParkedRuns, _ partition: PartitionID, _ step: inout Step) {
    guard let name = ledger.partitions[partition]?.name else { return }
    var kept: [DeliveredRun] = []
    var heldAbove: Set<ReplicaID> = []
    var isLeftOutAnew = false
    var branches: Set<ReplicaID> = []
    defer {
      spreadHeld(heldAbove, partition, &step)
      for replica in branches.sorted() { spreadFork(replica, partition, &step) }
    }
    var rest = batch.runs
    var entries = 0
    walk: while let waiting = rest.first {
      guard let run = resolved(waiting, batch, partition, entries: &entries, &step) else { break }
      // Its base has gone on: whatever makes it wait, it is not put together again.
      rest[rest.startIndex] = .resolved(run)
      guard let summary = RunSummary(run, in: name) else {
        if leaveOutNarrowed(run, name, batch.session, partition) {
          rest.removeFirst()
          continue walk
        }
        fail(batch.session, breaking: "a run by a replica that nobody declared", place(run, in: name), &step)
        break
      }
      sessions[batch.session]?.live?.streams[partition]?.noteHolding(of: run)
      switch ledger.partitions[partition]?.log.deliver(summary) {
      case .take: break
      case .have, nil:
        rest.removeFirst()
        continue walk
      case .aside(.lacksRight):
        leaveOut(run.incoming.replica, batch.session, partition)
        if batch.isForkEvidence {
          sessions[batch.session]?.noteHandedOverEarly(run.incoming.replica, name, ledger)
        }
        rest.removeFirst()
        continue walk
      case .aside(let reason):
        if reason == .fork {
          foundOwnRun(run, name, &step)
          sessions[batch.session]?.searchFork(partition, run.incoming.replica, ledger, &step)
        }
        // Work that does not count now is kept all the same; what nothing leads to yet is asked for again later.
        guard reason.isKept || batch.isForkEvidence, isCausal(run, batch, partition) else {
          rest.removeFirst()
          continue walk
        }
        if case .aboveBound = reason { heldAbove.insert(run.incoming.replica) }
        // Also where a branch that has lost goes on: no vector tells of it.
        if reason == .fork { branches.insert(run.incoming.replica) }
      case .error(let reason) where mayComeAhead(batch, partition):
        foundOwnRun(run, name, &step)
        postpone(run, batch, partition)
        // What was left out does not come ahead by itself.
        if reason == .context, ledger.vouches(summary, for: leftOut(batch.session, partition)) {
          reopen(batch.session, partition, takesAll: true, &step)
        }
        rest.removeFirst()
        continue walk
      case .error(.context) where ledger.vouches(summary, for: leftOut(batch.session, partition)):
        reopen(batch.session, partition, takesAll: true, &step)
        break walk
      case .error where leftOut(batch.session, partition)?.isStoodOn(by: run) == true:
        leaveOut(run.incoming.replica, batch.session, partition)
        rest.removeFirst()
        continue walk
      case .error where isOnLevelStream(batch, partition) && !isLeftToOthers(batch):
        // Equal summaries opened the stream, and what they were equal about has changed.
        pullInsteadOfLevel(batch.session, partition, &step)
        break walk
      case .error where !batch.isForkEvidence && sessions[batch.session]?.sparing != nil:
        // What it stands on was left to others, and is on its way from them.
        postpone(run, batch, partition)
        sessions[batch.session]?.sparing?.noteBehind(partition, step.now)
        rest.removeFirst()
        continue walk
      case .needsHeaders(let request):
        emit(kept, partition, batch.session, &step)
        return park(batch.rest(rest), partition, until: [request], &step)
      case .refuse(let reason):
        fail(batch.session, breaking: "a run that nobody may send: \(reason)", place(run, in: name), &step)
        break walk
      case .error(let reason):
        let why =
          reason == .gap ? "a run without those of its chain before it" : "a run without what its author had seen"
        fail(batch.session, breaking: why, place(run, in: name), &step)
        break walk
      }
      if let beyond = ledger.beyondAllowance(summary, partition, leftOut(batch.session, partition)) {
        if leaveOut(summary, beyond: beyond, batch.session, partition) { isLeftOutAnew = true }
        rest.removeFirst()
        continue walk
      }
      switch learn(summary, in: partition) {
      case .done(let change):
        foundReissue(summary, partition, &step)
        foundOwnRun(run, name, &step)
        kept.append(ledger.settled(run, change, partition))
        if let branched = change.branchedReplica { spreadFork(branched, partition, &step) }
      case .needsHeaders(let requests):
        emit(kept, partition, batch.session, &step)
        return park(batch.rest(rest), partition, until: requests, &step)
      case .ignored, nil: break
      }
      rest.removeFirst()
    }
    emit(kept, partition, batch.session, &step)
    noteTaken(kept, batch.session, partition, &step)
    if !kept.isEmpty || isLeftOutAnew { takePostponed(partition, &step) }
  }

  private mutating func emit(
    _ kept: [DeliveredRun], _ partition: PartitionID, _ source: SessionID, _ step: inout Step
  ) {
    guard !kept.isEmpty else { return }
    ledger.partitions[partition]?.hasBegun = true
    catchUps.noteTaken(partition)
    step.emit(.apply(partition, source: source, kept))
  }

}

extension AsideReason {
  /// Kept although it does not count.
  fileprivate var isKept: Bool {
    switch self {
    case .fork, .aboveBound: true
    case .gap, .lacksRight: false
    }
  }
}

extension RunSummary {
  /// Nil where the signer could not be found out: the replica is not declared.
  package init?(_ run: DeliveredRun, in partition: PartitionName) {
    guard let signer = run.incoming.signer else { return nil }
    self.init(
      partition: partition, replica: run.incoming.replica, first: run.incoming.first,
      hashBefore: run.incoming.hashBefore, hashes: run.incoming.hashes, context: run.context, signer: signer,
      facts: run.incoming.facts)
  }
}
