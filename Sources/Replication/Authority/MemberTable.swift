/// Which of its device's statements a membership carries (rule C13).
enum Carried: Sendable {
  case all
  /// What each of these lets stand.
  case only([CoveredStatements])

  func contains(_ id: Digest) -> Bool {
    switch self {
    case .all: true
    case .only(let listed): listed.allSatisfy { $0.contains(id) }
    }
  }

  fileprivate mutating func formIntersection(_ listed: CoveredStatements) {
    self = if case .only(let others) = self { .only(others + [listed]) } else { .only([listed]) }
  }
}

/// Who belongs to the fleet, whose word counts, and which replica belongs to whom (rules C2, C13, C15).
///
/// Layers are built top down, so that nothing is judged by what it decides: root, admins, members, replicas.
struct MemberTable: Sendable {
  static let adminRole: Text = "admin"

  /// Whose replica it is.
  enum Owner: Sendable {
    case member(Member)
    /// By a membership in a shape that this build cannot read: its runs are taken, and have no right here (rule C27).
    case strange(membership: Digest, device: PublicKey)

    var membership: Digest {
      switch self {
      case .member(let member): member.id
      case .strange(let membership, _): membership
      }
    }
    var device: PublicKey {
      switch self {
      case .member(let member): member.device
      case .strange(_, let device): device
      }
    }
  }

  let root: PublicKey
  let genesis: Statement.Genesis?
  /// Memberships that root gave admins, whatever was said of them later.
  private let admins: [Digest: Member]
  private let adminsByDevice: [PublicKey: [Member]]
  private let devices: [Digest: PublicKey]
  private var carried: [Digest: Carried] = [:]
  /// Ends on admins that count.
  private(set) var endsOnAdmins: Set<Digest> = []
  private(set) var members: [Digest: Member] = [:]
  /// In order of (sequence, id) of their statements.
  private(set) var byDevice: [PublicKey: [Member]] = [:]
  private(set) var byReplica: [ReplicaID: Owner] = [:]
  /// The device whose id is in the replica's, whether its declaration counts or not.
  private(set) var authors: [ReplicaID: PublicKey] = [:]
  /// Declared, but by nobody whose declaration counts.
  private(set) var voidReplicas: Set<ReplicaID> = []

  init(_ index: StatementIndex, _ set: AdmittedStatements, root: PublicKey) {
    (self.root, genesis) = (root, set.genesis)
    let admins = index.memberships.filter { $0.issuer == root && $0.content.role == MemberTable.adminRole }
      .map { Member(id: $0.id, membership: $0.content) }
    self.admins = Dictionary(admins.map { ($0.id, $0) }) { first, _ in first }
    adminsByDevice = Dictionary(grouping: admins, by: \.device)
    devices = index.statedMemberships.mapValues(\.device)
    let narrowings = MembershipEnds(index)
    settleAdmins(narrowings)
    settleMembers(index, narrowings)
    settleReplicas(index)
  }

  func isEverAdmin(_ device: PublicKey) -> Bool { device == root || adminsByDevice[device] != nil }

  func isEverAdminMembership(_ id: Digest) -> Bool { admins[id] != nil }

  /// The device of any membership in the set, whoever signed it.
  func device(of membership: Digest) -> PublicKey? { devices[membership] }

  /// No end bounds what its device signs from now on.
  func isUnbounded(_ membership: Digest) -> Bool { if case .only? = carried[membership] { false } else { true } }

  /// Does the membership, as far as ends have bounded it, carry this statement of its device?
  func carries(_ statement: Digest, by membership: Digest) -> Bool { carried[membership]?.contains(statement) ?? true }

  /// Does root or an admin stand behind this statement?
  func isAdmin(_ issuer: PublicKey, _ id: Digest) -> Bool {
    issuer == root || adminsByDevice[issuer, default: []].contains { carries(id, by: $0.id) }
  }

  func isAdmin<Content>(_ statement: Signed<Content>) -> Bool { isAdmin(statement.issuer, statement.id) }

  /// Root's word on admins first; then admins' ends on each other all at once, so that mutual removal suspends both. Any
  /// other answer would depend on who spoke first, which nobody knows. Only root raises them (rule C15).
  private mutating func settleAdmins(_ narrowings: MembershipEnds) {
    let byRoot = admins.mapValues { admin in
      narrowings.carried(by: admin, ends: { $0.issuer == root }, raises: { $0.issuer == root })
    }
    func isPeer(_ end: Signed<Statement.End>) -> Bool {
      adminsByDevice[end.issuer, default: []].contains { byRoot[$0.id]?.contains(end.id) ?? true }
    }
    for (id, admin) in admins {
      func counts(_ end: Signed<Statement.End>) -> Bool {
        end.issuer == root || end.issuer != admin.device && isPeer(end)
      }
      carried[id] = narrowings.carried(by: admin, ends: counts, raises: { $0.issuer == root })
      endsOnAdmins.formUnion(narrowings.ends(on: id).filter(counts).map(\.id))
    }
  }

  private mutating func settleMembers(_ index: StatementIndex, _ narrowings: MembershipEnds) {
    let counting = index.memberships.filter { signed in
      // A role of this name that anyone but the root gave must not gather the grants made to admins either.
      signed.content.role == MemberTable.adminRole ? admins[signed.id] != nil : isAdmin(signed)
    }.map { Member(id: $0.id, membership: $0.content) }
    members = Dictionary(counting.map { ($0.id, $0) }) { first, _ in first }
    byDevice = Dictionary(grouping: counting, by: \.device)
    let strange = index.unread.filter { $0.content.member != nil && isAdmin($0) }
    let readable = counting.lazy.filter { [admins] in admins[$0.id] == nil }.map { ($0.id, $0.device) }
    for (id, device) in Array(readable)
      + strange.compactMap({ signed in
        signed.content.member.map { (signed.id, $0.device) }
      })
    {
      carried[id] = narrowings.carried(by: id, device, ends: isAdmin, raises: isAdmin)
    }
    self.strange = Dictionary(strange.compactMap { signed in signed.content.member.map { (signed.id, $0.device) } }) {
      first, _ in first
    }
  }

  /// Devices of counting memberships in a shape that this build cannot read.
  private var strange: [Digest: PublicKey] = [:]

  /// A replica belongs for ever to the first membership that its declarations name (rule C2).
  private mutating func settleReplicas(_ index: StatementIndex) {
    authors = Dictionary(index.replicas.map { ($0.content.replica, $0.issuer) }) { first, _ in first }
    for declaration in index.replicas where byReplica[declaration.content.replica] == nil {
      guard let owner = owner(declaration.content.membership), owner.device == declaration.issuer,
        carries(declaration.id, by: owner.membership)
      else { continue }
      byReplica[declaration.content.replica] = owner
    }
    voidReplicas = index.declared.subtracting(byReplica.keys)
  }

  private func owner(_ membership: Digest) -> Owner? {
    if let member = members[membership] { return .member(member) }
    return strange[membership].map { .strange(membership: membership, device: $0) }
  }
}

/// Ends of memberships that list their device's own statements; others do not count (rule C12).
private struct MembershipEnds {
  private var byTarget: [Digest: [Signed<Statement.End>]] = [:]
  private let raises: [Digest: [Signed<Statement.Raise>]]
  private let index: StatementIndex

  init(_ index: StatementIndex) {
    self.index = index
    raises = Dictionary(grouping: index.raises, by: \.content.end)
    for end in index.ends {
      if case .membership(let target) = end.content.target { byTarget[target, default: []].append(end) }
    }
  }

  func ends(on membership: Digest) -> [Signed<Statement.End>] { byTarget[membership, default: []] }

  func carried(
    by admin: Member, ends: (Signed<Statement.End>) -> Bool, raises counts: (Signed<Statement.Raise>) -> Bool
  ) -> Carried {
    carried(by: admin.id, admin.device, ends: ends, raises: counts)
  }

  /// Over the ends that count, what all of them, each with its raises, let stand.
  func carried(
    by membership: Digest, _ device: PublicKey, ends: (Signed<Statement.End>) -> Bool,
    raises counts: (Signed<Statement.Raise>) -> Bool
  ) -> Carried {
    var carried = Carried.all
    for end in self.ends(on: membership) where ends(end) {
      guard var listed = index.word(of: end.id).statements(of: device) else { continue }
      for raise in raises[end.id, default: []] where counts(raise) {
        if let more = index.word(of: raise.id).statements(of: device) { listed.formUnion(more) }
      }
      carried.formIntersection(listed)
    }
    return carried
  }
}
