/// One statement's content with what rules ask about its signing.
struct Signed<Content: Sendable>: Sendable {
  let content: Content
  let issuer: PublicKey
  let sequence: UInt64
  let id: Digest

  init(_ content: Content, in statement: Statement) {
    (self.content, issuer, sequence, id) = (content, statement.issuer, statement.sequence, statement.id)
  }

  /// The order in which one issuer's statements follow one another, the id settling equal numbers.
  func precedes<Other>(_ other: Signed<Other>) -> Bool { (sequence, id) < (other.sequence, other.id) }
}

/// Fleet statements sorted by kind, each kind by (sequence, id). Statements of a room have no say in the fleet.
struct StatementSet: Sendable {
  private(set) var geneses: [Signed<Statement.Genesis>] = []
  private(set) var memberships: [Signed<Statement.Membership>] = []
  private(set) var replicas: [Signed<Statement.ReplicaDeclaration>] = []
  private(set) var grants: [Signed<Statement.Grant>] = []
  private(set) var rules: [Signed<Statement.Rule>] = []

  init(_ statements: some Sequence<Statement>) {
    let ordered = statements.lazy.filter { $0.scope.utf8.isEmpty }
      .sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
    for statement in ordered {
      switch statement.body {
      case .genesis(let content): geneses.append(Signed(content, in: statement))
      case .membership(let content): memberships.append(Signed(content, in: statement))
      case .replica(let content): replicas.append(Signed(content, in: statement))
      case .grant(let content): grants.append(Signed(content, in: statement))
      case .rule(let content): rules.append(Signed(content, in: statement))
      case .unknown: break
      }
    }
  }
}
