extension Mesh {
  /// Judges the credentials of a hello alone: the device may have been admitted elsewhere, by a statement that cannot be
  /// linked here before those that its issuer signed earlier are. The exchange of statements then shows whether it counts.
  func showsMembership(_ hello: Hello) -> Bool {
    guard hello.credentials.count <= Hello.credentialLimit else { return false }
    let brought = hello.credentials.compactMap(cryptography.statement)
      .filter { $0.fleet == local.fleet && $0.isOfFleet }
    let ended = authority.endedMemberships
    return brought.contains { own in
      guard own.makesMember(hello.device), !ended.contains(own.id) else { return false }
      if own.issuer == authority.root { return true }
      guard !own.makesAdmin else { return false }
      let known = authority.members(of: own.issuer).compactMap { authority[$0.id] }
      return (brought + known).contains {
        $0.issuer == authority.root && $0.makesMember(own.issuer) && $0.makesAdmin && !ended.contains($0.id)
      }
    }
  }
}

extension Authority {
  /// Memberships on which an end is here, whoever signed it.
  var endedMemberships: Set<Digest> {
    Set(
      fleetStatements.compactMap { statement in
        guard case .end(let end) = statement.body, case .membership(let target) = end.target else { return nil }
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
