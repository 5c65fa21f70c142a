extension Mesh {
  mutating func open(_ id: SessionID, isDialer: Bool, peer: PublicKey, exporter: Digest, _ step: inout Step) {
    let device = DeviceID.derived(from: peer, cryptography.hash)
    sessions[id] = PeerSession(
      id: id, isDialer: isDialer, peer: peer, device: device, exporter: exporter, now: step.now)
    closeSurplus(besides: id, &step)
    // The listener stays silent until the dialer has shown that it is a member: a stranger learns nothing by asking.
    guard isDialer, !closeDuplicates(of: id, &step) else { return }
    sendHello(id, &step)
  }

  private mutating func sendHello(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let authority = self.authority.digest(cryptography.hash)
    var hello = Hello(
      fleet: local.fleet, device: local.device, instance: local.instance, replica: ownReplica, ownCommits: ownCommits,
      wallMilliseconds: wallMilliseconds, listenPort: local.listenPort, authority: authority,
      interest: interest.digest(cryptography.hash), credentials: local.credentials)
    hello.signature = cryptography.sign(
      hello.signedBytes(exporter: session.exporter, isDialer: session.isDialer, cryptography.hash))
    sessions[id]?.statedAuthority = authority
    sessions[id]?.statedInterest = hello.interest
    step.emit(.send(id, .hello(hello)))
  }

  mutating func receive(
    _ id: SessionID, _ message: Message, _ step: inout Step, _ random: inout some RandomNumberGenerator
  ) {
    guard let session = sessions[id] else { return }
    sessions[id]?.lastHeard = step.now
    switch (session.phase, message) {
    case (_, .ping(let nonce)): step.emit(.send(id, .pong(nonce: nonce)))
    case (_, .pong): sessions[id]?.roundTripMilliseconds = step.now.millisecondsSince(session.lastPing)
    case (_, .goodbye(let reason)): peerClosed(id, reason, &step)
    case (.awaitingHello, .hello(let hello)): receiveHello(id, hello, &step)
    case (.awaitingHello, .joinRequest(let request)): receiveJoinRequest(id, request, &step)
    case (.exchangingStatements, .statementIDs(let ids)): sendMissingStatements(id, ids, &step)
    case (.exchangingStatements, .statementsComplete): peerStatementsComplete(id, &step)
    case (.exchangingStatements, .statements(let list)), (.awaitingInterest, .statements(let list)),
      (.live, .statements(let list)):
      receiveStatements(id, list, &step)
    case (.live, .interestRequest), (.awaitingInterest, .interestRequest),
      (.exchangingStatements, .interestRequest) where !session.isToBeShown:
      tellInterest(id, &step)
    case (.awaitingInterest, .interest(let interest)), (.exchangingStatements, .interest(let interest)):
      receiveInterest(id, interest, &step)
    case (.exchangingStatements, .interestChange):
      // What was told before is out of date.
      sessions[id]?.peerInterest = nil
      sessions[id]?.mustAskInterest = true
    // They cannot be judged yet, and the peer's summary may have been made before what they are about was wanted here.
    case (.awaitingInterest, .vectors), (.awaitingInterest, .have): sessions[id]?.mustCompareAgain = true
    // The answer to our question is on its way and was made after the change.
    case (.awaitingInterest, .interestChange): break
    case (.live, .interest(let interest)): peerInterestReplaced(id, interest, &step)
    case (.live, .interestChange(let added, let removed)): peerInterestChanged(id, added, removed, &step)
    case (.awaitingInterest, .summary(let summary)), (.live, .summary(let summary)),
      (.exchangingStatements, .summary(let summary)):
      receiveSummary(id, summary, &step)
    case (.live, .vectors(let list)): receiveVectors(id, list, &step)
    case (.live, .pull(let stream, let part)):
      guard let vector = joined(part, id, .pull(stream), &step) else { return }
      receivePull(id, stream, vector, &step)
    case (.live, .payloadPiece(let piece)): step.emit(.stage(id, piece))
    case (.live, .have(let part)):
      guard let vector = joined(part, id, .have, &step) else { return }
      receiveVector(id, vector, &step)
    case (.live, .chainProbe(let probe)): receiveProbe(id, probe, &step)
    default: fail(id, .protocolError, "a message out of turn", &step)
    }
  }

  private mutating func receiveHello(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    guard hello.version >= 1 else { return fail(id, .versionUnknown, "protocol version \(hello.version)", &step) }
    guard hello.fleet == local.fleet else { return fail(id, .otherFleet, "another fleet", &step) }
    guard hello.device == session.peer, let signature = hello.signature,
      cryptography.verify(
        signature,
        hello.signedBytes(exporter: session.exporter, isDialer: !session.isDialer, cryptography.hash), session.peer)
    else { return fail(id, .protocolError, "a hello that its device did not sign", &step) }
    guard hello.instance != local.instance else { return fail(id, .ownConnection, "this node itself", &step) }
    let isMember = authority.member(of: hello.device) != nil
    // Equal sets, and not a member in this one: nothing that the exchange brings could show it.
    guard isMember || showsMembership(hello) && hello.authority != authority.digest(cryptography.hash) else {
      return fail(id, .notAMember, "not a member of this fleet", &step)
    }
    sessions[id]?.isToBeShown = !isMember
    sessions[id]?.hello = hello
    guard session.isDialer || !closeDuplicates(of: id, &step) else { return }
    step.emit(.authenticated(id, session.device, hello))
    if !session.isDialer { sendHello(id, &step) }
    noteClock(id, hello, &step)
    if isMember { restateInterest(id, &step) }
    beginStatements(id, hello, &step)
  }

  /// Two connections to one process: both ends keep the same one (``KeepRule``). Answers whether `id` went.
  private mutating func closeDuplicates(of id: SessionID, _ step: inout Step) -> Bool {
    guard let session = sessions[id] else { return false }
    for other in sessions.values.sorted(by: { $0.id < $1.id })
    where other.id != id && other.device == session.device && other.isSameProcess(as: session) {
      let choice = KeepRule.choose(
        existing: other.link, new: session.link, thisDevice: DeviceID.derived(from: local.device, cryptography.hash),
        peer: session.device, now: step.now.milliseconds)
      fail(choice == .keepNew ? other.id : id, .duplicate, "a second connection", &step)
      if choice == .keepExisting { return true }
    }
    return false
  }

  private func noteClock(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    let (difference, overflow) = hello.wallMilliseconds.subtractingReportingOverflow(wallMilliseconds)
    let limit = Int64(HybridTimestamp.adoptionLimitMilliseconds)
    guard overflow || difference > limit || difference < -limit else { return }
    step.emit(.note(id, .clockDiffers(milliseconds: overflow ? .max : difference)))
  }

  /// Says why, closes, forgets. A reason that concerns the peer alone is noted for people.
  mutating func fail(_ id: SessionID, _ goodbye: Goodbye, _ why: String, _ step: inout Step) {
    guard goodbye != .protocolError else { return fail(id, breaking: why, nil, &step) }
    guard sessions[id] != nil else { return }
    step.emit(.note(id, .peerRefused(why)))
    end(id, goodbye, &step)
  }

  mutating func end(_ id: SessionID, _ goodbye: Goodbye, _ step: inout Step) {
    step.emit(.send(id, .goodbye(goodbye)))
    step.emit(.close(id, goodbye))
    closed(id, &step)
  }

  private mutating func peerClosed(_ id: SessionID, _ reason: Goodbye, _ step: inout Step) {
    step.emit(.close(id, reason))
    closed(id, &step)
  }

  mutating func closed(_ id: SessionID, _ step: inout Step) {
    guard sessions.removeValue(forKey: id) != nil else { return }
    dropPostponed(of: id)
    for partition in catchUps.filter({ $0.value.session == id }).keys.sorted() {
      catchUps[partition] = nil
      pullWherePossible(partition, &step)
    }
  }
}
