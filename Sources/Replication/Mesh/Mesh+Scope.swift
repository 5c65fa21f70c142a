// Interest: which partitions two nodes have to speak about.
extension Mesh {
  mutating func beginInterest(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    if session.peerInterest != nil || session.wishes.mustAsk {
      // Told already, or changed since the hello: what is remembered under the hello's digest no longer holds.
    } else if names(interest.digest(cryptography.hash), .interest, hello.interest, session) {
      sessions[id]?.wishes.hear(interest)
    } else if let cached = interestCache[session.device], names(cached.digest, .interest, hello.interest, session) {
      sessions[id]?.wishes.hear(cached.interest)
    }
    sessions[id]?.state = .handshake(.interest(session.deferred ?? DeferredComparison()))
    guard sessions[id]?.peerInterest == nil else { return goLive(id, &step) }
    step.emit(.send(id, .interestRequest))
  }

  mutating func restateInterest(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], session.wishes.hasChangedSinceHello(cryptography.hash) else { return }
    step.emit(.send(id, .interest(session.toldInterest(ledger))))
  }

  mutating func peerInterestReplaced(_ id: SessionID, _ wanted: Interest, _ step: inout Step) {
    guard let before = sessions[id]?.peerInterest else { return }
    peerInterestChanged(id, wanted.removing(before), before.removing(wanted), &step)
  }

  mutating func receiveInterest(_ id: SessionID, _ wanted: Interest, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    sessions[id]?.wishes.hear(wanted)
    interestCache.remember(wanted, wanted.digest(cryptography.hash), of: session.device)
    trimInterests(besides: id, &step)
    if session.phase == .awaitingInterest { goLive(id, &step) }
  }

  private mutating func goLive(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], let deferred = session.deferred else { return }
    let live = LiveSession(
      openedAt: session.openedAt, session.interest, session.peerInterest ?? Interest(),
      mustCompareAgain: deferred.mustCompareAgain)
    sessions[id]?.state = .live(live)
    step.emit(.note(id, .sessionReady(session.device)))
    tellSpent(id, &step)
    tellNeighbour(id, &step)
    beginComparing(id, deferred.question, &step)
  }

  /// Once: what changes later is told without being asked for.
  mutating func tellInterest(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], sessions[id]?.wishes.telling.take() == true else {
      return fail(id, .protocolError, "an interest asked for a second time", &step)
    }
    step.emit(.send(id, .interest(session.toldInterest(ledger))))
  }

  // MARK: Changes of interest

  mutating func interestChanged(_ added: Interest, _ removed: Interest, _ step: inout Step) {
    interest = interest.adding(added).removing(removed)
    scopeChanged()
    for id in sessions.keys.sorted() { interestChanged(added, removed, on: id, &step) }
    askForHandedOverEarly(&step)
  }

  private mutating func interestChanged(
    _ added: Interest, _ removed: Interest, on id: SessionID, _ step: inout Step
  ) {
    guard let before = sessions[id]?.interest, let passage = sessions[id]?.passage else { return }
    sessions[id]?.pass(passage, interest, ledger)
    guard let session = sessions[id] else { return }
    let added = passage.narrowing(added, ledger.partitions.name(of:))
    let removed = passage.isEverything ? removed : before.removing(session.interest)
    closeStreams(id, removed)
    let hasNews = passage.isEverything || !added.isEmpty || !removed.isEmpty
    guard hasNews, session.hasStatements, !session.isToBeShown, !ledger.authority.isEnded(session.peer) else { return }
    step.emit(.send(id, .interestChange(added: added, removed: removed)))
    offerNewlyCommon(id, added, &step)
  }

  mutating func peerInterestChanged(_ id: SessionID, _ added: Interest, _ removed: Interest, _ step: inout Step) {
    guard let session = sessions[id], let wanted = session.peerInterest else { return }
    let changed = wanted.adding(added).removing(removed)
    guard changed.isWithinLimits else { return fail(id, .protocolError, "an interest beyond its limits", &step) }
    sessions[id]?.wishes.hear(changed)
    sessions[id]?.live?.comparison.sums = nil
    holdings.scopeMoved()
    interestCache.remember(changed, changed.digest(cryptography.hash), of: session.device)
    trimInterests(besides: id, &step)
    closeStreams(id, removed)
    offerNewlyCommon(id, added, &step)
  }

  private mutating func closeStreams(_ id: SessionID, _ removed: Interest) {
    for partition in sessions[id]?.closeStreams(removed, ledger) ?? [] { catchUps.end(partition, on: id) }
  }

  mutating func closeStreamsOutOfScope() {
    for id in sessions.keys {
      for partition in sessions[id]?.closeStreamsOutOfScope(ledger) ?? [] { catchUps.end(partition, on: id) }
    }
  }

  /// Both sides name what they hold of it; each then pulls, and asks for statements of rooms.
  private mutating func offerNewlyCommon(_ id: SessionID, _ added: Interest, _ step: inout Step) {
    guard sessions[id]?.phase == .live else { return }
    let meant = ledger.partitions.all { added.wants($0, name: $1) }
    guard !meant.isEmpty else { return }
    sessions[id]?.compareRooms(meant, ledger, &step)
    sessions[id]?.sendVectors(meant, ledger, &step)
    // No vector names it. Before the first comparison is through the peer may not be live, and will compare it.
    guard sessions[id]?.live?.handOvers.mayOffer == true else { return }
    for partition in meant.sorted() { sessions[id]?.showHeld(partition, ledger, &step) }
  }
}
