/// Grants that count, each with what closes it (rules C15–C17).
struct GrantTable: Sendable {
  struct Entry: Sendable {
    let grant: Signed<Statement.Grant>
    /// The next grants of the same register that lie below write and below manage.
    fileprivate let nextBelowWrite: Digest?
    fileprivate let nextBelowManage: Digest?
    var pattern: NamePattern { NamePattern(grant.content.pattern) }

    /// The grant of its register that closes it for `level`.
    func next(below level: AccessLevel) -> Digest? { level == .manage ? nextBelowManage : nextBelowWrite }
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

  init(_ grants: [Signed<Statement.Grant>]) {
    let registers = Dictionary(grouping: grants, by: Register.init).values.map { $0.sorted { $0.precedes($1) } }
    entries = Dictionary(grouping: registers.flatMap(GrantTable.entries), by: \.grant.content.subject)
    current = Dictionary(grouping: registers.compactMap(GrantTable.newest), by: \.content.subject)
  }

  /// Those that reach a membership.
  func entries(reaching membership: Statement.Membership) -> [Entry] {
    membership.subjects.flatMap { entries[$0, default: []] }
  }

  /// Highest sequence, then lowest id.
  private static func newest(_ register: [Signed<Statement.Grant>]) -> Signed<Statement.Grant>? {
    register.first { $0.sequence == register.last?.sequence }
  }

  private static func entries(_ register: [Signed<Statement.Grant>]) -> [Entry] {
    var (belowWrite, belowManage): (Digest?, Digest?)
    return register.reversed().map { grant in
      let entry = Entry(grant: grant, nextBelowWrite: belowWrite, nextBelowManage: belowManage)
      if grant.content.level < .write { belowWrite = grant.id }
      if grant.content.level < .manage { belowManage = grant.id }
      return entry
    }
  }
}
