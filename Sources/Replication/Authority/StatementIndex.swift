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

/// The statements in the set that this build can read, sorted by kind, each kind by (sequence, id); parts of a longer one
/// say nothing alone (rule C12).
struct StatementIndex: Sendable {
  private(set) var memberships: [Signed<Statement.Membership>] = []
  /// Declarations whose id belongs to the key that signed them.
  private(set) var replicas: [Signed<Statement.ReplicaDeclaration>] = []
  /// By whomever.
  private(set) var declared: Set<ReplicaID> = []
  private(set) var grants: [Signed<Statement.Grant>] = []
  private(set) var rules: [Signed<Statement.Rule>] = []
  private(set) var ends: [Signed<Statement.End>] = []
  private(set) var raises: [Signed<Statement.Raise>] = []
  private(set) var baselines: [Signed<Statement.Baseline>] = []
  /// By scope.
  private(set) var rooms: [Text: RoomStatements] = [:]
  /// What each room statement had seen.
  private(set) var seen: [Digest: [Digest]] = [:]
  /// Of the fleet's scope, in a kind or shape that this build cannot read.
  private(set) var unread: [Signed<Statement.Unknown>] = []
  /// What every narrowing and raise says, by its id.
  private(set) var words: [Digest: ListedWord] = [:]
  /// Statements of rooms that statements of the fleet list, of whatever kind or shape, by scope.
  private(set) var listedInRooms: [Text: Set<Digest>] = [:]

  init(_ set: AdmittedStatements, certificate: ReplicaCertificate) {
    let ordered = set.all.values.sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
    var listed = ListedWords(set, ordered)
    for statement in ordered { take(statement, &listed) }
    declared = Set(replicas.map(\.content.replica))
    replicas.removeAll { !certificate($0.content, $0.issuer) }
  }

  /// With what the set has of these rooms now. Nil where the fleet's statements list some of what is said in them: whether a
  /// statement lies below what they list is told by all that was there when they were read.
  func renewing(rooms scopes: Set<Text>, _ set: AdmittedStatements) -> StatementIndex? {
    guard scopes.allSatisfy({ listedInRooms[$0] == nil }) else { return nil }
    var renewed = self
    for scope in scopes {
      let ordered = set.orderInScopes[scope, default: []].compactMap { set.all[$0] }
        .sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
      var listed = ListedWords(set, ordered)
      renewed.rooms[scope] = nil
      for statement in ordered { renewed.take(statement, &listed) }
    }
    return renewed
  }

  private mutating func take(_ statement: Statement, _ listed: inout ListedWords) {
    if statement.isOfFleet {
      for group in statement.tips where !group.scope.utf8.isEmpty && !group.tips.isEmpty {
        listedInRooms[group.scope, default: []].formUnion(group.tips.lazy.map(\.id))
      }
    }
    if let listing = statement.listing {
      guard !listing.more else { return }
      words[statement.id] = listed.word(of: statement)
    }
    guard !statement.isOfFleet else { return add(statement) }
    rooms[statement.scope, default: RoomStatements()].add(statement)
    seen[statement.id] = statement.seen
  }

  private mutating func add(_ statement: Statement) {
    switch statement.body {
    case .membership(let content):
      memberships.append(Signed(content, in: statement))
      statedMemberships[statement.id] = StatedMembership(
        issuer: statement.issuer, device: content.device, user: content.user, subjects: content.subjects)
    case .replica(let content): replicas.append(Signed(content, in: statement))
    case .grant(let content): grants.append(Signed(content, in: statement))
    case .rule(let content): rules.append(Signed(content, in: statement))
    case .end(let content): ends.append(Signed(content, in: statement))
    case .raise(let content): raises.append(Signed(content, in: statement))
    case .baseline(let content): baselines.append(Signed(content, in: statement))
    case .unknown(let content):
      unread.append(Signed(content, in: statement))
      guard let member = content.member else { return }
      statedMemberships[statement.id] = StatedMembership(
        issuer: statement.issuer, device: member.device, user: member.user,
        subjects: [.device(member.device), .user(member.user), .role(member.role), .everyone])
    case .genesis, .room, .invitation, .removal, .leave: break
    }
  }

  /// Every membership in any shape, whoever signed it, as far as it can be read.
  private(set) var statedMemberships: [Digest: StatedMembership] = [:]

  /// A lowering that lists nothing says nothing of any chain.
  func word(of id: Digest) -> ListedWord { words[id] ?? ListedWord.empty }
}

/// What every shape of a membership says.
struct StatedMembership: Sendable {
  let issuer: PublicKey
  let device: PublicKey
  let user: Text
  /// By which a grant reaches it.
  let subjects: [Statement.Subject]
}

/// The statements of one room, by kind.
struct RoomStatements: Sendable {
  private(set) var creations: [Signed<Statement.Room>] = []
  private(set) var invitations: [Signed<Statement.Invitation>] = []
  private(set) var removals: [Signed<Statement.Removal>] = []
  private(set) var leaves: [Signed<Statement.Leave>] = []

  fileprivate mutating func add(_ statement: Statement) {
    switch statement.body {
    case .room(let content): creations.append(Signed(content, in: statement))
    case .invitation(let content): invitations.append(Signed(content, in: statement))
    case .removal(let content): removals.append(Signed(content, in: statement))
    case .leave(let content): leaves.append(Signed(content, in: statement))
    default: break
    }
  }
}

extension Statement {
  /// The room statements that this one's author knew.
  fileprivate var seen: [Digest] {
    switch body {
    case .invitation(let invitation): invitation.seen
    case .removal(let removal): removal.seen
    case .leave(let leave): leave.seen
    default: []
    }
  }
}
