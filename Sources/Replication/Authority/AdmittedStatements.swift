/// Which of all statements seen are *in the set* from which everything follows (rule C26).
///
/// In the set is what is linked to what its issuer signed before, what root or a device that root or an admin ever made a
/// member signed, and of any other device at most ``limit`` in each scope, the lowest by (sequence, id); besides them what
/// root's and admins' statements name by tips. A join-semilattice in the fleet's scope: sets that are exchanged in any
/// order become one.
struct AdmittedStatements: Sendable {
  /// In the set, by id.
  private(set) var all: [Digest: Statement] = [:]
  /// Each behind all that it goes on from or names. May name some that have fallen out since.
  private(set) var order: [Digest] = []
  /// The same of each scope, so that a room costs what is in it and not what is here.
  private(set) var orderInScopes: [Text: [Digest]] = [:]
  /// Scopes in which a device has used up its allowance, so that statements of its own may be missing.
  private(set) var fullScopes: Set<Text> = []
  /// Devices that have used up their allowance in the fleet's scope.
  private(set) var fullDevices: Set<PublicKey> = []
  /// Root, and every device that root ever made an admin, whatever was said of it later.
  private(set) var everAdmins: Set<PublicKey>
  /// The genesis that root signed first.
  private(set) var genesis: Statement.Genesis?
  private var everMembers: Set<PublicKey>
  /// Whom each issuer's memberships in the set name: they make members as soon as the issuer is one who may.
  private var named: [PublicKey: [Statement.Unknown.Member]] = [:]

  /// Statements of one device in one scope.
  static let limit = 1_024
  /// Their bytes: none counts before which more than so many lie. So the last may reach beyond it, and sets that are exchanged
  /// in any order still become one.
  package static let byteLimit = 4 * 1024 * 1024

  init(_ pool: some Collection<Statement>, root: PublicKey, limit: Int = AdmittedStatements.limit) {
    (everAdmins, everMembers) = ([root], [root])
    admitAll(pool, root: root)
    bound(to: limit, root: root)
  }

  /// With more statements that move nothing but their rooms. Nil where they might make others fall out: then the set has to be
  /// made anew, which takes as long as there are statements here.
  func adding(ofRooms more: [Statement], root: PublicKey, limit: Int) -> AdmittedStatements? {
    let scopes = Set(more.map(\.scope))
    guard scopes.isDisjoint(with: fullScopes) else { return nil }
    var grown = self
    grown.admitAll(more, root: root)
    return scopes.contains { grown.isFull($0, limit) } ? nil : grown
  }

  func holds(_ id: Digest) -> Bool { all[id] != nil }

  private mutating func admitAll(_ pool: some Collection<Statement>, root: PublicKey) {
    var waiting = pool.sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
    var count = waiting.count + 1
    while waiting.count < count {
      count = waiting.count
      waiting = waiting.filter { !admit($0, root: root) }
    }
  }

  private mutating func admit(_ statement: Statement, root: PublicKey) -> Bool {
    guard everMembers.contains(statement.issuer), isLinked(statement), hasTips(of: statement) else { return false }
    if all.updateValue(statement, forKey: statement.id) == nil {
      order.append(statement.id)
      orderInScopes[statement.scope, default: []].append(statement.id)
    }
    if statement.issuer == root, case .genesis(let content) = statement.body, genesis == nil { genesis = content }
    // Its device is read in every shape of a membership.
    if let member = statement.member, statement.isOfFleet {
      named[statement.issuer, default: []].append(member)
      if everAdmins.contains(statement.issuer) { everMembers.insert(member.device) }
      if statement.issuer == root, member.role == MemberTable.adminRole { becomesAdmin(member.device) }
    }
    return true
  }

  /// What the device said of members before counts from now on: else it would matter what came first.
  private mutating func becomesAdmin(_ device: PublicKey) {
    guard everAdmins.insert(device).inserted else { return }
    everMembers.formUnion(named[device, default: []].map(\.device))
  }

  private func isLinked(_ statement: Statement) -> Bool {
    guard let id = statement.previous else { return statement.sequence == 1 }
    guard let previous = all[id] else { return false }
    return previous.issuer == statement.issuer && previous.scope == statement.scope
      && previous.sequence == statement.sequence - 1
  }

  /// Only root and admins name statements of the fleet, and those must be here.
  private func hasTips(of statement: Statement) -> Bool {
    statement.fleetTips.allSatisfy { tip in
      guard everAdmins.contains(statement.issuer), let named = all[tip.id] else { return false }
      return named.issuer == tip.issuer && named.sequence == tip.sequence && named.isOfFleet
    }
  }

  private struct Chain: Hashable {
    let issuer: PublicKey
    let scope: Text
  }

  /// Drops what members signed beyond their allowance, and which scopes that leaves full.
  private mutating func bound(to limit: Int, root: PublicKey) {
    var chains: [Chain: [Statement]] = [:]
    for statement in all.values where !everAdmins.contains(statement.issuer) {
      chains[Chain(issuer: statement.issuer, scope: statement.scope), default: []].append(statement)
    }
    let long = chains.filter { chain in
      chain.value.count >= limit || chain.value.reduce(0) { $0 + $1.encoded.count } > AdmittedStatements.byteLimit
    }
    guard !long.isEmpty else { return }
    let kept = namedByAdmins()
    for (chain, statements) in long {
      fullScopes.insert(chain.scope)
      if chain.scope.utf8.isEmpty { fullDevices.insert(chain.issuer) }
      let ordered = statements.sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
      var bytes = 0
      for (index, statement) in ordered.enumerated() {
        let fits = index < limit && bytes <= AdmittedStatements.byteLimit
        bytes += statement.encoded.count
        if !fits, !kept.contains(statement.id), !statement.createsItsScope { all[statement.id] = nil }
      }
    }
  }

  /// Somebody has used up what he may say in the scope, if only just.
  private func isFull(_ scope: Text, _ limit: Int) -> Bool {
    var said: [PublicKey: (count: Int, bytes: Int)] = [:]
    for statement in orderInScopes[scope, default: []].lazy.compactMap({ all[$0] })
    where !everAdmins.contains(statement.issuer) {
      said[statement.issuer, default: (0, 0)].count += 1
      said[statement.issuer, default: (0, 0)].bytes += statement.encoded.count
    }
    return said.values.contains { $0.count >= limit || $0.bytes > AdmittedStatements.byteLimit }
  }

  /// What root's and admins' tips of any scope name, with all that it goes on from.
  private func namedByAdmins() -> Set<Digest> {
    var kept: Set<Digest> = []
    for statement in all.values where everAdmins.contains(statement.issuer) {
      for tip in statement.tips.lazy.flatMap(\.tips) {
        var next: Digest? = tip.id
        while let id = next, let named = all[id], kept.insert(id).inserted { next = named.previous }
      }
    }
    return kept
  }
}

extension Statement {
  /// What it names in the fleet's scope.
  var fleetTips: some Sequence<Tip> {
    tips.lazy.filter { $0.scope.utf8.isEmpty }.flatMap(\.tips).filter { $0.sequence > 0 }
  }

  /// What a membership of any shape makes a member.
  var member: Unknown.Member? {
    switch body {
    case .membership(let membership):
      Unknown.Member(device: membership.device, role: membership.role, user: membership.user)
    case .unknown(let unknown): unknown.member
    default: nil
    }
  }

  /// It moves nothing outside of the room that it is of.
  var movesItsRoomAlone: Bool {
    switch body {
    case .room, .invitation, .removal, .leave: !isOfFleet
    default: false
    }
  }

  /// A room's creation, which everybody in the room needs.
  var createsItsScope: Bool {
    guard case .room = body else { return false }
    return scope == PartitionName.room(createdBy: id)
  }
}
