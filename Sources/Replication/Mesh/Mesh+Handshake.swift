// How a session begins, and how it ends.
extension Mesh {
  var admission: Admission { Admission(local: local, cryptography: cryptography) }

  mutating func open(
    _ id: SessionID, isDialer: Bool, peer: PublicKey, exporter: Digest, _ passage: Passage, _ step: inout Step
  ) {
    let device = DeviceID.derived(from: peer, cryptography.hash)
    sessions.add(
      PeerSession(id: id, isDialer: isDialer, peer: peer, device: device, exporter: exporter, now: step.now))
    sessions[id]?.pass(passage, interest, ledger)
    // First, so that a connection which goes at once has nobody else go.
    if isDialer, closeDuplicates(of: id, &step) { return }
    closeSurplus(besides: id, &step)
    // The listener stays silent until the dialer has shown that it is a member: a stranger learns nothing by asking.
    if isDialer { sendHello(id, &step) }
  }

  private mutating func sendHello(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let (authority, interest) = (ledger.authority.digest(cryptography.hash), session.interest.digest(cryptography.hash))
    let hello = admission.hello(
      to: session, authority: authority, interest: interest, wallMilliseconds: step.surroundings.wallMilliseconds)
    sessions[id]?.greeting?.sayHello(authority)
    sessions[id]?.wishes.state(interest)
    step.emit(.send(id, .hello(hello)))
  }

  mutating func receiveHello(_ id: SessionID, _ hello: Hello, _ step: inout Step) throws(SessionEnd) {
    guard let session = sessions[id] else { return }
    try admission.check(hello, session)
    sessions[id]?.hello = hello
    closeSurplus(besides: id, &step)
    let features = cryptography.formats.features & hello.features
    sessions[id]?.features = features
    sessions[id]?.sparing = CopySparing(features)
    guard ledger.authority.member(of: session.peer) != nil else { return try askForCredentials(session, hello, &step) }
    try greet(id, hello, &step)
  }

  /// The peer is a member, or has brought what shows that it is one elsewhere.
  private mutating func greet(
    _ id: SessionID, _ hello: Hello, isToBeShown: Bool = false, _ step: inout Step
  ) throws(SessionEnd) {
    guard let session = sessions[id], session.isDialer || !closeDuplicates(of: id, &step) else { return }
    step.emit(.authenticated(id, session.device, hello))
    if !session.isDialer { sendHello(id, &step) }
    if let difference = admission.clockDifference(hello, step.surroundings.wallMilliseconds) {
      step.emit(.note(id, .clockDiffers(milliseconds: difference)))
    }
    if !isToBeShown { restateInterest(id, &step) }
    try beginStatements(id, hello, isToBeShown: isToBeShown, &step)
  }

  private mutating func closeSurplus(besides id: SessionID, _ step: inout Step) {
    for other in sessions.surplus(besides: id, step.now) {
      fail(other, SessionEnd(.duplicate, "more than \(SessionTable.perDevice) sessions of one device"), &step)
    }
  }

  /// Two connections to one process: answers whether `id` went.
  private mutating func closeDuplicates(of id: SessionID, _ step: inout Step) -> Bool {
    let closed = sessions.duplicates(of: id, on: DeviceID.derived(from: local.device, cryptography.hash), step.now)
    for other in closed {
      step.emit(.note(other, .secondConnection))
      step.emit(.send(other, .goodbye(.duplicate)))
      close(other, .duplicate, &step)
    }
    return closed.last == id
  }

  // MARK: Credentials

  // Who was admitted elsewhere shows it, to who has shown to know the fleet.

  /// Equal sets, and not a member in this one: nothing that the exchange brings could show it.
  private mutating func askForCredentials(
    _ session: PeerSession, _ hello: Hello, _ step: inout Step
  ) throws(SessionEnd) {
    let own = session.greeting?.statedAuthority ?? ledger.authority.digest(cryptography.hash)
    guard !admission.names(own, .authority, hello.authority, session) else { throw .notAMember }
    sessions[session.id]?.state = .handshake(.unknown(session.greeting ?? Greeting(), early: nil))
    step.emit(.send(session.id, .credentialRequest(fleetProof: admission.proof(to: session))))
  }

  mutating func tellCredentials(_ id: SessionID, _ proof: Digest, _ step: inout Step) throws(SessionEnd) {
    guard let session = sessions[id] else { return }
    try admission.checkFleet(session, proof)
    guard sessions[id]?.greeting?.credentials.take() ?? sessions[id]?.exchange?.credentials.take() == true else {
      throw .breach("credentials asked for a second time")
    }
    step.emit(.send(id, .credentials(local.credentials)))
  }

  mutating func receiveCredentials(
    _ id: SessionID, _ credentials: [[UInt8]], _ step: inout Step
  ) throws(SessionEnd) {
    guard let session = sessions[id], let hello = session.hello else { return }
    // Statements may have come from elsewhere meanwhile.
    let isMember = ledger.authority.member(of: session.peer) != nil
    guard isMember || admission.showMembership(of: session.peer, credentials, ledger.authority) else {
      throw .notAMember
    }
    try greet(id, hello, isToBeShown: !isMember, &step)
  }

  // MARK: Joining

  mutating func receiveJoinRequest(
    _ id: SessionID, _ request: JoinRequest, _ step: inout Step
  ) throws(SessionEnd) {
    guard let session = sessions[id] else { return }
    sessions[id]?.state = .handshake(.joining)
    guard admission.knowsFleet(session, request.fleetProof) else {
      // Nothing is said: a stranger who guesses learns not even that this is another fleet.
      return step.emit(.note(id, .peerRefused("asked to join another fleet")))
    }
    guard request.device == session.peer, !request.label.hasControlCharacters else {
      throw .breach("a request to join that is not its device's")
    }
    guard request.invitation.inviter == local.device else { return refuseJoin(id, hint(to: request), &step) }
    step.emit(.redeem(id, request, exporter: session.exporter))
  }

  /// What a member knows that did not make the invitation.
  private func hint(to request: JoinRequest) -> JoinRefusal {
    guard ledger.authority.devices(enteredBy: request.invitation).isEmpty else { return .used }
    return .askInviter(label: ledger.authority.member(of: request.invitation.inviter)?.membership.label ?? "")
  }

  private mutating func refuseJoin(_ id: SessionID, _ refusal: JoinRefusal, _ step: inout Step) {
    step.emit(.note(id, .joinRefused(refusal)))
    step.emit(.send(id, .joinRefused(refusal)))
    close(id, .notAMember, &step)
  }

  mutating func joinJudged(_ id: SessionID, _ verdict: JoinVerdict, _ step: inout Step) {
    guard let session = sessions[id], session.phase == .joining, session.outbox.isEmpty else { return }
    switch verdict {
    case .refused(let refusal): refuseJoin(id, refusal, &step)
    case .accepted(let acceptance):
      // A member by now: what it is to be told may take longer than a stranger is given.
      step.emit(.admitted(id))
      sessions[id]?.outbox.put(ledger.authority.fleetStatements, then: .joined(acceptance))
      sayStatements(id, &step)
    }
  }

  // MARK: The end

  /// Says why, closes, forgets. A reason that concerns the peer alone is noted for people; of a breach the note says who did
  /// what.
  mutating func fail(_ id: SessionID, _ end: SessionEnd, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    if end.goodbye == .protocolError {
      let user = session.hello == nil ? nil : ledger.authority.member(of: session.peer)?.user
      let rule = BrokenRule(device: session.device, user: user, reason: end.why, place: end.place)
      step.emit(.note(id, .ruleBroken(rule)))
    } else {
      step.emit(.note(id, .peerRefused(end.why)))
    }
    step.emit(.send(id, .goodbye(end.goodbye)))
    close(id, end.goodbye, &step)
  }

  mutating func close(_ id: SessionID, _ reason: Goodbye, _ step: inout Step) {
    step.emit(.close(id, reason))
    closed(id, &step)
  }

  mutating func closed(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions.remove(id) else { return }
    if session.phase == .live {
      silent.note(SilentPeers.Peer(session, ledger))
      trees.closed(id, sessions, ledger, step)
    }
    ledger.dropPostponed(of: id)
    holdings.closed(id)
    neighbours.lose(session, step)
    pulls.closed(id, &sessions, ledger, &step)
  }
}

/// What the inviting device says to a request to join.
package enum JoinVerdict: Sendable, Equatable {
  case accepted(JoinAcceptance)
  case refused(JoinRefusal)
}

extension Text {
  /// What could drive a terminal that shows it.
  package var hasControlCharacters: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7f } }
}
