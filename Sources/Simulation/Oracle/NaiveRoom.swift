import Replication

/// C24, C25: a room from the statements of its scope. Only the creator removes, so that removals never depend on removals,
/// and invitations are a least fixpoint, so that one set has one answer.
struct NaiveRoom: Sendable {
  /// Who invites, removes or leaves: the user of the membership that the statement names.
  private struct Spoken<Content: Sendable>: Sendable {
    let statement: Statement
    let content: Content
    let speaker: Text
  }

  let scope: Text
  let facts: NaiveFacts
  /// Nil where the room's creation is not here.
  let creator: Text?
  private let removals: [Spoken<Statement.Removal>]
  private let leaves: [Spoken<Statement.Leave>]
  /// Those that count.
  private var invitations: [Spoken<Statement.Invitation>] = []
  /// For the floor: removals that were ever signed by the creator.
  private let everRemoved: [Spoken<Statement.Removal>]
  /// For the floor: users ever invited by one who was ever removed or ended, or by one so invited.
  private let doubtful: Set<Text>

  init(_ scope: Text, _ statements: [Statement], under rights: NaiveRights) {
    (self.scope, facts) = (scope, rights.facts)
    func everSaid(_ statement: Statement) -> Text? { NaiveRoom.speaker(of: statement, rights.ever) }
    func says(_ statement: Statement) -> Text? { NaiveRoom.counting(statement, rights) }
    // No later narrowing of its creator takes a room from its members.
    let creator = statements.filter { NaiveRoom.isCreation($0) }.compactMap(everSaid).first { !$0.string.isEmpty }
    self.creator = creator
    func byCreator(_ removal: Spoken<Statement.Removal>) -> Bool {
      creator != nil && removal.speaker == creator && removal.content.user != creator
    }
    removals = statements.compactMap { NaiveRoom.removal($0, says) }.filter(byCreator)
    leaves = statements.compactMap { NaiveRoom.leave($0, says) }.filter { $0.content.user == $0.speaker }
    let everRemoved = statements.compactMap { NaiveRoom.removal($0, everSaid) }.filter(byCreator)
    self.everRemoved = everRemoved
    let narrowed = rights.facts.memberships.filter { !rights.ever.narrowings(of: .membership($0.id)).isEmpty }
    doubtful = NaiveRoom.invited(
      by: Set(everRemoved.map(\.content.user) + narrowed.map(\.user)),
      statements.compactMap { NaiveRoom.invitation($0, everSaid) })
    guard creator != nil else { return }
    countInvitations(among: statements.compactMap { NaiveRoom.invitation($0, says) })
  }

  /// C24: a room's name holds the id of the statement that made it.
  static func isCreation(_ statement: Statement) -> Bool {
    let isRoom: Bool =
      switch statement.body {
      case .room: true
      case .unknown(let unknown): unknown.kind == Statement.Kind.room.rawValue
      default: false
      }
    return isRoom && statement.scope == name(of: statement.id)
  }

  static func name(of creation: Digest) -> Text {
    let digits = Array("0123456789abcdef")
    let letters = OracleBytes.digest(creation).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return Text("conversation=" + String(letters))
  }

  // MARK: Who speaks

  private static func membership(namedBy statement: Statement) -> Digest? {
    switch statement.body {
    case .room(let content): content.by
    case .invitation(let content): content.by
    case .removal(let content): content.by
    case .leave(let content): content.by
    default: nil
    }
  }

  /// Whoever entitled ever signed the membership, and whether or not it still carries the statement.
  private static func speaker(of statement: Statement, _ ever: NaiveEver) -> Text? {
    guard let by = membership(namedBy: statement), let member = ever.facts.member(by),
      member.device == statement.issuer, ever.wasSignedByEntitled(member)
    else { return nil }
    return member.user
  }

  private static func counting(_ statement: Statement, _ rights: NaiveRights) -> Text? {
    guard let by = membership(namedBy: statement), let member = rights.rank.members.first(where: { $0.id == by }),
      member.device == statement.issuer,
      rights.ends(on: .membership(by)).allSatisfy({ rights.leaves($0, statement) })
    else { return nil }
    return member.namedUser
  }

  private static func removal(_ statement: Statement, _ says: (Statement) -> Text?) -> Spoken<Statement.Removal>? {
    guard case .removal(let content) = statement.body else { return nil }
    return says(statement).map { Spoken(statement: statement, content: content, speaker: $0) }
  }

  private static func leave(_ statement: Statement, _ says: (Statement) -> Text?) -> Spoken<Statement.Leave>? {
    guard case .leave(let content) = statement.body else { return nil }
    return says(statement).map { Spoken(statement: statement, content: content, speaker: $0) }
  }

  private static func invitation(
    _ statement: Statement, _ says: (Statement) -> Text?
  ) -> Spoken<Statement.Invitation>? {
    guard case .invitation(let content) = statement.body else { return nil }
    return says(statement).map { Spoken(statement: statement, content: content, speaker: $0) }
  }

  // MARK: Invitations

  private mutating func countInvitations(among all: [Spoken<Statement.Invitation>]) {
    var waiting = all
    while true {
      let new = waiting.filter(counts)
      if new.isEmpty { return }
      invitations += new
      waiting.removeAll { one in new.contains { $0.statement.id == one.statement.id } }
    }
  }

  /// By the creator, or by somebody invited, within what all closers of that invitation list.
  private func counts(_ invitation: Spoken<Statement.Invitation>) -> Bool {
    if invitation.speaker == creator { return true }
    return invitations.contains { earlier in
      earlier.content.user == invitation.speaker
        && closers(of: earlier).allSatisfy { facts.listing(of: $0).leaves(invitation.statement) }
    }
  }

  /// A removal closes every invitation of that user that had not seen it.
  private func closers(of invitation: Spoken<Statement.Invitation>) -> [Statement] {
    let seen = seen(by: invitation.statement)
    return removals.filter { $0.content.user == invitation.content.user && !seen.contains($0.statement.id) }.map(
      \.statement)
  }

  /// What a statement has seen, and what that has seen.
  private func seen(by statement: Statement) -> Set<Digest> {
    var (seen, next): (Set<Digest>, [Digest]) = ([], NaiveRoom.seen(by: statement))
    while let id = next.popLast() {
      guard seen.insert(id).inserted, let found = facts.set.statements[id] else { continue }
      next += NaiveRoom.seen(by: found)
    }
    return seen
  }

  private static func seen(by statement: Statement) -> [Digest] {
    switch statement.body {
    case .invitation(let content): content.seen
    case .removal(let content): content.seen
    case .leave(let content): content.seen
    default: []
    }
  }

  private static func invited(by users: Set<Text>, _ all: [Spoken<Statement.Invitation>]) -> Set<Text> {
    var invited: Set<Text> = []
    while true {
      let now = Set(all.filter { users.contains($0.speaker) || invited.contains($0.speaker) }.map(\.content.user))
      if now == invited { return invited }
      invited = now
    }
  }

  // MARK: Questions

  /// Limits of all invitations that let the member write; its creator is bounded by ends on his memberships alone.
  func limits(of member: NaiveMember, _ replica: ReplicaID) -> [NaivePosition] {
    if let user = member.namedUser, user == creator { return [.endless] }
    return invitations.filter { $0.content.user == member.user }.map { invitation in
      .lowest(closers(of: invitation).map { facts.listing(of: $0).word(on: replica, in: scope) })
    }
  }

  func floor(of member: NaiveMember, _ replica: ReplicaID) -> UInt64 {
    if doubtful.contains(member.user) { return 0 }
    let words = everRemoved.filter { $0.content.user == member.user }.map {
      facts.listing(of: $0.statement).word(on: replica, in: scope).sequence
    }
    return words.min() ?? .max
  }

  /// Who left has no level until an invitation that has seen it.
  func level(of member: NaiveMember) -> AccessLevel {
    let user = member.user
    if member.namedUser != nil, user == creator { return .manage }
    let isIn = invitations.contains { invitation in
      invitation.content.user == user && closers(of: invitation).isEmpty
        && !leaves.contains { $0.content.user == user && !seen(by: invitation.statement).contains($0.statement.id) }
    }
    return isIn ? .write : .none
  }
}
