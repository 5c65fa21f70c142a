/// A grant or rule, with what became of it.
package struct ListedRight: Sendable {
  package enum Content: Sendable {
    case grant(Statement.Grant)
    case rule(Statement.Rule)
  }

  package let id: Digest
  package let issuer: PublicKey
  package let content: Content
  package let endedBy: [Digest]
  package var isInForce: Bool { endedBy.isEmpty }
}

// What people ask about rights, and what a narrowing is made from.
extension Authority {
  /// Every grant that counts or once did, by subject and pattern.
  package var grants: [ListedRight] {
    rights.grants.entries.values.joined().map { listed($0.grant) }.sorted { $0.id < $1.id }
  }

  package var rules: [ListedRight] {
    rights.rules.values.joined().map { rule in
      ListedRight(
        id: rule.id, issuer: rule.issuer, content: .rule(rule.content), endedBy: ends(of: .grant(rule.id)))
    }.sorted { $0.id < $1.id }
  }

  private func listed(_ grant: Signed<Statement.Grant>) -> ListedRight {
    ListedRight(
      id: grant.id, issuer: grant.issuer, content: .grant(grant.content),
      endedBy: successors(of: grant) + ends(of: .grant(grant.id)))
  }

  /// Does a statement say anything, by who signed it and when? Of raises: whether root or an admin stands behind it.
  package func counts(_ id: Digest) -> Bool {
    guard let statement = self[id] else { return false }
    switch statement.body {
    case .grant(let grant):
      return rights.grants.entries[grant.subject, default: []].contains { $0.grant.id == id }
    case .end(let end): return rights.narrowings(of: end.target).contains { $0.id == id }
    case .rule(let rule): return rights.rules[rule.key, default: []].contains { $0.id == id }
    case .membership: return members.members[id] != nil
    case .raise: return rights.raiseIDs.contains(id)
    default: return true
    }
  }

  /// Grants of one subject and pattern, whoever signed them, that give more than `level` as long as nothing closes them; in order
  /// of their ids, since what is signed follows it.
  package func openGrants(
    to subject: Statement.Subject, on pattern: Text, above level: AccessLevel
  ) -> [(id: Digest, issuer: PublicKey, level: AccessLevel)] {
    rights.grants.entries[subject, default: []].filter { entry in
      let content = entry.grant.content
      guard content.pattern == pattern, content.level > level else { return false }
      // What writing or managing rests on goes on allowing it until something closes it for that; of what is below, only
      // the newest says anything.
      if content.level >= .write { return rights.closers(of: entry, below: level == .write ? .manage : .write).isEmpty }
      return successors(of: entry.grant).isEmpty && ends(of: .grant(entry.grant.id)).isEmpty
    }
    .map { ($0.grant.id, $0.grant.issuer, $0.grant.content.level) }.sorted { $0.id < $1.id }
  }

  /// Replicas of members that a grant to the subject reaches, in byte order.
  package func replicas(reachedBy subject: Statement.Subject) -> [ReplicaID] {
    members.byReplica.filter { _, owner in
      if case .member(let member) = owner { subject.reaches(member.membership) } else { false }
    }.keys.sorted()
  }

  /// Devices of members that a grant to the subject reaches.
  package func devices(reachedBy subject: Statement.Subject) -> [PublicKey] {
    Set(members.members.values.lazy.filter { subject.reaches($0.membership) }.map(\.device)).sorted()
  }

  /// Replicas that a membership carries, in byte order.
  package func replicas(under membership: Digest) -> [ReplicaID] {
    members.byReplica.filter { $0.value.membership == membership }.keys.sorted()
  }

  /// Declared by the device, by statements that no membership of it carries.
  package func voidReplicas(of device: PublicKey) -> [ReplicaID] {
    members.voidReplicas.filter { members.authors[$0] == device }.sorted()
  }

  /// Devices that were ended, and that declared replicas by statements which no membership of theirs carries; without those whose
  /// key somebody else may have.
  package var unheardEndedDevices: Set<PublicKey> {
    Set(members.voidReplicas.compactMap { members.authors[$0] }).filter { isEnded($0) && !isCompromised($0) }
  }

  /// The membership of the replica was ended; or nothing carries it, and any membership of its author was.
  package func isEnded(_ author: PublicKey, under replica: ReplicaID) -> Bool {
    let memberships = membership(for: replica).map { [$0] } ?? members(of: author)
    return memberships.contains { !ends(of: .membership($0.id)).isEmpty }
  }

  /// The end of every branch of what a device signed, by scope; the fleet's even where there is nothing, which is then
  /// said. `isMeant`: of these statements alone.
  package func tips(of device: PublicKey, where isMeant: (Digest) -> Bool = { _ in true }) -> [Statement.ScopeTips] {
    let own = allStatements.filter { $0.issuer == device && isMeant($0.id) }
    let followed = Set(own.compactMap(\.previous))
    var scopes: [Text: [Statement.Tip]] = ["": []]
    for statement in own where !followed.contains(statement.id) {
      scopes[statement.scope, default: []].append(
        Statement.Tip(issuer: device, sequence: statement.sequence, id: statement.id))
    }
    if scopes[""]?.isEmpty == true { scopes[""] = [Statement.Tip(issuer: device, sequence: 0, id: .zero)] }
    return scopes.sorted { $0.key < $1.key }
      .map { Statement.ScopeTips(scope: $0.key, tips: $0.value.sorted { $0.id < $1.id }) }
  }

  /// Memberships of a device that nothing has ended.
  package func standingMemberships(of device: PublicKey) -> [Member] {
    members(of: device).filter { !rights.isEnded(.membership($0.id)) }
  }

  /// Devices of root's making whose word counts for what they say next, and whose membership stands.
  package var standingAdmins: [PublicKey] {
    Set(allMembers.lazy.map(\.device)).filter { isAdmin($0) && !standingMemberships(of: $0).isEmpty }.sorted()
  }
}

extension Statement.Grant {
  /// Whether a text can stand in a grant as its pattern: a name, or the beginning of names followed by a `*`.
  package static func isPattern(_ text: Text) -> Bool {
    (try? PartitionName(text)) != nil && !text.utf8.dropLast().contains(UInt8(ascii: "*"))
  }

  /// Whether a grant with this pattern reaches the name (rule C16).
  package static func reaches(_ pattern: Text, _ name: PartitionName) -> Bool { NamePattern(pattern).matches(name) }
}

extension Authority {
  /// Whether everything that a device signed in the fleet counts under its membership.
  package func carriesAll(of device: PublicKey, under membership: Digest) -> Bool {
    allStatements.allSatisfy { statement in
      statement.issuer != device || !statement.isOfFleet || members.carries(statement.id, by: membership)
    }
  }
}

extension Authority {
  /// Every membership that counts, also those that ended, in order of their ids.
  package var allMemberships: [Member] { members.members.values.sorted { $0.id < $1.id } }
}

extension Statement.Subject {
  package func reaches(_ member: Member) -> Bool { reaches(member.membership) }
}
