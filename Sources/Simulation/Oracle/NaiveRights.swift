import Replication

/// A second reading of statements, written from the rules C2 and C10–C19 and from nothing else. Nothing is indexed: each
/// question goes over the whole set.
package struct NaiveRights: Sendable {
  /// C2: does the declaration's id belong to the key that signed it?
  package typealias Certificate = @Sendable (Statement.ReplicaDeclaration, PublicKey) -> Bool

  /// A membership that counts.
  struct Member {
    let id: Digest
    let membership: Statement.Membership
  }

  /// A grant with what rules ask about its signing.
  struct Grant {
    let issuer: PublicKey
    let sequence: UInt64
    let id: Digest
    let content: Statement.Grant

    /// C16, C17: later grants of one register replace earlier ones.
    func sharesRegister(_ other: Grant) -> Bool {
      issuer == other.issuer && content.subject == other.content.subject
        && content.pattern == other.content.pattern
    }

    func precedes(_ other: Grant) -> Bool { (sequence, id) < (other.sequence, other.id) }

    /// C16: subject: device, user, role or `*`.
    func reaches(_ membership: Statement.Membership) -> Bool {
      switch content.subject {
      case .device(let key): membership.device == key
      case .user(let user): membership.user == user
      case .role(let role): membership.role == role
      case .everyone: true
      }
    }
  }

  let root: PublicKey
  /// Of the fleet's scope, by (sequence, id): a room's statements have no say in the fleet.
  let statements: [Statement]
  let certificate: Certificate
  /// All memberships and grants ever signed by anybody.
  let memberships: [(issuer: PublicKey, member: Member)]
  let grantsOfAnybody: [Grant]
  /// C15: named by root's genesis; who holds it signs memberships.
  let admissionKey: PublicKey?
  /// C15: root, and the devices that root made admins: only root makes admins.
  let admins: [PublicKey]
  /// C15: memberships that count: admins by root alone; others by root, admins and the admission key.
  let members: [Member]
  /// C15: the grants that count.
  let grants: [Grant]

  package init(root: PublicKey, statements all: [Statement], certificate: @escaping Certificate) {
    let statements = all.filter { $0.scope.string.isEmpty }.sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
    (self.root, self.statements, self.certificate) = (root, statements, certificate)
    memberships = statements.compactMap { statement in
      guard case .membership(let content) = statement.body else { return nil }
      return (statement.issuer, Member(id: statement.id, membership: content))
    }
    grantsOfAnybody = statements.compactMap { statement in
      guard case .grant(let content) = statement.body else { return nil }
      return Grant(issuer: statement.issuer, sequence: statement.sequence, id: statement.id, content: content)
    }
    let geneses = statements.compactMap { statement -> Statement.Genesis? in
      if statement.issuer == root, case .genesis(let content) = statement.body { content } else { nil }
    }
    let admission = geneses.first?.admissionKey
    let byRoot = memberships.filter { $0.issuer == root && $0.member.membership.role == "admin" }
    let admins = [root] + byRoot.map(\.member.membership.device)
    let members = memberships.filter { issuer, member in
      if member.membership.role == "admin" { return issuer == root }
      return admins.contains(issuer) || issuer == admission
    }.map(\.member)
    (admissionKey, self.admins, self.members) = (admission, admins, members)
    grants = NaiveRights.counting(grantsOfAnybody, admins, members)
  }

  /// C2: a declaration names one membership for ever, the device's own; the first that counts wins.
  func member(of replica: ReplicaID) -> Member? {
    for statement in statements {
      guard case .replica(let declaration) = statement.body, declaration.replica == replica,
        certificate(declaration, statement.issuer),
        let member = members.first(where: { $0.id == declaration.membership }),
        member.membership.device == statement.issuer
      else { continue }
      return member
    }
    return nil
  }

  /// The key that signs what this replica writes.
  package func signer(of replica: ReplicaID) -> PublicKey? { member(of: replica)?.membership.device }

  // MARK: Grants (C15–C17)

  /// C15: admins grant everything; a manager grants below manage what the pattern of a manage grant covers, up to what
  /// closed that one.
  private static func counting(_ all: [Grant], _ admins: [PublicKey], _ members: [Member]) -> [Grant] {
    let byAdmins = all.filter { admins.contains($0.issuer) }
    let byManagers = all.filter { grant in
      guard !admins.contains(grant.issuer), grant.content.level.rawValue < AccessLevel.manage.rawValue else {
        return false
      }
      return byAdmins.contains { manage in
        manage.content.level == .manage
          && NaivePattern(manage.content.pattern).includes(NaivePattern(grant.content.pattern))
          && members.contains { $0.membership.device == grant.issuer && manage.reaches($0.membership) }
          && grant.sequence <= limit(of: manage, below: .manage, among: byAdmins, .by(grant.issuer)).sequence
      }
    }
    return byAdmins + byManagers
  }

  /// What a lowering lists: the changes of a replica in a partition, or what one device signed for the fleet.
  enum Listed: Equatable {
    case changes(Text, ReplicaID)
    case by(PublicKey)
  }

  /// C14: what a lowering lists of something, the highest where it lists it twice; nothing where it does not.
  static func listed(_ wanted: Listed, by closer: Grant) -> NaivePosition {
    let entries = closer.content.ends.filter { end in
      switch end.chain {
      case .changes(let partition, let replica): wanted == .changes(partition, replica)
      case .statements(let scope, let issuer): scope.string.isEmpty && wanted == .by(issuer)
      }
    }
    return .highest(entries.map { NaivePosition(sequence: $0.position.sequence, tip: $0.position.tip) })
  }

  /// C17: a grant once issued allows for ever up to its limit, which is what the next grant of its register below `level`
  /// lists. No such grant: no limit.
  static func limit(
    of grant: Grant, below level: AccessLevel, among grants: [Grant], _ wanted: Listed
  ) -> NaivePosition {
    let closers = grants.filter {
      $0.sharesRegister(grant) && grant.precedes($0) && $0.content.level.rawValue < level.rawValue
    }
    let next = closers.first { first in !closers.contains { $0.precedes(first) } }
    return next.map { listed(wanted, by: $0) } ?? .endless
  }
}
