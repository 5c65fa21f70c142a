// What two nodes have to speak about, and comparing it.
extension Mesh {
  mutating func beginInterest(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    if session.peerInterest != nil || session.wishes.mustAsk {
      // Told already, or changed since the hello: what is remembered under the hello's digest no longer holds.
    } else if admission.names(interest.digest(cryptography.hash), .interest, hello.interest, session) {
      sessions[id]?.wishes.hear(interest)
    } else if let cached = interestCache[session.device],
      admission.names(cached.digest, .interest, hello.interest, session)
    {
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

  mutating func receiveInterest(_ id: SessionID, _ wanted: Interest, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    sessions[id]?.wishes.hear(wanted)
    remember(wanted, of: session, &step)
    if session.phase == .awaitingInterest { goLive(id, &step) }
  }

  private mutating func goLive(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], let deferred = session.deferred else { return }
    let live = LiveSession(
      openedAt: session.openedAt, session.interest, session.peerInterest ?? Interest(),
      mustCompareAgain: deferred.mustCompareAgain)
    sessions[id]?.goLive(live)
    step.emit(.note(id, .sessionReady(session.device)))
    sessions[id]?.tellSpent(ledger, &step)
    neighbours.tell(of: id, sessions, ledger, &step)
    // Who has nobody else names nobody.
    if let others = sessions[id]?.sparing?.neighbours { step.emit(.linked(id, count: others.count + 1)) }
    beginComparing(id, deferred.question, &step)
  }

  /// Once: what changes later is told without being asked for.
  mutating func tellInterest(_ id: SessionID, _ step: inout Step) throws(SessionEnd) {
    guard let session = sessions[id], sessions[id]?.wishes.telling.take() == true else {
      throw .breach("an interest asked for a second time")
    }
    step.emit(.send(id, .interest(session.toldInterest(ledger))))
  }

  /// To a device of which no membership stood only what is said of itself was told, no neighbours, and an empty interest or what
  /// was wanted before: what is wanted now takes the place of either.
  mutating func goOnWithMembersAgain(since before: Authority, _ step: inout Step) {
    for id in sessions.ids {
      guard let session = sessions[id], session.hasStatements, !session.isToBeShown, before.isEnded(session.peer),
        !ledger.authority.isEnded(session.peer)
      else { continue }
      sessions[id]?.hear([], ledger, &step)
      step.emit(.send(id, .interest(session.toldInterest(ledger))))
      // Who remembers the same interest has nothing to offer for it.
      sessions.scopeWidened(with: id, step.now)
      if session.phase == .live { neighbours.tellAgain(to: id, &sessions, &pulls, ledger, &step) }
    }
  }

  // MARK: Changes of interest

  mutating func interestChanged(_ added: Interest, _ removed: Interest, _ step: inout Step) {
    interest = interest.adding(added).removing(removed)
    scopeChanged()
    let ended = sessions.ids.flatMap { interestChanged(added, removed, on: $0, &step) }
    trees.review(sessions, ledger, step)
    pulls.askOthers(ended, &sessions, ledger, &step)
    sessions.askForHandedOverEarly(ledger, &step)
  }

  private mutating func interestChanged(
    _ added: Interest, _ removed: Interest, on id: SessionID, _ step: inout Step
  ) -> [PullPolicy.EndedCatchUp] {
    guard let before = sessions[id]?.interest, let passage = sessions[id]?.passage else { return [] }
    sessions[id]?.pass(passage, interest, ledger)
    guard let session = sessions[id] else { return [] }
    let added = passage.narrowing(added, ledger.partitions.name(of:))
    let removed = passage.isEverything ? removed : before.removing(session.interest)
    let ended = pulls.closeStreams(removed, id, &sessions, ledger)
    let hasNews = passage.isEverything || !added.isEmpty || !removed.isEmpty
    guard hasNews, session.hasStatements, !session.isToBeShown, !ledger.authority.isEnded(session.peer) else {
      return ended
    }
    step.emit(.send(id, .interestChange(added: added, removed: removed)))
    offerNewlyCommon(id, added, &step)
    return ended
  }

  mutating func peerInterestReplaced(_ id: SessionID, _ wanted: Interest, _ step: inout Step) throws(SessionEnd) {
    guard let before = sessions[id]?.peerInterest else { return }
    try peerInterestChanged(id, wanted.removing(before), before.removing(wanted), &step)
  }

  mutating func peerInterestChanged(
    _ id: SessionID, _ added: Interest, _ removed: Interest, _ step: inout Step
  ) throws(SessionEnd) {
    guard let session = sessions[id], let wanted = session.peerInterest else { return }
    let changed = wanted.adding(added).removing(removed)
    guard changed.isWithinLimits else { throw .breach("an interest beyond its limits") }
    sessions[id]?.wishes.hear(changed)
    sessions[id]?.live?.comparison.sums = nil
    holdings.scopeMoved()
    remember(changed, of: session, &step)
    let ended = pulls.closeStreams(removed, id, &sessions, ledger)
    offerNewlyCommon(id, added, &step)
    trees.review(sessions, ledger, step)
    pulls.askOthers(ended, &sessions, ledger, &step)
  }

  private mutating func remember(_ wanted: Interest, of session: PeerSession, _ step: inout Step) {
    interestCache.remember(wanted, wanted.digest(cryptography.hash), of: session.device)
    for other in sessions.wantingTooMuch(besides: session.id) {
      fail(other, SessionEnd(.duplicate, "sessions of one device that want more than one may"), &step)
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

  /// What is in common has to be looked at anew: with these devices, or with all.
  mutating func scopeChanged(of devices: Set<PublicKey>? = nil) {
    sessions.scopeMoved(of: devices)
    holdings.scopeMoved()
  }

  // MARK: Comparing

  /// The listener asks first; whoever was asked before it was live answers then.
  private mutating func beginComparing(_ id: SessionID, _ question: Summary?, _ step: inout Step) {
    let interval = configuration.antiEntropyMilliseconds
    if let question {
      receiveSummary(id, question, &step)
    } else if sessions[id]?.isDialer == true {
      sessions[id]?.live?.comparison.setDue(after: interval * 3 / 2, step.now)
    } else {
      compare(id, nextAfter: interval, &step)
    }
  }

  mutating func compare(_ id: SessionID, nextAfter milliseconds: UInt64, _ step: inout Step) {
    settleSums()
    sessions[id]?.compare(nextAfter: milliseconds, ledger, &step)
  }

  mutating func receiveSummary(_ id: SessionID, _ summary: Summary, _ step: inout Step) {
    guard sessions[id]?.phase == .live else {
      if case .digest = summary.step { sessions[id]?.deferred?.question = summary }
      return
    }
    guard sessions[id]?.takes(summary, step) == true else { return }
    switch summary.step {
    case .digest, .buckets, .partitions: settleSums()
    case .equal, .differing: break
    }
    sessions[id]?.receive(summary, ledger, &step)
    // A comparison that is through shows that the peer is live.
    guard sessions[id]?.live?.handOvers.mayOffer == true else { return }
    beginHoldings(id, &step)
    tellEndedRooms(id, &step)
  }

  /// Brings the digests up to date, and tells the sessions of those that moved.
  mutating func settleSums() {
    let moved = ledger.partitions.settleDigests(cryptography.hash)
    guard !moved.isEmpty else { return }
    if moved.contains(where: { $0.value != nil && ledger.partitions.name(of: $0.key) == nil }) { scopeChanged() }
    sessions.digestsMoved(moved)
  }
}
