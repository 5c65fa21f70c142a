@testable import Replication

/// Random statements of a small fleet: memberships by whoever may and may not, replicas declared by their devices and by
/// thieves, rights that admins and managers give, end and raise, admins who remove one another, rooms, statements that go on
/// from where they should and from elsewhere, and shapes that this build cannot read.
struct RightsHistory {
  static let admins = ["dA", "dB"]
  static let devices = ["d0", "d1", "d2"] + admins
  static let replicas = ["d0.1", "d0.2", "d1.1", "d1.2", "d2.1", "dA.1"].map(Named.replica)
  static let ownDocuments: [OwnDocument?] = [
    nil, "u-d0", "u-d1", OwnDocument(user: "u-d0", otherFields: ["more"]),
  ]
  private static let names: [Text] = ["/t", "/t/red", "/t*", "agency=A", "user=u-d1", "all-users=x", "_key=x"]
  static let patterns: [Text] = [
    "*", "/*", "/t", "/t*", "/t/*", "/t/red", "agency=*", "a*", "all-users=x", "conversation=*", "_key=*", "user=*",
  ]
  /// Whoever ends, raises and grants.
  static let rulers = ["root", "root", "dA", "dA", "dA", "dB", "dB", "d0", "d1", "d2"]

  /// How many statements of one device count in a scope.
  let limit: Int
  private(set) var statements: [Statement] = []
  private(set) var rooms: [Text] = []
  /// What others go on from and name: without a gap behind it.
  private(set) var sound: Set<Digest> = []
  var random: ChainsRandom

  init(seed: UInt64) {
    random = ChainsRandom(seed: seed)
    limit = random.chance(70) ? AdmittedStatements.limit : 3 + random.below(6)
    if random.chance(90) {
      say(.genesis(Statement.Genesis(fleetName: "")), by: "root")
    }
    for device in RightsHistory.admins where random.chance(90) { admit(device, role: "admin", by: "root") }
    for key: Text in ["agency", "user", "all-users", "conversation"] where random.chance(80) {
      say(.rule(Statement.Rule(key: key, fields: random.chance(30) ? ["more"] : [])), by: pick(["root", "dA", "dB"]))
    }
    for device in RightsHistory.devices where random.chance(80) {
      admit(device, role: pick(["officer", "officer", "guest"]), by: pick(["root", "dA", "dB", "admission"]))
    }
    for replica in RightsHistory.replicas where random.chance(80) { declare(replica) }
    let (subject, pattern): (Statement.Subject, Text) = (pick([.everyone, .role("officer")]), pick(["/*", "/t", "*"]))
    say(
      .grant(Statement.Grant(subject: subject, level: pick([.read, .write, .write]), pattern: pattern)),
      by: pick(["root", "dA", "dB"]))
    for _ in 0..<(1 + random.below(5)) { grant() }
    for _ in 0..<random.below(3) { found() }
    for _ in 0..<random.below(28) { step() }
  }

  /// Names to ask for: of partitions and rooms, and of a room that nobody made.
  var partitions: [Text] { RightsHistory.names + rooms + [RightsHistory.room(.zero)] }

  mutating func step() {
    switch random.below(100) {
    case 0..<18: grant()
    case 18..<44: end()
    case 44..<58: raise()
    case 58..<62: declareBaseline()
    case 62..<68: admit()
    case 68..<74: declare(pick(RightsHistory.replicas))
    case 74..<93: speakInRoom()
    case 93..<96 where random.chance(60): sayUnheard()
    case 96..<98: say(.rule(Statement.Rule(key: pick(["agency", "user"]))), by: pick(RightsHistory.rulers))
    default: grant()
    }
  }

  mutating func pick<Item>(_ items: [Item]) -> Item { items[random.below(items.count)] }

  /// A room's name is that of the statement that makes it.
  private static func room(_ creation: Digest) -> Text {
    let digits = creation.bytes.flatMap { [$0 >> 4, $0 & 15] }.map { String($0, radix: 16) }
    return Text("conversation=" + digits.joined())
  }

  // MARK: Saying

  /// Mostly behind what its issuer said last there; of a restored disk behind something earlier, or behind nothing; seldom
  /// behind what is not there.
  @discardableResult
  mutating func say(_ body: Statement.Body, by issuer: String, in scope: Text = "") -> Digest {
    let id = random.digest()
    var scope = scope
    if case .room = body {
      scope = RightsHistory.room(id)
      rooms.append(scope)
    }
    let own = statements.filter { $0.issuer == Named.key(issuer) && $0.scope == scope && sound.contains($0.id) }
    var previous = own.last
    if random.chance(12) { previous = random.chance(70) && !own.isEmpty ? pick(own) : nil }
    if issuer == "admission" { previous = nil }
    let isLost = issuer != "admission" && random.chance(2)
    let statement = Statement(
      body, by: Named.key(issuer), sequence: (previous?.sequence ?? 0) + (isLost ? 2 : 1), previous: previous?.id,
      id: id, scope: scope)
    statements.append(statement)
    if !isLost, mayBeNamed(statement) { sound.insert(id) }
    return id
  }

  /// Only admins name statements of the fleet, and those must be there.
  private func mayBeNamed(_ statement: Statement) -> Bool {
    let named = statement.tips.filter(\.scope.utf8.isEmpty).flatMap(\.tips).filter { $0.sequence > 0 }
    return named.allSatisfy { sound.contains($0.id) }
      && (named.isEmpty || isAdmin(Named.name(statement.issuer.bytes)))
  }

  func isAdmin(_ device: String) -> Bool { device == "root" || RightsHistory.admins.contains(device) }

  /// A part before it, or two, where the issuer lists much.
  mutating func say(
    _ issuer: String, in scope: Text = "", _ listing: (inout RightsHistory, Bool) -> Statement.Listing,
    _ body: (Statement.Listing) -> Statement.Body
  ) {
    if random.chance(15) {
      for _ in 0...random.below(2) { say(body(listing(&self, true)), by: issuer, in: scope) }
    }
    say(body(listing(&self, random.chance(3))), by: issuer, in: scope)
  }

  mutating func sayUnheard() {
    let device = pick(RightsHistory.devices)
    let unknown = pick([
      Statement.Unknown(kind: 99), Statement.Unknown(kind: 4, tips: tips(of: device, in: "")),
      Statement.Unknown(
        kind: 2, member: member(device, role: pick(["admin", "officer"]))),
    ])
    say(.unknown(unknown), by: pick(RightsHistory.rulers))
  }

  // MARK: Members

  mutating func admit() {
    admit(
      pick(RightsHistory.devices), role: pick(["officer", "officer", "officer", "guest", "admin"]),
      by: random.chance(85) ? pick(["root", "dA", "dB", "admission"]) : pick(RightsHistory.devices + ["stranger"]))
  }

  mutating func admit(_ device: String, role: Text, by issuer: String) {
    if random.chance(5) {
      say(.unknown(Statement.Unknown(kind: 2, member: member(device, role: role))), by: issuer)
      return
    }
    let agency = ValueMap(ascending: [
      ValueMap.Entry(key: "agency", value: random.chance(80) ? .string(Text(pick(["A", "B"]))) : .int(1))
    ])
    let user = random.chance(90) ? "u-" + device : ""
    let membership = Statement.Membership(
      device: Named.key(device), user: Text(user), label: "", role: role, profile: agency)
    say(.membership(membership), by: issuer)
  }

  private func member(_ device: String, role: Text) -> Statement.Unknown.Member {
    Statement.Unknown.Member(device: Named.key(device), role: role, user: Text("u-" + device))
  }

  mutating func declare(_ replica: ReplicaID) {
    let device = String(Named.name(replica.bytes).prefix(2))
    let all = memberships(of: random.chance(90) ? device : pick(RightsHistory.devices))
    guard !all.isEmpty else { return }
    let declaration = Statement.ReplicaDeclaration(replica: replica, nonce: .zero, membership: pick(all))
    say(.replica(declaration), by: random.chance(90) ? device : pick(RightsHistory.devices))
  }

  /// Of any shape, whether or not they count.
  func memberships(of device: String) -> [Digest] {
    statements.filter {
      switch $0.body {
      case .membership(let content): content.device == Named.key(device)
      case .unknown(let content): content.member?.device == Named.key(device)
      default: false
      }
    }.map(\.id)
  }
}
