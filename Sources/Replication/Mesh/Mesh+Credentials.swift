// Credentials: who was admitted elsewhere shows it, to who has shown to know the fleet.
extension Mesh {
  /// Equal sets, and not a member in this one: nothing that the exchange brings could show it.
  mutating func askForCredentials(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], let hello = session.hello else { return }
    let own = session.greeting?.statedAuthority ?? ledger.authority.digest(cryptography.hash)
    guard !names(own, .authority, hello.authority, session) else {
      return fail(id, .notAMember, "not a member of this fleet", &step)
    }
    sessions[id]?.state = .handshake(.unknown(session.greeting ?? Greeting(), early: nil))
    step.emit(.send(id, .credentialRequest(fleetProof: fleetProof(of: session).proof(ofDialer: session.isDialer))))
  }

  mutating func tellCredentials(_ id: SessionID, _ proof: Digest, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    guard knowsFleet(session, proof) else { return fail(id, .otherFleet, "another fleet", &step) }
    guard sessions[id]?.greeting?.credentials.take() ?? sessions[id]?.exchange?.credentials.take() == true else {
      return fail(id, .protocolError, "credentials asked for a second time", &step)
    }
    step.emit(.send(id, .credentials(local.credentials)))
  }

  mutating func receiveCredentials(_ id: SessionID, _ credentials: [[UInt8]], _ step: inout Step) {
    guard let session = sessions[id], let hello = session.hello else { return }
    // Statements may have come from elsewhere meanwhile.
    let isMember = ledger.authority.member(of: session.peer) != nil
    guard isMember || showMembership(of: session.peer, credentials) else {
      return fail(id, .notAMember, "not a member of this fleet", &step)
    }
    greet(id, hello, isToBeShown: !isMember, &step)
  }

  /// Judges credentials alone: the device may have been admitted elsewhere, by a statement that cannot be linked here
  /// before those that its issuer signed earlier are. The exchange of statements then shows whether it counts.
  private func showMembership(of device: PublicKey, _ credentials: [[UInt8]]) -> Bool {
    guard credentials.count <= Message.credentialLimit else { return false }
    let brought = credentials.compactMap { cryptography.statement($0).statement }
      .filter { $0.fleet == local.fleet && $0.isOfFleet }
    let ended = ledger.authority.endedMemberships
    return brought.contains { own in
      guard own.makesMember(device), !ended.contains(own.id) else { return false }
      if own.issuer == ledger.authority.root { return true }
      guard !own.makesAdmin else { return false }
      let known = ledger.authority.members(of: own.issuer).compactMap { ledger.authority[$0.id] }
      return (brought + known).contains {
        $0.issuer == ledger.authority.root && $0.makesMember(own.issuer) && $0.makesAdmin && !ended.contains($0.id)
      }
    }
  }
}

extension Authority {
  /// Memberships on which root, or who was ever an admin, has set an end, whether it counts or not. Others' ends would let
  /// any member keep out whom an admin admits.
  var endedMemberships: Set<Digest> {
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
