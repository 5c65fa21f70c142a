extension Mesh {
  mutating func open(
    _ id: SessionID, isDialer: Bool, peer: PublicKey, exporter: Digest, _ passage: Passage, _ step: inout Step
  ) {
    let device = DeviceID.derived(from: peer, cryptography.hash)
    sessions[id] = PeerSession(
      id: id, isDialer: isDialer, peer: peer, device: device, exporter: exporter, now: step.now)
    sessions[id]?.pass(passage, interest, ledger)
    closeSurplus(besides: id, &step)
    // The listener stays silent until the dialer has shown that it is a member: a stranger learns nothing by asking.
    guard isDialer, !closeDuplicates(of: id, &step) else { return }
    sendHello(id, &step)
  }

  private mutating func sendHello(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let (proof, isDialer) = (fleetProof(of: session), session.isDialer)
    let (authority, interest) = (ledger.authority.digest(cryptography.hash), session.interest.digest(cryptography.hash))
    var hello = Hello(
      fleetProof: proof.proof(ofDialer: isDialer), instance: local.instance,
      wallMilliseconds: step.surroundings.wallMilliseconds,
      listenPort: local.listenPort, authority: proof.mark(authority, .authority, ofDialer: isDialer),
      interest: proof.mark(interest, .interest, ofDialer: isDialer))
    hello.features = cryptography.formats.features
    hello.signature = cryptography.sign(
      hello.signedBytes(device: local.device, exporter: session.exporter, isDialer: isDialer))
    sessions[id]?.greeting?.sayHello(authority)
    sessions[id]?.wishes.state(interest)
    step.emit(.send(id, .hello(hello)))
  }

  mutating func receiveHello(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    guard hello.version >= 1 else { return fail(id, .versionUnknown, "protocol version \(hello.version)", &step) }
    guard knowsFleet(session, hello.fleetProof) else { return fail(id, .otherFleet, "another fleet", &step) }
    let signed = hello.signedBytes(device: session.peer, exporter: session.exporter, isDialer: !session.isDialer)
    guard cryptography.verify(hello.signature, signed, session.peer) else {
      return fail(id, .protocolError, "a hello that its device did not sign", &step)
    }
    guard hello.instance != local.instance else { return fail(id, .ownConnection, "this node itself", &step) }
    sessions[id]?.hello = hello
    let sparing = sparing(with: hello)
    sessions[id]?.sparing = sparing
    guard ledger.authority.member(of: session.peer) != nil else { return askForCredentials(id, &step) }
    greet(id, hello, &step)
  }

  /// The peer is a member, or has brought what shows that it is one elsewhere.
  mutating func greet(_ id: SessionID, _ hello: Hello, isToBeShown: Bool = false, _ step: inout Step) {
    guard let session = sessions[id], session.isDialer || !closeDuplicates(of: id, &step) else { return }
    step.emit(.authenticated(id, session.device, hello))
    if !session.isDialer { sendHello(id, &step) }
    noteClock(id, hello, &step)
    if !isToBeShown { restateInterest(id, &step) }
    beginStatements(id, hello, isToBeShown: isToBeShown, &step)
  }

  func fleetProof(of session: PeerSession) -> FleetProof {
    FleetProof(
      local.fleet, exporter: session.exporter, hash: cryptography.hash,
      authenticationCode: cryptography.authenticationCode)
  }

  func knowsFleet(_ session: PeerSession, _ proof: Digest) -> Bool {
    fleetProof(of: session).proof(ofDialer: !session.isDialer).equalsInConstantTime(proof)
  }

  /// The peer's hello named this digest.
  func names(_ digest: Digest, _ subject: FleetProof.Subject, _ mark: DigestMark, _ session: PeerSession) -> Bool {
    fleetProof(of: session).mark(digest, subject, ofDialer: !session.isDialer) == mark
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
    let own = step.surroundings.wallMilliseconds
    let (difference, overflow) = hello.wallMilliseconds.subtractingReportingOverflow(own)
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

  mutating func peerClosed(_ id: SessionID, _ reason: Goodbye, _ step: inout Step) {
    step.emit(.close(id, reason))
    closed(id, &step)
  }

  mutating func closed(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions.removeValue(forKey: id) else { return }
    if session.phase == .live { silent.note(SilentPeers.Peer(session, ledger)) }
    dropPostponed(of: id)
    holdings.closed(id)
    noteLostNeighbour(session, step.now)
    for partition in catchUps.partitions(of: id) {
      catchUps.end(partition)
      pullWherePossible(partition, &step)
    }
  }
}
