import Replication

/// A second reading of statements, written from the rules C2, C10–C19 and C24–C27 and from nothing else. Nothing is indexed:
/// each question goes over the whole set.
package struct NaiveRights: Sendable {
  /// C2: does the declaration's id belong to the key that signed it?
  package typealias Certificate = @Sendable (Statement.ReplicaDeclaration, PublicKey) -> Bool

  let facts: NaiveFacts
  let rank: NaiveRank
  let ever: NaiveEver
  /// C27: rights may rest on what this version cannot read.
  package let isInDoubt: Bool
  /// Grants that count.
  private(set) var grants: [NaiveFact<Statement.Grant>] = []
  /// C15: those of admins that make managers.
  private var manageGrants: [NaiveFact<Statement.Grant>] = []
  private(set) var rules: [NaiveFact<Statement.Rule>] = []
  private(set) var baselines: [NaiveFact<Statement.Baseline>] = []
  private(set) var ends: [NaiveFact<Statement.End>] = []
  /// Managers' ends of replicas.
  private var endsByManagers: Set<Digest> = []
  /// By the narrowing that they raise.
  private var raises: [Digest: [NaiveListing]] = [:]
  private(set) var rooms: [Text: NaiveRoom] = [:]

  /// - Parameter limit: how many statements of one device in one scope are in the set (C26).
  package init(
    root: PublicKey, statements: some Sequence<Statement>, limit: Int = 1_024, certificate: @escaping Certificate
  ) {
    facts = NaiveFacts(NaiveSet(statements, root: root, limit: limit), certificate: certificate)
    rank = NaiveRank(facts)
    ever = NaiveEver(rank)
    isInDoubt = facts.unknown.contains { [ever] in ever.wasEntitled($0.issuer) }
    takeAdmins()
    takeManagers()
    for (scope, statements) in facts.rooms { rooms[scope] = NaiveRoom(scope, statements, under: self) }
  }

  /// C26: ids of all statements that are in the set.
  package var statements: Set<Digest> { Set(facts.set.statements.keys) }

  // MARK: Whose word counts (C15)

  private mutating func takeAdmins() {
    grants = facts.grants.filter { rank.isAdmin($0.statement) }
    manageGrants = grants.filter { $0.content.level == .manage }
    rules = facts.rules.filter { rank.isAdmin($0.statement) }
    ends = facts.ends.filter { end in
      guard case .membership(let membership) = end.content.target else { return rank.isAdmin(end.statement) }
      return rank.isGood(end, on: membership)
    }
    for raise in facts.raises where rank.isAdmin(raise.statement) { take(raise) }
  }

  private mutating func take(_ raise: NaiveFact<Statement.Raise>) {
    raises[raise.content.end, default: []].append(facts.listing(of: raise.statement))
  }

  /// Managers grant below manage, and narrow and raise inside their patterns; devices close their own replicas.
  private mutating func takeManagers() {
    grants += facts.grants.filter { grant in
      grant.content.level != .manage && !rank.isAdmin(grant.statement)
        && isManager(grant.statement, of: [grant.content.pattern])
    }
    for end in facts.ends where !ends.contains(where: { $0.id == end.id }) {
      switch end.content.target {
      case .membership: break
      case .replica(let replica): take(end, on: replica)
      case .grant(let id):
        guard let grant = grants.first(where: { $0.id == id }), grant.content.level != .manage,
          isManager(end.statement, of: [grant.content.pattern])
        else { continue }
        ends.append(end)
      }
    }
    for raise in facts.raises where !rank.isAdmin(raise.statement) && mayRaise(raise) { take(raise) }
    baselines = facts.baselines.filter {
      rank.isAdmin($0.statement) || isManager($0.statement, of: [$0.content.partition])
    }
  }

  private mutating func take(_ end: NaiveFact<Statement.End>, on replica: ReplicaID) {
    guard let member = rank.replicas[replica] else { return }
    let listing = facts.listing(of: end.statement)
    if member.device == end.issuer, end.content.reason == .close {
      let isOfNoOther = listing.ends.values.allSatisfy { $0.allSatisfy { $0.replica == replica } }
      if isOfNoOther, rank.carries(member, end.statement) { ends.append(end) }
    } else if !rank.isAdmins(member), isManager(end.statement, of: listing.partitions) {
      ends.append(end)
      endsByManagers.insert(end.id)
    }
  }

  /// A manager raises what is no end on a membership.
  private func mayRaise(_ raise: NaiveFact<Statement.Raise>) -> Bool {
    let isInReach: Bool =
      switch facts.set.statements[raise.content.end]?.body {
      case .grant: true
      case .end(let end): if case .membership = end.target { false } else { true }
      default: false
      }
    return isInReach && isManager(raise.statement, of: facts.listing(of: raise.statement).partitions)
  }

  /// Has its issuer a grant to manage all of these names and patterns, whose closers leave the statement standing?
  private func isManager(_ statement: Statement, of patterns: [Text]) -> Bool {
    guard !patterns.isEmpty, patterns.allSatisfy({ !$0.string.isEmpty }) else { return false }
    let memberships = rank.members.filter { $0.device == statement.issuer && rank.carries($0, statement) }
    return manageGrants.contains { grant in
      memberships.contains { grant.reaches($0) }
        && patterns.allSatisfy { NaivePattern(grant.content.pattern).includes($0) }
        && closers(of: grant, below: .manage).allSatisfy { leaves($0, statement) }
    }
  }

  // MARK: What narrows (C12–C14, C17)

  func ends(on target: Statement.End.Target) -> [Statement] {
    ends.filter { $0.content.target == target }.map(\.statement)
  }

  /// Ends that name the grant, and the next grant of its register below a level.
  func closers(of grant: NaiveFact<Statement.Grant>, below level: AccessLevel) -> [Statement] {
    let lower = grants.filter {
      $0.sharesRegister(grant) && grant.precedes($0) && $0.content.level.rawValue < level.rawValue
    }
    let next = lower.filter { one in !lower.contains { $0.precedes(one) } }
    return ends(on: .grant(grant.id)) + next.map(\.statement)
  }

  /// Does this narrowing, with the raises of it that count, leave a statement standing?
  func leaves(_ narrowing: Statement, _ statement: Statement) -> Bool {
    facts.listing(of: narrowing).leaves(statement, raises: raises[narrowing.id] ?? [])
  }

  /// C14: one narrowing's word on a chain after its raises: a raise never lowers.
  func word(of narrowing: Statement, on replica: ReplicaID, in partition: Text) -> NaivePosition {
    let listing = facts.listing(of: narrowing)
    // C12: a manager's end of a replica says nothing of partitions that it has no group for.
    let isSilent = endsByManagers.contains(narrowing.id) && listing.ends[partition] == nil
    let own: NaivePosition = isSilent ? .endless : listing.word(on: replica, in: partition)
    return .highest([own] + (raises[narrowing.id] ?? []).compactMap { $0.entry(of: replica, in: partition) })
  }

  // MARK: Replicas (C2)

  /// The key that signs what this replica writes.
  package func signer(of replica: ReplicaID) -> PublicKey? { rank.replicas[replica]?.device }

  /// C15: an end that counts says that somebody else may have the key of the device whose replica this is.
  func isInOtherHands(_ replica: ReplicaID) -> Bool {
    let memberships = Set(rank.members.filter { $0.device == author(of: replica) }.map(\.id))
    return ends.contains { end in
      guard end.content.reason == .compromised, case .membership(let id) = end.content.target else { return false }
      return memberships.contains(id)
    }
  }

  /// The device whose id is in the replica's, whether or not a declaration counts.
  func author(of replica: ReplicaID) -> PublicKey? { facts.declarations(of: replica).first?.issuer }

  func isDeclared(_ replica: ReplicaID) -> Bool { facts.replicas.contains { $0.content.replica == replica } }
}
