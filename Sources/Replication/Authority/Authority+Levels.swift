extension Authority {
  /// What a membership may do now: carry, read, write locally. The highest that reaches it wins (rules C16, C19).
  package func level(of membership: Digest, in partition: PartitionName) -> AccessLevel {
    guard let member = members.members[membership] else { return .none }
    return max(grantedLevel(of: member, in: partition), ruledLevel(of: member, in: partition))
  }

  /// The highest level of the device's memberships.
  package func level(of device: PublicKey, in partition: PartitionName) -> AccessLevel {
    members(of: device).lazy.map { level(of: $0.id, in: partition) }.max() ?? .none
  }

  private func grantedLevel(of member: Member, in partition: PartitionName) -> AccessLevel {
    let reaching = member.membership.subjects.lazy.flatMap { grants.current[$0, default: []] }
    return reaching.filter { NamePattern($0.content.pattern).matches(partition) }.map(\.content.level).max() ?? .none
  }

  private func ruledLevel(of member: Member, in partition: PartitionName) -> AccessLevel {
    guard let (key, value) = partition.keyValue, rules[key] != nil else { return .none }
    switch key {
    case Statement.Rule.Key.agency: return member.membership.attribute(key) == value ? .write : .none
    case Statement.Rule.Key.user: return member.user == value ? .write : .none
    case Statement.Rule.Key.allUsers: return .read
    default: return .none
    }
  }
}
