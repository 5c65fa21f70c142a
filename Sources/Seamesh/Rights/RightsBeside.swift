import Engine
import Replication

/// What else gives more than a grant does where it reaches. Rights add up: what somebody has by another grant, or by a rule,
/// a grant does not take, and a partition that looks closed is not.
struct RightsBeside {
  private let authority: Authority
  private let subject: Statement.Subject
  private let level: AccessLevel
  private let pattern: Text
  /// Whom the grant reaches now.
  private let members: [Member]

  init(_ authority: Authority, _ subject: Statement.Subject, _ level: AccessLevel, _ pattern: Text) {
    (self.authority, self.subject, self.level, self.pattern) = (authority, subject, level, pattern)
    members = authority.allMembers.flatMap { authority.standingMemberships(of: $0.device) }.filter(subject.reaches)
  }

  private static let toldLimit = 10

  var sentences: [String] {
    let ids = grants + rules
    let words = RightsWords(authority)
    let told = ids.prefix(RightsBeside.toldLimit).map { "more is given there by \(words.words(of: $0))" }
    let rest = ids.count - told.count
    return rest > 0 ? told + ["more is given there by \(counted(rest, "other")): seamesh permissions shows all"] : told
  }

  /// To everyone, the same subject, or some of those whom it names. Patterns are compared as far as one holds all of the other.
  private var grants: [Digest] {
    let name = try? PartitionName(pattern)
    let subjects = Set(members.flatMap(\.subjects) + [subject, .everyone])
    return authority.grants.filter { listed in
      guard case .grant(let grant) = listed.content, listed.isInForce, grant.level > level,
        subjects.contains(grant.subject), !listed.isGrant(to: subject, on: pattern)
      else { return false }
      return grant.pattern == pattern || name.map { Statement.Grant.reaches(grant.pattern, $0) } == true
    }.map(\.id)
  }

  /// Those that give more to a member whom the grant reaches.
  private var rules: [Digest] {
    var found: Set<Digest> = []
    // A rule gives all the same whom it reaches, but for rooms, in which each has a level of his own.
    var answered: Set<PartitionName> = []
    for member in members {
      for partition in partitions(of: member) where !answered.contains(partition) {
        guard authority.ruledLevel(of: member, in: partition) > level else { continue }
        let permissions = authority.permissions(of: member.id, in: partition)?.permissions ?? []
        found.formUnion(permissions.filter { $0.source != .grant && $0.isInForce && $0.level > level }.map(\.id))
        if partition.keyValue?.key != Statement.Rule.Key.conversation { answered.insert(partition) }
      }
    }
    return found.sorted()
  }

  /// Where rules may give the member something: the partition that is named, or of those that the pattern reaches the ones
  /// which are the member's by their value. Which rooms it is in does not follow from their names.
  private func partitions(of member: Member) -> [PartitionName] {
    guard pattern.utf8.last == UInt8(ascii: "*") else { return (try? PartitionName(pattern)).map { [$0] } ?? [] }
    var values = [(Statement.Rule.Key.user, member.user)]
    if case .string(let agency)? = member.membership.profile[Statement.Rule.Key.agency] {
      values.append((Statement.Rule.Key.agency, agency))
    }
    // All of them are alike to the rule, so that the beginning of their names stands for any.
    values.append((Statement.Rule.Key.allUsers, "any"))
    return values.compactMap { key, value in try? PartitionName(Text("\(key.string)=\(value.string)")) }
      .filter { name in
        Statement.Grant.reaches(pattern, name)
          || name.keyValue?.key == Statement.Rule.Key.allUsers && pattern.string.hasPrefix("all-users=")
      }
  }
}

extension Member {
  /// By which a grant reaches it.
  fileprivate var subjects: [Statement.Subject] {
    [.device(device), .user(user), .role(membership.role), .everyone]
  }
}
