extension Authority {
  /// What a membership may do now: carry, read, write locally. The highest that reaches it wins (rules C16, C19, C24).
  package func level(of membership: Digest, in partition: PartitionName) -> AccessLevel {
    guard let member = members.members[membership], !rights.isEnded(.membership(membership)) else { return .none }
    return max(grantedLevel(of: member, in: partition), ruledLevel(of: member, in: partition))
  }

  /// The highest level of the device's memberships.
  package func level(of device: PublicKey, in partition: PartitionName) -> AccessLevel {
    levels.level(of: device, in: partition) {
      members(of: device).lazy.map { level(of: $0.id, in: partition) }.max() ?? .none
    }
  }

  private func grantedLevel(of member: Member, in partition: PartitionName) -> AccessLevel {
    let reaching = member.membership.subjects.lazy.flatMap { rights.grants.current[$0, default: []] }
    let standing = reaching.filter {
      NamePattern($0.content.pattern).matches(partition) && !rights.isEnded(.grant($0.id))
    }
    return standing.map(\.content.level).max() ?? .none
  }

  /// What rules give a member, without a look at what they rest on.
  package func ruledLevel(of member: Member, in partition: PartitionName) -> AccessLevel {
    guard let (key, value) = partition.keyValue,
      rights.rules[key, default: []].contains(where: { !rights.isEnded(.grant($0.id)) })
    else { return .none }
    switch key {
    case Statement.Rule.Key.agency: return member.membership.attribute(key) == value ? .write : .none
    case Statement.Rule.Key.user: return member.user == value ? .write : .none
    case Statement.Rule.Key.allUsers: return .read
    case Statement.Rule.Key.conversation: return rooms[partition.text]?.level(of: member.user) ?? .none
    default: return .none
    }
  }
}
