// Interest: which partitions two nodes have to speak about.
extension Mesh {
  mutating func beginInterest(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    if session.peerInterest != nil || session.mustAskInterest {
      // Told already, or changed since the hello: what is remembered under the hello's digest no longer holds.
    } else if names(interest.digest(cryptography.hash), .interest, hello.interest, session) {
      sessions[id]?.peerInterest = interest
    } else if let cached = interestCache[session.device], names(cached.digest, .interest, hello.interest, session) {
      sessions[id]?.peerInterest = cached.interest
    }
    sessions[id]?.phase = .awaitingInterest
    guard sessions[id]?.peerInterest == nil else { return goLive(id, &step) }
    step.emit(.send(id, .interestRequest))
  }

  /// What came to be wanted between this side's hello and the peer's was told to nobody.
  func restateInterest(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], let stated = session.statedInterest,
      stated != session.interest.digest(cryptography.hash)
    else { return }
    step.emit(.send(id, .interest(interest(for: session))))
  }

  /// What was told before is out of date.
  mutating func mustAskInterest(_ id: SessionID) {
    sessions[id]?.peerInterest = nil
    sessions[id]?.mustAskInterest = true
  }

  mutating func peerInterestReplaced(_ id: SessionID, _ wanted: Interest, _ step: inout Step) {
    guard let before = sessions[id]?.peerInterest else { return }
    peerInterestChanged(id, wanted.removing(before), before.removing(wanted), &step)
  }

  mutating func receiveInterest(_ id: SessionID, _ wanted: Interest, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    sessions[id]?.peerInterest = wanted
    remember(wanted, of: session.device)
    trimInterests(besides: id, &step)
    if session.phase == .awaitingInterest { goLive(id, &step) }
  }

  mutating func remember(_ wanted: Interest, of device: DeviceID) {
    if interestCache[device] == nil, interestCache.count >= Mesh.interestCacheLimit,
      let first = interestCache.keys.min()
    {
      interestCache[first] = nil
    }
    interestCache[device] = (wanted.digest(cryptography.hash), wanted)
    trimInterestCache()
  }

  private mutating func goLive(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    sessions[id]?.phase = .live
    sessions[id]?.level.begin(session.interest, session.peerInterest ?? Interest())
    step.emit(.note(id, .sessionReady(session.device)))
    tellSpent(id, &step)
    beginComparing(id, &step)
  }

  /// Once: what changes later is told without being asked for.
  mutating func tellInterest(_ id: SessionID, _ step: inout Step) {
    guard sessions[id]?.hasToldInterest == false else {
      return fail(id, .protocolError, "an interest asked for a second time", &step)
    }
    sessions[id]?.hasToldInterest = true
    step.emit(.send(id, .interest(sessions[id].map(interest(for:)) ?? Interest())))
  }

  /// Who is a member no longer has nothing in common with anybody, and need not know what others want.
  private func interest(for session: PeerSession) -> Interest {
    ledger.authority.isEnded(session.peer) ? Interest() : session.interest
  }

  // MARK: Common scope

  /// Partitions that both want and both may carry: nothing else is named or sent on this session.
  func isInScope(_ session: PeerSession, _ partition: PartitionState) -> Bool {
    isInScope(session, partition.id, partition.name)
  }

  func isInScope(_ session: PeerSession, _ id: PartitionID, _ name: PartitionName) -> Bool {
    session.interest.wants(id, name: name) && session.peerInterest?.wants(id, name: name) == true
      && ledger.authority.level(of: session.peer, in: name) >= .carry
      && ledger.authority.level(of: local.device, in: name) >= .carry
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
    guard let before = sessions[id] else { return }
    pass(before.passage, id)
    guard let session = sessions[id] else { return }
    let added = session.passage.narrowing(added, ledger.partitions.name(of:))
    let removed = session.passage.isEverything ? removed : before.interest.removing(session.interest)
    closeStreams(id, removed)
    let hasNews = session.passage.isEverything || !added.isEmpty || !removed.isEmpty
    guard hasNews, session.hasStatements, !session.isToBeShown, !ledger.authority.isEnded(session.peer) else { return }
    step.emit(.send(id, .interestChange(added: added, removed: removed)))
    if session.phase == .live { offerNewlyCommon(id, added, &step) }
  }

  /// What this session may speak of follows from what is wanted here and what its link lets pass.
  mutating func pass(_ passage: Passage, _ id: SessionID) {
    let passing = passage.narrowing(interest, ledger.partitions.name(of:))
    sessions[id]?.passage = passage
    sessions[id]?.interest = passing
  }

  mutating func peerInterestChanged(_ id: SessionID, _ added: Interest, _ removed: Interest, _ step: inout Step) {
    guard let session = sessions[id], let wanted = session.peerInterest else { return }
    let changed = wanted.adding(added).removing(removed)
    guard changed.isWithinLimits else { return fail(id, .protocolError, "an interest beyond its limits", &step) }
    sessions[id]?.peerInterest = changed
    sessions[id]?.comparison.sums = nil
    holdings.scopeMoved()
    remember(changed, of: session.device)
    trimInterests(besides: id, &step)
    closeStreams(id, removed)
    offerNewlyCommon(id, added, &step)
  }

  /// Of what one side wants no more. Wanted again, it begins anew.
  private mutating func closeStreams(_ id: SessionID, _ removed: Interest) {
    guard !removed.isEmpty, let streams = sessions[id]?.streams else { return }
    sessions[id]?.level.narrow(by: removed) { ledger.partitions[$0]?.name }
    for (partition, stream) in streams where removed.wants(partition, name: stream.name) { close(id, partition) }
  }

  /// Under new statements a side may carry less. What is open to a session ends there at once: what was asked of the log
  /// before is not answered any more (I11). Allowed again, it begins anew.
  mutating func closeStreamsOutOfScope() {
    for (id, session) in sessions {
      for (partition, stream) in session.streams where !isInScope(session, partition, stream.name) {
        sessions[id]?.level.unmark(partition)
        close(id, partition)
      }
    }
  }

  private mutating func close(_ id: SessionID, _ partition: PartitionID) {
    voidLoad(id, partition)
    sessions[id]?.streams[partition] = nil
    sessions[id]?.relaysDue[partition] = nil
    if catchUps[partition]?.session == id { catchUps[partition] = nil }
  }

  func isInScope(_ session: PeerSession, _ partition: PartitionID) -> Bool {
    ledger.partitions.name(of: partition).map { isInScope(session, partition, $0) } ?? false
  }

  /// Both sides name what they hold of it; each then pulls, and asks for statements of rooms.
  private mutating func offerNewlyCommon(_ id: SessionID, _ added: Interest, _ step: inout Step) {
    let meant = ledger.partitions.all { added.wants($0, name: $1) }
    guard !meant.isEmpty else { return }
    compareRooms(id, meant, &step)
    sendVectors(id, meant, &step)
    // No vector names it. Before the first comparison is through the peer may not be live, and will compare it.
    guard sessions[id]?.mayOfferHeldWork == true else { return }
    for partition in meant.sorted() { showHeld(id, partition, &step) }
  }
}
