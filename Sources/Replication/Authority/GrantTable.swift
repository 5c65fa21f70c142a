/// The grants that count, by subject, each with the lowering that closes it (rules C15–C17).
struct GrantTable: Sendable {
  struct Entry: Sendable {
    let grant: Signed<Statement.Grant>
    /// The next grants of the same register that lie below write and below manage.
    let nextBelowWrite: Signed<Statement.Grant>?
    let nextBelowManage: Signed<Statement.Grant>?
  }

  /// Later grants of one register replace earlier ones.
  struct Register: Hashable {
    let issuer: PublicKey
    let subject: Statement.Subject
    let pattern: Text

    init(_ grant: Signed<Statement.Grant>) {
      (issuer, subject, pattern) = (grant.issuer, grant.content.subject, grant.content.pattern)
    }
  }

  /// Every grant that ever allowed something, by subject.
  let entries: [Statement.Subject: [Entry]]
  /// The newest of each register, by subject.
  let current: [Statement.Subject: [Signed<Statement.Grant>]]

  init(_ grants: [Signed<Statement.Grant>], members: MemberTable) {
    let fromAdmins = grants.filter { members.isAdmin($0.issuer) }
    var entries = Dictionary(grouping: GrantTable.entries(fromAdmins), by: \.grant.content.subject)
    let managing = entries.mapValues { $0.filter { $0.grant.content.level == .manage } }
    let fromManagers = grants.filter {
      $0.content.level < .manage && !members.isAdmin($0.issuer)
        && GrantTable.isManager($0, of: $0.content.pattern, managing: managing, members: members)
    }
    for entry in GrantTable.entries(fromManagers) { entries[entry.grant.content.subject, default: []].append(entry) }
    self.entries = entries
    current = Dictionary(
      grouping: GrantTable.registers(fromAdmins + fromManagers).compactMap(GrantTable.newest), by: \.content.subject)
  }

  /// How much of a chain the grant allows for `level`: without end until a lowering closes it (rule C17).
  static func limit(_ entry: Entry, of chain: Statement.ChainEnd.Chain, for level: AccessLevel) -> ChainPosition {
    let closer = level == .manage ? entry.nextBelowManage : entry.nextBelowWrite
    guard let closer else { return .unbounded }
    return closer.content.ends.position(of: chain) ?? .start
  }

  /// Does a manage grant carry this statement of its issuer (rule C15)? Delegation only narrows.
  private static func isManager(
    _ statement: Signed<Statement.Grant>, of pattern: Text, managing: [Statement.Subject: [Entry]], members: MemberTable
  ) -> Bool {
    let chain = Statement.ChainEnd.Chain.statements(scope: "", issuer: statement.issuer)
    return members.byDevice[statement.issuer, default: []].contains { member in
      member.membership.subjects.contains { subject in
        managing[subject, default: []].contains {
          NamePattern($0.grant.content.pattern).covers(NamePattern(pattern))
            && statement.sequence <= limit($0, of: chain, for: .manage).sequence
        }
      }
    }
  }

  private static func registers(_ grants: [Signed<Statement.Grant>]) -> [[Signed<Statement.Grant>]] {
    Dictionary(grouping: grants, by: Register.init).values.map { $0.sorted { $0.precedes($1) } }
  }

  /// Highest sequence, then lowest id.
  private static func newest(_ register: [Signed<Statement.Grant>]) -> Signed<Statement.Grant>? {
    register.first { $0.sequence == register.last?.sequence }
  }

  private static func entries(_ grants: [Signed<Statement.Grant>]) -> [Entry] {
    registers(grants).flatMap { register in
      var (belowWrite, belowManage): (Signed<Statement.Grant>?, Signed<Statement.Grant>?)
      return register.reversed().map { grant in
        let entry = Entry(grant: grant, nextBelowWrite: belowWrite, nextBelowManage: belowManage)
        if grant.content.level < .write { belowWrite = grant }
        if grant.content.level < .manage { belowManage = grant }
        return entry
      }
    }
  }
}
