import Replication

/// C8: what was ever signed, whether it counts now or not, raises and new grants ignored: what follows only grows with the
/// statements, so that the floor only falls.
struct NaiveEver {
  let facts: NaiveFacts
  /// Root, and every device that root made an admin.
  private let admins: [PublicKey]

  init(_ rank: NaiveRank) {
    facts = rank.facts
    admins = [facts.root] + rank.admins.map(\.device)
  }

  /// Was the device ever root, admin or manager?
  func wasEntitled(_ device: PublicKey) -> Bool {
    if admins.contains(device) { return true }
    let memberships = facts.memberships.filter {
      $0.device == device && admins.contains($0.statement.issuer)
    }
    return facts.grants.contains { grant in
      grant.content.level == .manage && admins.contains(grant.issuer) && memberships.contains { grant.reaches($0) }
    }
  }

  func wasSignedByEntitled(_ member: NaiveMember) -> Bool {
    wasEntitled(member.statement.issuer)
  }

  /// Every end on a target that anyone entitled ever signed, or, of a replica, its own device.
  func narrowings(of target: Statement.End.Target) -> [Statement] {
    let owners: [PublicKey] = if case .replica(let id) = target { facts.declarations(of: id).map(\.issuer) } else { [] }
    return facts.ends.filter {
      $0.content.target == target && (owners.contains($0.issuer) || wasEntitled($0.issuer))
    }.map(\.statement)
  }

  /// Ends on a grant, and later grants of its register below a level.
  func lowerings(of grant: NaiveFact<Statement.Grant>, below level: AccessLevel) -> [Statement] {
    let lower = facts.grants.filter {
      $0.sharesRegister(grant) && grant.precedes($0) && $0.content.level.rawValue < level.rawValue
    }
    return narrowings(of: .grant(grant.id)) + lower.map(\.statement)
  }

  /// Could this statement have fallen: does some end on its issuer not list it, or was its issuer's right to grant lowered?
  func couldHaveFallen(_ statement: Statement) -> Bool {
    let memberships = facts.set.statements.values.compactMap { NaiveMember($0) }.filter {
      $0.device == statement.issuer
    }
    let isLeftOut = memberships.flatMap { narrowings(of: .membership($0.id)) }.contains { end in
      let listed = facts.listing(of: end).statements(of: statement.issuer, in: "")
      return listed.map { !$0.contains(statement.id) } ?? false
    }
    if isLeftOut { return true }
    guard case .grant = statement.body else { return false }
    let known = facts.memberships.filter { $0.device == statement.issuer }
    return facts.grants.contains { grant in
      grant.content.level == .manage && known.contains { grant.reaches($0) }
        && !lowerings(of: grant, below: .manage).isEmpty
    }
  }
}
