// Runs as they come: put together, judged, taken or left.
extension Mesh {
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
      guard opened.incoming.number == batch.stream else {
        return pulls.consider(id, partition, &sessions, ledger, &step)
      }
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

  /// Nil where the run is void, or its session has ended, and after it was failed.
  private mutating func resolved(
    _ waiting: ParkedRuns.Waiting, _ batch: ParkedRuns, _ partition: PartitionID, _ name: PartitionName,
    entries: inout Int, _ step: inout Step
  ) -> DeliveredRun? {
    guard case .arrived(let arrived) = waiting else {
      if case .resolved(let run) = waiting { return run }
      return nil
    }
    guard let session = sessions[batch.session] else { return nil }
    let stream = session.live?.streams[partition]?.incoming
    switch batch.resolve(arrived, on: stream, name, entries: &entries, cryptography.hash) {
    case .run(let run):
      if !batch.isForkEvidence { sessions[batch.session]?.live?.streams[partition]?.incoming.base = run.context }
      return run
    case .isVoid: break
    case .lacksBase: pulls.considerAnew(batch.session, partition, &sessions, ledger, &step)
    case .breach(let why, let place): fail(batch.session, .breach(why), at: place, &step)
    }
    return nil
  }

  mutating func process(_ batch: ParkedRuns, _ partition: PartitionID, _ step: inout Step) {
    guard let name = ledger.partitions[partition]?.name else { return }
    var kept: [DeliveredRun] = []
    var heldAbove: Set<ReplicaID> = []
    var isLeftOutAnew = false
    var branches: Set<ReplicaID> = []
    defer {
      sessions.showHeld(heldAbove, partition, ledger, &step)
      for replica in branches.sorted() { sessions.showNews(of: replica, partition, ledger, &step) }
    }
    var rest = batch.runs
    var entries = 0
    walk: while let waiting = rest.first {
      guard let run = resolved(waiting, batch, partition, name, entries: &entries, &step) else { break }
      // Its base has gone on: whatever makes it wait, it is not put together again.
      rest[rest.startIndex] = .resolved(run)
      guard let summary = RunSummary(run, in: name) else {
        if leaveOutNarrowed(run, name, batch.session, partition) {
          rest.removeFirst()
          continue walk
        }
        fail(batch.session, .breach("a run by a replica that nobody declared"), at: run.place(in: name), &step)
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
          ownChainClaims.found(run, name, &step)
          sessions[batch.session]?.searchFork(partition, run.incoming.replica, ledger, &step)
        }
        // Work that does not count now is kept all the same; what nothing leads to yet is asked for again later.
        guard reason.isKept || batch.isForkEvidence, keepsCausal(run, batch, partition) else {
          rest.removeFirst()
          continue walk
        }
        if case .aboveBound = reason { heldAbove.insert(run.incoming.replica) }
        // Also where a branch that has lost goes on: no vector tells of it.
        if reason == .fork { branches.insert(run.incoming.replica) }
      case .error(let reason) where mayComeAhead(batch, partition):
        ownChainClaims.found(run, name, &step)
        postpone(run, batch, partition)
        // What was left out does not come ahead by itself.
        if reason == .context, ledger.vouches(summary, for: leftOut(batch.session, partition)) {
          pulls.reopen(batch.session, partition, takesAll: true, &sessions, ledger, &step)
        }
        rest.removeFirst()
        continue walk
      case .error(.context) where ledger.vouches(summary, for: leftOut(batch.session, partition)):
        pulls.reopen(batch.session, partition, takesAll: true, &sessions, ledger, &step)
        break walk
      case .error where leftOut(batch.session, partition)?.isStoodOn(by: run) == true:
        leaveOut(run.incoming.replica, batch.session, partition)
        rest.removeFirst()
        continue walk
      case .error where isOnLevelStream(batch, partition) && !isLeftToOthers(batch):
        // Equal summaries opened the stream, and what they were equal about has changed.
        pulls.considerAnew(batch.session, partition, &sessions, ledger, &step)
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
        fail(batch.session, .breach("a run that nobody may send: \(reason)"), at: run.place(in: name), &step)
        break walk
      case .error(let reason):
        let why =
          reason == .gap ? "a run without those of its chain before it" : "a run without what its author had seen"
        fail(batch.session, .breach(why), at: run.place(in: name), &step)
        break walk
      }
      if let beyond = ledger.beyondAllowance(summary, partition, leftOut(batch.session, partition)) {
        if leaveOut(summary, beyond: beyond, batch.session, partition) { isLeftOutAnew = true }
        rest.removeFirst()
        continue walk
      }
      switch learn(summary, in: partition) {
      case .done(let change):
        ownChainClaims.foundReissue(summary, partition, ledger, &step)
        ownChainClaims.found(run, name, &step)
        kept.append(ledger.settled(run, change, partition))
        if let branched = change.branchedReplica { sessions.showNews(of: branched, partition, ledger, &step) }
      case .needsHeaders(let requests):
        emit(kept, partition, batch.session, &step)
        return park(batch.rest(rest), partition, until: requests, &step)
      case .ignored, nil: break
      }
      rest.removeFirst()
    }
    emit(kept, partition, batch.session, &step)
    pulls.noteTaken(kept, batch.session, partition, &sessions, ledger, &step)
    if !kept.isEmpty || isLeftOutAnew { takePostponed(partition, &step) }
  }

  private mutating func emit(
    _ kept: [DeliveredRun], _ partition: PartitionID, _ source: SessionID, _ step: inout Step
  ) {
    guard !kept.isEmpty else { return }
    ledger.partitions[partition]?.hasBegun = true
    pulls.catchUps.noteTaken(partition)
    step.emit(.apply(partition, source: source, kept))
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

  private func leftOut(_ id: SessionID, _ partition: PartitionID) -> LeftOutChains? {
    sessions[id]?.live?.streams[partition]?.incoming.leftOut
  }

  /// Runs that nothing here allows are not the connection's fault: their author, or who passed them on, may know what is not
  /// known here (rule C7). They are not stored, and their chain is left out of the stream until statements come.
  private mutating func leaveOut(_ replica: ReplicaID, _ id: SessionID, _ partition: PartitionID) {
    sessions[id]?.live?.streams[partition]?.incoming.leftOut.insert(replica)
  }

  /// Answers whether that is new of its chain: then nothing that waits for it is to wait on.
  private mutating func leaveOut(
    _ run: RunSummary, beyond: Ledger.Beyond, _ id: SessionID, _ partition: PartitionID
  ) -> Bool {
    ledger.leaveOut(run, partition)
    let lacksPlace = beyond == .place
    return sessions[id]?.live?.streams[partition]?.incoming.leftOut.insert(run.replica, lacksPlace: lacksPlace) ?? false
  }

  /// A run of a replica that nobody declares: left out where only a narrowing took the declaration away.
  private mutating func leaveOutNarrowed(
    _ run: DeliveredRun, _ name: PartitionName, _ id: SessionID, _ partition: PartitionID
  ) -> Bool {
    guard ledger.authority.floor(of: run.incoming.replica, in: name) < run.incoming.first else { return false }
    leaveOut(run.incoming.replica, id, partition)
    return true
  }

  private func isOnLevelStream(_ batch: ParkedRuns, _ partition: PartitionID) -> Bool {
    sessions[batch.session]?.live?.streams[partition]?.incoming.isLevel == true
  }

  /// Whether what such runs stand on may come from somebody else.
  private func isLeftToOthers(_ batch: ParkedRuns) -> Bool {
    !batch.isForkEvidence && sessions[batch.session]?.sparing != nil && sessions.hasOthers(than: batch.session)
  }
}

extension DeliveredRun {
  fileprivate func place(in name: PartitionName) -> BrokenRule.Place {
    BrokenRule.Place(partition: name, replica: incoming.replica, sequence: incoming.first)
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
