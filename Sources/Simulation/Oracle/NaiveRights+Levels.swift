import Replication

// C16, C19, C24: what a membership may do now.
extension NaiveRights {
  /// The highest level that reaches the membership.
  package func level(of membership: Digest, in partition: Text) -> AccessLevel {
    guard let member = rank.members.first(where: { $0.id == membership }), NaiveRights.isWellFormed(partition),
      ends(on: .membership(membership)).isEmpty
    else { return .none }
    return max(grantedLevel(of: member, in: partition), ruledLevel(of: member, in: partition))
  }

  /// A device has the highest level of all its memberships.
  package func level(of device: PublicKey, in partition: Text) -> AccessLevel {
    rank.members.filter { $0.device == device }.map { level(of: $0.id, in: partition) }.max() ?? .none
  }

  private static func isWellFormed(_ name: Text) -> Bool {
    let bytes = Array(name.string.utf8)
    return (1...255).contains(bytes.count) && bytes.allSatisfy { $0 >= 32 && $0 != 127 }
  }

  private func grantedLevel(of member: NaiveMember, in partition: Text) -> AccessLevel {
    // Of each register the newest, by highest sequence, then lowest id.
    let newest = grants.filter { grant in
      !grants.contains {
        $0.sharesRegister(grant)
          && ($0.statement.sequence > grant.statement.sequence
            || $0.statement.sequence == grant.statement.sequence && $0.id < grant.id)
      }
    }
    return newest.filter {
      $0.reaches(member) && $0.matches(partition) && ends(on: .grant($0.id)).isEmpty
    }.map(\.content.level).max() ?? .none
  }

  private func ruledLevel(of member: NaiveMember, in partition: Text) -> AccessLevel {
    guard let name = NaiveRuleName(partition),
      rules.contains(where: { $0.content.key == name.key && ends(on: .grant($0.id)).isEmpty })
    else { return .none }
    switch name.key {
    case "agency": return member.isOf(agency: name.value) ? .write : .none
    case "user": return member.user == name.value ? .write : .none
    case "all-users": return .read
    case "conversation": return rooms[partition]?.level(of: member) ?? .none
    default: return .none
    }
  }
}
