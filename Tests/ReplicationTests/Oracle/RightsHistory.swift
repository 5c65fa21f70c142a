@testable import Replication

/// Random statements of a small fleet: memberships by whoever may and may not, replicas declared by their devices and by
/// thieves, grants of all levels by admins and managers, raised and lowered, with numbers used twice.
struct RightsHistory {
  static let devices = ["d0", "d1", "d2"]
  static let replicas = devices.flatMap { ["\($0).1", "\($0).2"] }.map(Named.replica)
  static let partitions = ["/t", "/t/red", "/t*", "agency=A", "user=u-d1", "all-users=x"]
  private static let issuers = ["root", "root", "dA", "admission", "stranger"] + devices
  private static let patterns = ["*", "/*", "/t", "/t*", "/t/*", "/t/red", "agency=*", "all-users=x"]

  private(set) var statements: [Statement] = []
  private var random: ChainsRandom
  private var sequences: [String: UInt64] = [:]
  private var memberships: [Digest] = []

  init(seed: UInt64) {
    random = ChainsRandom(seed: seed)
    if random.chance(90) {
      say(.genesis(Statement.Genesis(fleetName: "", admissionKey: Named.key("admission"))), by: "root")
    }
    for key: Text in ["agency", "user", "all-users"] where random.chance(80) {
      say(.rule(Statement.Rule(key: key)), by: pick(["root", "root", "dA", "d0"]))
    }
    for _ in 0..<(4 + random.below(8)) { admit() }
    for _ in 0..<(4 + random.below(8)) { declare() }
    for _ in 0..<(3 + random.below(16)) { grant() }
  }

  private mutating func pick<Item>(_ items: [Item]) -> Item { items[random.below(items.count)] }

  @discardableResult
  private mutating func say(_ body: Statement.Body, by issuer: String) -> Digest {
    // A restored disk numbers on from where it was: one in five numbers is used again.
    let isReused = random.chance(20) && sequences[issuer, default: 0] > 0
    sequences[issuer, default: 0] += isReused ? 0 : 1
    let scope: Text = random.chance(3) ? "conversation=1" : ""
    let statement = Statement(
      body, by: Named.key(issuer), sequence: sequences[issuer, default: 1], id: random.digest(), scope: scope)
    statements.append(statement)
    return statement.id
  }

  private mutating func admit() {
    let device = pick(["dA"] + RightsHistory.devices)
    let role = device == "dA" ? "admin" : pick(["officer", "officer", "guest", "admin"])
    let agency = ValueMap(ascending: [
      ValueMap.Entry(key: "agency", value: random.chance(80) ? .string(Text(pick(["A", "B"]))) : .int(1))
    ])
    let user = random.chance(90) ? "u-" + device : ""
    let membership = Statement.Membership(
      device: Named.key(device), user: Text(user), label: "", role: Text(role), profile: agency)
    let issuer = random.chance(80) ? pick(["root", "root", "dA", "admission"]) : pick(RightsHistory.issuers)
    memberships.append(say(.membership(membership), by: issuer))
  }

  private mutating func declare() {
    let replica = pick(RightsHistory.replicas)
    let device = String(Named.name(replica.bytes).prefix(2))
    let declaration = Statement.ReplicaDeclaration(replica: replica, nonce: .zero, membership: pick(memberships))
    say(.replica(declaration), by: random.chance(85) ? device : pick(RightsHistory.issuers))
  }

  private mutating func grant() {
    let issuer = random.chance(50) ? pick(["root", "dA"]) : pick(RightsHistory.issuers)
    var subject = pick(subjects)
    // Managers keep near one another, so that one delegates what another lacks.
    var pattern = pick(random.chance(50) ? RightsHistory.patterns : ["/t", "/t*"])
    // Half of them say something new of what was granted before.
    let earlier = statements.compactMap { statement -> Statement.Grant? in
      guard case .grant(let grant) = statement.body, statement.issuer == Named.key(issuer) else { return nil }
      return grant
    }
    if !earlier.isEmpty, random.chance(50) {
      let grant = pick(earlier)
      (subject, pattern) = (grant.subject, grant.pattern.string)
    }
    let level = pick([AccessLevel.none, .carry, .read, .write, .write, .write, .manage, .manage])
    let ends = random.chance(60) ? ends() : []
    say(.grant(Statement.Grant(subject: subject, level: level, pattern: Text(pattern), ends: ends)), by: issuer)
  }

  private var subjects: [Statement.Subject] {
    RightsHistory.devices.map { .device(Named.key($0)) } + RightsHistory.devices.map { .user(Text("u-" + $0)) }
      + [.role("officer"), .role("guest"), .role("admin"), .everyone]
  }

  private mutating func ends() -> [Statement.ChainEnd] {
    (0..<random.below(8)).map { _ in
      let position = ChainPosition(
        sequence: UInt64(random.below(6)), tip: TipHash(high: UInt64(random.below(3)), low: 0))
      let changes = Statement.ChainEnd.Chain.changes(
        partition: Text(pick(RightsHistory.partitions)), replica: pick(RightsHistory.replicas))
      let said = Statement.ChainEnd.Chain.statements(
        scope: random.chance(90) ? "" : "conversation=1", issuer: Named.key(pick(RightsHistory.devices)))
      return Statement.ChainEnd(chain: random.chance(60) ? changes : said, position: position)
    }
  }
}
