// Runs as they come: put together, judged, taken or left.
extension Mesh {
  mutating func receiveRuns(_ id: SessionID, _ batch: RunBatch, _ runs: [IncomingRun], _ step: inout Step) {
    guard sessions.look(at: id, \.phase) == .live else { return }
    sessions[id]?.pulse.hear(step.now)
    let partition = ledger.id(of: batch.name)
    guard sessions.look(at: id, { $0.isInScope(partition, batch.name, ledger) }) == true else {
      if batch.isForkEvidence { receiveHandedOver(batch, runs, id, partition, &step) }
      return
    }
    guard sessions[id]?.takeUpStream(partition, batch.name, ledger, step.now) == true else { return }
    if !batch.isForkEvidence {
      // Batches of a stream that was since asked for anew are void: their contexts stand on another base. One that only
      // the peer took for open is asked for now.
      guard sessions[id]?.live?.streams[partition]?.incoming.number == batch.stream else {
        return pulls.consider(id, partition, &sessions, ledger, &step)
      }
      sessions[id]?.live?.streams[partition]?.incoming.noteProgress(step.now)
    }
    take(batch, runs, id, partition, &step)
  }

  private mutating func receiveHandedOver(
    _ batch: RunBatch, _ runs: [IncomingRun], _ id: SessionID, _ partition: PartitionID, _ step: inout Step
  ) {
    if sessions[id]?.takesHeldWork(runs, partition, batch.name, ledger) == true {
      take(batch, runs, id, partition, &step)
    } else {
      sessions[id]?.noteHandedOverEarly(runs, partition, batch.name, ledger)
    }
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

  /// Nil where the run is void, or its session has ended, and after it was failed.
  private mutating func resolved(
    _ waiting: ParkedRuns.Waiting, _ batch: ParkedRuns, _ partition: PartitionID, _ name: PartitionName,
    entries: inout Int, _ step: inout Step
  ) -> DeliveredRun? {
    guard case .arrived(let arrived) = waiting else {
      if case .resolved(let run) = waiting { return run }
      return nil
    }
    guard sessions.holds(batch.session) else { return nil }
    let stream = sessions[batch.session]?.live?.streams[partition]?.incoming
    switch batch.resolve(arrived, on: stream, name, entries: &entries, cryptography.hash) {
    case .run(let run):
      if !batch.isForkEvidence { sessions[batch.session]?.live?.streams[partition]?.incoming.base = run.context }
      return run
    case .isVoid: break
    case .lacksBase: pulls.considerAnew(batch.session, partition, &sessions, ledger, &step)
    case .breach(let why, let place): fail(batch.session, .breach(why, at: place), &step)
    }
    return nil
  }

  /// Judges runs, and then, one after the other, what had come ahead of them and of what they bring.
  mutating func process(_ batch: ParkedRuns, _ partition: PartitionID, _ step: inout Step) {
    var next: ParkedRuns? = batch
    while let batch = next {
      judge(batch, partition, &step)
      next = takeReleased(partition)
    }
  }

  private mutating func judge(_ batch: ParkedRuns, _ partition: PartitionID, _ step: inout Step) {
    guard let name = ledger.partitions[partition]?.name else { return }
    var taking = Taking(batch: batch, partition: partition, name: name)
    defer {
      sessions.showHeld(taking.heldAbove, partition, ledger, &step)
      for replica in taking.branches.sorted() { sessions.showNews(of: replica, partition, ledger, &step) }
    }
    var (rest, entries) = (batch.runs, 0)
    walk: while let waiting = rest.first {
      guard let run = resolved(waiting, batch, partition, name, entries: &entries, &step) else { break }
      // Its base has gone on: whatever makes it wait, it is not put together again.
      rest[rest.startIndex] = .resolved(run)
      switch judge(run, &taking, &step) {
      case .next: rest.removeFirst()
      case .end: break walk
      case .awaitHeaders(let requests):
        emit(taking, &step)
        return park(batch.rest(rest), partition, until: requests, &step)
      }
    }
    emit(taking, &step)
    pulls.noteTaken(taking.kept, batch.session, partition, &sessions, ledger, &step)
    if taking.isLeftOutAnew { ledger.partitions[partition]?.waiting.ahead.releaseAll() }
  }

  private mutating func emit(_ taking: Taking, _ step: inout Step) {
    guard !taking.kept.isEmpty else { return }
    ledger.partitions.noteKept(taking.kept, in: taking.partition)
    pulls.catchUps.noteTaken(taking.partition)
    step.emit(.apply(taking.partition, source: taking.session, taking.kept))
  }

  private mutating func judge(_ run: DeliveredRun, _ taking: inout Taking, _ step: inout Step) -> Course {
    let (id, partition, replica) = (taking.session, taking.partition, run.incoming.replica)
    guard let summary = RunSummary(run, in: taking.name) else {
      // Only a narrowing took the declaration away.
      if ledger.authority.floor(of: replica, in: taking.name) < run.incoming.first {
        return leaveOut(replica, taking)
      }
      return end("a run by a replica that nobody declared", run, taking, &step)
    }
    var isOffBranch = false
    if isOnBranch(run, partition), sessions[id]?.live?.streams[partition]?.noteHolding(of: run) == true {
      sessions[id]?.pump(partition, ledger, &step)
    }
    switch ledger.partitions.look(at: partition, { $0.log.deliver(summary) }) {
    case .take: break
    case .have, nil:
      if !taking.batch.isForkEvidence {
        trees.noteSecondCopy(replica, id, partition, pulls.catchUps, sessions, ledger, step)
      }
      return .next
    case .aside(.lacksRight):
      if taking.batch.isForkEvidence { sessions[id]?.noteHandedOverEarly(replica, taking.name, ledger) }
      return leaveOut(replica, taking)
    case .aside(.gap) where awaitsWhatLeads(to: run, taking, step.now): return .next
    case .aside(let reason):
      if reason == .fork {
        ownChainClaims.found(run, taking.name, &step)
        sessions[id]?.searchFork(partition, replica, ledger, &step)
      }
      // Work that does not count now is kept all the same; what nothing leads to yet is asked for again later.
      guard reason.isKept || taking.batch.isForkEvidence else { return .next }
      guard keepsCausal(run, taking.batch, partition) else {
        askForWhatLeads(to: summary, taking, &step)
        return .next
      }
      if case .aboveBound = reason { taking.heldAbove.insert(replica) }
      isOffBranch = reason == .fork
    case .error(let reason): return misfit(run, summary, reason, taking, &step)
    case .needsHeaders(let request): return .awaitHeaders([request])
    case .refuse(let reason): return end("a run that nobody may send: \(reason)", run, taking, &step)
    }
    if let beyond = ledger.beyondAllowance(summary, partition, leftOut(taking)) {
      if leaveOut(summary, beyond: beyond, id, partition) { taking.isLeftOutAnew = true }
      return .next
    }
    switch learn(summary, in: partition) {
    case .done(let change):
      ownChainClaims.foundReissue(summary, partition, ledger, &step)
      ownChainClaims.found(run, taking.name, &step)
      taking.kept.append(ledger.settled(run, change, partition))
      if !taking.batch.isForkEvidence {
        trees.noteFirstCopy(replica, id, partition, pulls.catchUps, sessions, ledger, step)
      }
      // Also where a branch that has lost goes on: no vector tells of it.
      if isOffBranch { taking.branches.insert(replica) }
      if let branched = change.branchedReplica { sessions.showNews(of: branched, partition, ledger, &step) }
    case .needsHeaders(let requests): return .awaitHeaders(requests)
    case .ignored, nil: break
    }
    return .next
  }

  /// Its chain is not forked, or it lies on the branch that counts here, or goes on from that.
  private func isOnBranch(_ run: DeliveredRun, _ partition: PartitionID) -> Bool {
    ledger.partitions.look(at: partition) { $0.log.isOnBranch(run) || $0.log.endsBranch(run.incoming) } ?? true
  }

  /// A run that goes on from what is not here, of which a fork or a narrowing says that its sender need not know. All the same
  /// that may be on its way: then the run waits for it, for no stream brings it again.
  private mutating func awaitsWhatLeads(to run: DeliveredRun, _ taking: Taking, _ now: MonotonicTime) -> Bool {
    let isForked = ledger.partitions.isForked(run.incoming.replica, in: taking.partition)
    if mayComeAhead(taking.batch, taking.partition) {
      // Evidence of another branch goes on from a change of that branch, not from a number.
      guard !taking.batch.isForkEvidence else { return false }
      postpone(run, taking.batch, taking.partition)
    } else if !isForked, mayBeLeftToOthers(taking), leftOut(taking)?.isStoodOn(by: run) != true {
      awaitOthers(run, taking, now)
    } else {
      return false
    }
    return true
  }

  /// A run that goes on from what is not here.
  private mutating func misfit(
    _ run: DeliveredRun, _ summary: RunSummary, _ reason: DeliveryError, _ taking: Taking, _ step: inout Step
  ) -> Course {
    let (batch, id, partition) = (taking.batch, taking.session, taking.partition)
    if mayComeAhead(batch, partition) {
      ownChainClaims.found(run, taking.name, &step)
      postpone(run, batch, partition)
      // What was left out does not come ahead by itself.
      if reason == .context { askForWhatLeads(to: summary, taking, &step) }
      return .next
    }
    if reason == .context, askForWhatLeads(to: summary, taking, &step) { return .end }
    if leftOut(taking)?.isStoodOn(by: run) == true { return leaveOut(run.incoming.replica, taking) }
    let isOnLevelStream = sessions[id]?.live?.streams[partition]?.incoming.isLevel == true
    if isOnLevelStream, !mayBeLeftToOthers(taking) || !sessions.hasOthers(than: id) {
      // Equal summaries opened the stream, and what they were equal about has changed.
      pulls.considerAnew(id, partition, &sessions, ledger, &step)
      return .end
    }
    if mayBeLeftToOthers(taking) {
      awaitOthers(run, taking, step.now)
      return .next
    }
    let why = reason == .gap ? "a run without those of its chain before it" : "a run without what its author had seen"
    return end(why, run, taking, &step)
  }

  /// What it stands on was left out here, or is not shown by a peer that knows that it would be: now it is to be. Answers
  /// whether it is asked for.
  @discardableResult
  private mutating func askForWhatLeads(to run: RunSummary, _ taking: Taking, _ step: inout Step) -> Bool {
    let (id, partition) = (taking.session, taking.partition)
    let lacked = ledger.lackedOfSpent(run, partition)
    guard !lacked.isEmpty, let session = sessions[id], let leftOut = leftOut(taking) else { return false }
    let branched = ledger.takes.spent.branches.intersection(lacked.keys.compactMap(ledger.authority.author(of:)))
    let isNew = !branched.isSubset(of: session.spared.asked)
    let isAwaited = lacked.keys.allSatisfy(leftOut.awaits)
    let isShownOnceAsked = !branched.isEmpty || lacked.keys.contains(where: leftOut.contains)
    guard isNew || !isAwaited && isShownOnceAsked else { return false }
    if isNew { sessions[id]?.askForBranches(of: branched, ledger, &step) }
    pulls.reopen(id, partition, awaiting: lacked, &sessions, ledger, &step)
    return true
  }

  private func mayBeLeftToOthers(_ taking: Taking) -> Bool {
    !taking.batch.isForkEvidence && sessions[taking.session]?.sparing != nil
  }

  /// What it stands on was left to others, and is on its way from them.
  private mutating func awaitOthers(_ run: DeliveredRun, _ taking: Taking, _ now: MonotonicTime) {
    postpone(run, taking.batch, taking.partition)
    guard let stream = sessions[taking.session]?.live?.streams[taking.partition] else { return }
    let log = ledger.partitions[taking.partition]?.log
    sessions[taking.session]?.sparing?.noteBehind(taking.partition, stream, log, now)
  }

  private mutating func end(_ why: String, _ run: DeliveredRun, _ taking: Taking, _ step: inout Step) -> Course {
    let (replica, sequence) = (run.incoming.replica, run.incoming.first)
    let place = BrokenRule.Place(partition: taking.name, replica: replica, sequence: sequence)
    fail(taking.session, .breach(why, at: place), &step)
    return .end
  }

  /// Takes a run into its log, and counts what that makes its device take.
  private mutating func learn(_ run: RunSummary, in partition: PartitionID) -> PartitionLog.Outcome? {
    let (outcome, begins) = ledger.learn(run, in: partition)
    // Of whom all that write in a partition are decides whether it is compared.
    if begins, sessions.values.contains(where: { !$0.spared.both.isEmpty }) { scopeChanged() }
    return outcome
  }

  /// Takes an own run into the log, within the transaction that commits it. Nil where it does not follow: a programming
  /// error that must not reach the disk.
  package mutating func learnOwn(_ run: Run, in partition: PartitionID, signer: PublicKey) -> LogChange? {
    guard let summary = ledger.summary(ofOwn: run, in: partition, signer: signer),
      case .done(let change)? = learn(summary, in: partition)
    else { return nil }
    return change
  }

  // MARK: What is left out

  private func leftOut(_ taking: Taking) -> LeftOutChains? {
    sessions[taking.session]?.live?.streams[taking.partition]?.incoming.leftOut
  }

  /// Runs that nothing here allows are not the connection's fault: their author, or who passed them on, may know what is not
  /// known here (rule C7). They are not stored, and their chain is left out of the stream until statements come.
  private mutating func leaveOut(_ replica: ReplicaID, _ taking: Taking) -> Course {
    sessions[taking.session]?.live?.streams[taking.partition]?.incoming.leftOut.insert(replica)
    return .next
  }

  /// Answers whether that is new of its chain: then nothing that waits for it is to wait on.
  private mutating func leaveOut(
    _ run: RunSummary, beyond: Ledger.Beyond, _ id: SessionID, _ partition: PartitionID
  ) -> Bool {
    ledger.leaveOut(run, partition)
    let lacksPlace = beyond == .place
    return sessions[id]?.live?.streams[partition]?.incoming.leftOut.insert(run.replica, lacksPlace: lacksPlace) ?? false
  }
}

/// What comes of the runs of one message as they are judged, one after the other.
private struct Taking {
  let batch: ParkedRuns
  let partition: PartitionID
  let name: PartitionName
  var kept: [DeliveredRun] = []
  var heldAbove: Set<ReplicaID> = []
  var branches: Set<ReplicaID> = []
  /// A chain is left out of its stream that was not before.
  var isLeftOutAnew = false

  var session: SessionID { batch.session }
}

/// How a message is gone on with behind one of its runs.
private enum Course {
  case next
  case end
  case awaitHeaders([HeaderRequest])
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
