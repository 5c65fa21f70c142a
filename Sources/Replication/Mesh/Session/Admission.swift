/// Who is let in: what shows that a peer knows the fleet, and that it is a member or was admitted elsewhere.
struct Admission {
  let local: LocalIdentity
  let cryptography: Cryptography

  private func fleetProof(_ session: PeerSession) -> FleetProof {
    FleetProof(
      local.fleet, exporter: session.exporter, hash: cryptography.hash,
      authenticationCode: cryptography.authenticationCode)
  }

  /// That this side knows the fleet.
  func proof(to session: PeerSession) -> Digest { fleetProof(session).proof(ofDialer: session.isDialer) }

  func knowsFleet(_ session: PeerSession, _ proof: Digest) -> Bool {
    fleetProof(session).proof(ofDialer: !session.isDialer).equalsInConstantTime(proof)
  }

  /// The peer's hello named this digest.
  func names(_ digest: Digest, _ subject: FleetProof.Subject, _ mark: DigestMark, _ session: PeerSession) -> Bool {
    fleetProof(session).mark(digest, subject, ofDialer: !session.isDialer) == mark
  }

  // MARK: Hello

  func hello(to session: PeerSession, authority: Digest, interest: Digest, wallMilliseconds: Int64) -> Hello {
    let (proof, isDialer) = (fleetProof(session), session.isDialer)
    var hello = Hello(
      fleetProof: proof.proof(ofDialer: isDialer), instance: local.instance, wallMilliseconds: wallMilliseconds,
      listenPort: local.listenPort, authority: proof.mark(authority, .authority, ofDialer: isDialer),
      interest: proof.mark(interest, .interest, ofDialer: isDialer))
    hello.features = cryptography.formats.features
    hello.signature = cryptography.sign(
      hello.signedBytes(device: local.device, exporter: session.exporter, isDialer: isDialer))
    return hello
  }

  func check(_ hello: Hello, _ session: PeerSession) throws(SessionEnd) {
    guard hello.version >= 1 else { throw SessionEnd(.versionUnknown, "protocol version \(hello.version)") }
    try checkFleet(session, hello.fleetProof)
    let signed = hello.signedBytes(device: session.peer, exporter: session.exporter, isDialer: !session.isDialer)
    guard cryptography.verify(hello.signature, signed, session.peer) else {
      throw .breach("a hello that its device did not sign")
    }
    guard hello.instance != local.instance else { throw SessionEnd(.ownConnection, "this node itself") }
  }

  func checkFleet(_ session: PeerSession, _ proof: Digest) throws(SessionEnd) {
    guard knowsFleet(session, proof) else { throw SessionEnd(.otherFleet, "another fleet") }
  }

  /// How far the peer's clock is from this node's, where that is more than clocks may differ.
  func clockDifference(_ hello: Hello, _ own: Int64) -> Int64? {
    let (difference, overflow) = hello.wallMilliseconds.subtractingReportingOverflow(own)
    let limit = Int64(HybridTimestamp.adoptionLimitMilliseconds)
    guard overflow || difference > limit || difference < -limit else { return nil }
    return overflow ? .max : difference
  }

  // MARK: Credentials

  /// Judges credentials alone: the device may have been admitted elsewhere, by a statement that cannot be linked here
  /// before those that its issuer signed earlier are. The exchange of statements then shows whether it counts.
  func showMembership(of device: PublicKey, _ credentials: [[UInt8]], _ authority: Authority) -> Bool {
    guard credentials.count <= Message.credentialLimit else { return false }
    let brought = credentials.compactMap { cryptography.statement($0).statement }
      .filter { $0.fleet == local.fleet && $0.isOfFleet }
    let ended = authority.endedMemberships
    return brought.contains { own in
      guard own.makesMember(device), !ended.contains(own.id) else { return false }
      if own.issuer == authority.root { return true }
      guard !own.makesAdmin else { return false }
      let known = authority.members(of: own.issuer).compactMap { authority[$0.id] }
      return (brought + known).contains {
        $0.issuer == authority.root && $0.makesMember(own.issuer) && $0.makesAdmin && !ended.contains($0.id)
      }
    }
  }

  // MARK: Statements

  /// What a message says in this scope.
  func statements(_ encoded: [[UInt8]], of scope: Text) throws(SessionEnd) -> [Statement] {
    var statements: [Statement] = []
    for bytes in encoded {
      switch cryptography.statement(bytes) {
      case .laterVersion: continue
      case .statement(let statement) where statement.fleet == local.fleet && statement.scope == scope:
        statements.append(statement)
      case .statement, .broken: throw .breach("a statement that does not hold")
      }
    }
    return statements
  }
}

extension Authority {
  /// Memberships on which root, or who was ever an admin, has set an end, whether it counts or not. Others' ends would let
  /// any member keep out whom an admin admits.
  fileprivate var endedMemberships: Set<Digest> {
    Set(
      fleetStatements.compactMap { statement in
        guard wasEverAdmin(statement.issuer), case .end(let end) = statement.body,
          case .membership(let target) = end.target
        else { return nil }
        return target
      })
  }
}

extension Statement {
  fileprivate func makesMember(_ device: PublicKey) -> Bool {
    if case .membership(let membership) = body { membership.device == device } else { false }
  }

  fileprivate var makesAdmin: Bool {
    if case .membership(let membership) = body { membership.role == MemberTable.adminRole } else { false }
  }
}
