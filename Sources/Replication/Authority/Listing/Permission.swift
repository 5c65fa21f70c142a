/// One statement that gives a membership something in a partition, or gave it once.
package struct Permission: Hashable, Sendable {
  package enum Source: String, Hashable, Sendable {
    case grant
    case rule
    /// Creation of a room, to its creator.
    case room
    case invitation
  }

  package let source: Source
  /// The statement.
  package let id: Digest
  /// What it gives, or gave.
  package let level: AccessLevel
  package let isInForce: Bool
  /// What took it away, where that can be named: ends, and the next of its register.
  package let endedBy: [Digest]

  package init(source: Source, id: Digest, level: AccessLevel, isInForce: Bool, endedBy: [Digest] = []) {
    (self.source, self.id, self.level, self.isInForce, self.endedBy) = (source, id, level, isInForce, endedBy)
  }
}

/// What a membership may do in a partition, with everything that it follows from (rules C16, C19, C24).
package struct PermissionListing: Hashable, Sendable {
  package let member: Member
  package let permissions: [Permission]
  /// Ends of the membership: while there is one, nothing is allowed.
  package let endedBy: [Digest]

  /// The highest that is in force.
  package var level: AccessLevel {
    guard endedBy.isEmpty else { return .none }
    return permissions.lazy.filter(\.isInForce).map(\.level).max() ?? .none
  }

  /// What the level rests on: those in force that give it.
  package var reasons: [Permission] {
    endedBy.isEmpty ? permissions.filter { $0.isInForce && $0.level == level && level > .none } : []
  }
}

extension Authority {
  /// Nil for what is no counting membership.
  package func permissions(of membership: Digest, in partition: PartitionName) -> PermissionListing? {
    guard let member = members.members[membership] else { return nil }
    let found = granted(to: member, in: partition) + ruled(for: member, in: partition)
    return PermissionListing(
      member: member, permissions: found.sorted { ($1.level, $0.id) < ($0.level, $1.id) },
      endedBy: ends(of: .membership(membership)))
  }

  /// What took the right to write there from a member: of each grant and rule that gave it all that closes it. By these its chains
  /// are bounded, and not by what lowered it further since (rule C17). Where all that closes one of them is raised, what the member
  /// wrote counts, whatever closes the others. Grants to the fewest come first: a raise gives something to all whom its grant reached.
  package func closersOfWriting(of member: Member, in partition: PartitionName) -> [Set<Digest>] {
    let entries = rights.grants.entries(reaching: member.membership)
      .filter { $0.pattern.matches(partition) && $0.grant.content.level >= .write }
      .sorted { ($0.grant.content.subject.breadth, $0.grant.id) < ($1.grant.content.subject.breadth, $1.grant.id) }
    let byGrants = entries.map { entry in Set(rights.closers(of: entry, below: .write).map(\.id)) }
    let byRules = ruled(for: member, in: partition).filter { $0.level >= .write }.map { Set($0.endedBy) }
    return (byGrants + byRules).filter { !$0.isEmpty }
  }

  /// Everything that closes grants for some level.
  package var closersOfGrants: Set<Digest> {
    let closers = rights.grants.entries.values.joined().flatMap { entry in
      [AccessLevel.write, .manage].flatMap { rights.closers(of: entry, below: $0) }
    }
    return Set(closers.map(\.id))
  }

  /// Ends that count, by their ids.
  package func ends(of target: Statement.End.Target) -> [Digest] { rights.narrowings(of: target).map(\.id).sorted() }

  private func granted(to member: Member, in partition: PartitionName) -> [Permission] {
    rights.grants.entries(reaching: member.membership).filter { $0.pattern.matches(partition) }
      .map { permission($0.grant) }
  }

  private func permission(_ grant: Signed<Statement.Grant>) -> Permission {
    let endedBy = successors(of: grant) + ends(of: .grant(grant.id))
    return Permission(
      source: .grant, id: grant.id, level: grant.content.level, isInForce: endedBy.isEmpty, endedBy: endedBy)
  }

  /// The newest of a grant's register, where that is another.
  func successors(of grant: Signed<Statement.Grant>) -> [Digest] {
    let register = GrantTable.Register(grant)
    let newest = rights.grants.current[grant.content.subject, default: []].first { GrantTable.Register($0) == register }
    return newest.flatMap { $0.id == grant.id ? nil : [$0.id] } ?? []
  }

  private func ruled(for member: Member, in partition: PartitionName) -> [Permission] {
    guard let (key, value) = partition.keyValue, let rules = rights.rules[key] else { return [] }
    let level: AccessLevel =
      switch key {
      case Statement.Rule.Key.agency: member.membership.attribute(key) == value ? .write : .none
      case Statement.Rule.Key.user: member.user == value ? .write : .none
      case Statement.Rule.Key.allUsers: .read
      case Statement.Rule.Key.conversation: rooms[partition.text]?.level(of: member.user) ?? .none
      default: .none
      }
    guard level > .none || key == Statement.Rule.Key.conversation else { return [] }
    let byRule = rules.map { rule in
      let endedBy = ends(of: .grant(rule.id))
      return Permission(source: .rule, id: rule.id, level: level, isInForce: endedBy.isEmpty, endedBy: endedBy)
    }
    guard key == Statement.Rule.Key.conversation else { return byRule }
    return byRule + invited(member.user, to: partition, isRuled: byRule.contains(where: \.isInForce))
  }

  /// Inside a room, which is one only while a rule says so.
  private func invited(_ user: Text, to room: PartitionName, isRuled: Bool) -> [Permission] {
    guard let rights = rooms[room.text] else { return [] }
    if rights.creator == user {
      return creations(of: room).map { Permission(source: .room, id: $0, level: .manage, isInForce: isRuled) }
    }
    return rights.invitations[user, default: []].map {
      Permission(source: .invitation, id: $0.id, level: .write, isInForce: isRuled && $0.isOpen)
    }
  }

  private func creations(of room: PartitionName) -> [Digest] {
    allStatements.lazy.map(\.id).filter { PartitionName.room(createdBy: $0) == room.text }
  }
}

extension Statement.Subject {
  /// Grows with the number of those whom it names.
  fileprivate var breadth: Int {
    switch self {
    case .device: 0
    case .user: 1
    case .role: 2
    case .everyone: 3
    }
  }
}
