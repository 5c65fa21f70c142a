@testable import Replication

/// A random history of one partition: two devices with two replicas each, forks, re-issues, unknown kinds, breaches of
/// the document rule, and statements that open and close rights.
struct ChainsHistory {
  enum Event: Hashable {
    case statement(Statement)
    case run(RunSummary, content: Bool)
  }

  let partition: PartitionName
  private(set) var statements: [Statement] = []
  private(set) var runs: [RunSummary] = []
  private(set) var headers: [RunSummary] = []
  private var random: ChainsRandom
  private var tips: [ReplicaID: [(sequence: UInt64, hash: Digest)]] = [:]

  static let replicas = ["d0.1", "d0.2", "d1.1", "d1.2"].map(Named.replica)
  static let genesis: @Sendable (ReplicaID) -> Digest = { replica in
    Digest(words: (replica.high, replica.low, 1, 0))
  }

  var events: [Event] {
    statements.map(Event.statement) + runs.map { .run($0, content: true) } + headers.map { .run($0, content: false) }
  }

  init(seed: UInt64) throws {
    random = ChainsRandom(seed: seed)
    partition = try Named.partition(["agency=A", "/t", "all-users=x"][random.below(3)])
    state()
    for _ in 0..<(4 + random.below(16)) { write() }
    for _ in 0..<random.below(4) { close() }
  }

  private mutating func say(_ body: Statement.Body, by issuer: String = "root") -> Digest {
    let statement = Statement(body, by: Named.key(issuer), after: statements, id: random.digest())
    statements.append(statement)
    return statement.id
  }

  private mutating func grant(_ level: AccessLevel, ends: [Statement.PartitionEnds] = []) {
    let grant = Statement.Grant(
      subject: .role("officer"), level: level, pattern: "/*", listing: Statement.Listing(ends: ends))
    _ = say(.grant(grant), by: "dA")
  }

  private mutating func state() {
    _ = say(.genesis(Statement.Genesis(fleetName: "")))
    for key in [Statement.Rule.Key.agency, Statement.Rule.Key.allUsers] { _ = say(.rule(Statement.Rule(key: key))) }
    _ = member("dA", role: "admin")
    grant(.write)
    for device in ["d0", "d1"] {
      let membership = member(device, role: "officer")
      for nonce in ["1", "2"] {
        _ = say(
          .replica(
            Statement.ReplicaDeclaration(
              replica: Named.replica("\(device).\(nonce)"), nonce: .zero, membership: membership)), by: device)
      }
    }
  }

  private mutating func member(_ device: String, role: Text) -> Digest {
    let agency = ValueMap(ascending: [ValueMap.Entry(key: "agency", value: .string("A"))])
    return say(
      .membership(
        Statement.Membership(
          device: Named.key(device), user: Text("u-" + device), label: "", role: role, profile: agency)))
  }

  private mutating func write() {
    let replica = ChainsHistory.replicas[random.below(4)]
    let known = tips[replica, default: [(0, ChainsHistory.genesis(replica))]]
    // One in six continues from somewhere earlier: a fork, or a deeper one.
    let start = random.chance(16) ? known[random.below(known.count)] : known[known.count - 1]
    let device = String(Named.name(replica.bytes).prefix(2))
    let hashes = (0...random.below(3)).map { _ in random.digest() }
    let run = RunSummary(
      partition: partition, replica: replica, first: start.sequence + 1, hashBefore: start.hash, hashes: hashes,
      context: context(without: replica), signer: Named.key(device), facts: hashes.map { _ in facts(device) })
    if random.chance(12) { headers.append(run) } else { runs.append(run) }
    tips[replica] = known + hashes.enumerated().map { (start.sequence + 1 + UInt64($0), $1) }
  }

  private mutating func facts(_ device: String) -> ChangeFacts {
    var facts = ChangeFacts(ownDocument: random.chance(93) ? OwnDocument(user: Text("u-" + device)) : nil)
    if random.chance(3) { facts.recognition = .unknownExtension }
    let lost = Named.replica(device + ".1")
    if random.chance(15), let (sequence, hash) = tips[lost]?.dropFirst().randomElement(using: &random) {
      // One in four originals is on a branch that nobody shows here.
      let original = random.chance(25) ? random.digest() : hash
      facts.origin = ChangeOrigin(dot: Dot(replica: lost, sequence: sequence), hash: original)
    }
    return facts
  }

  private mutating func context(without replica: ReplicaID) -> VersionVector {
    var context = VersionVector()
    for (other, known) in tips.sorted(by: { $0.key < $1.key }) where other != replica && random.chance(50) {
      guard let tip = known.last, tip.sequence > 0 else { continue }
      context[other] = ChainPosition(sequence: tip.sequence, tip: tip.hash.tip)
    }
    return context
  }

  /// Lowers the grant, or grants again.
  private mutating func close() {
    guard random.chance(70) else { return grant(.write) }
    let ends = tips.sorted { $0.key < $1.key }.compactMap { replica, known -> Statement.ChainEnd? in
      guard random.chance(80), let tip = known.randomElement(using: &random) else { return nil }
      return Statement.ChainEnd(
        replica: replica, position: ChainPosition(sequence: tip.sequence, tip: tip.hash.tip))
    }
    let group = Statement.PartitionEnds(partition: partition.text, chains: ends)
    grant(random.chance(50) ? .read : .none, ends: [group])
  }
}

extension ChainsKeeper {
  /// A node that met these events in this order.
  init(_ history: ChainsHistory, _ events: [ChainsHistory.Event], folds: Bool) throws {
    self.init(history.partition, authority: Authority(named: []), folds: folds, genesis: ChainsHistory.genesis)
    var heard: [Statement] = []
    for event in events {
      switch event {
      case .statement(let statement):
        heard.append(statement)
        try adopt(Authority(named: heard))
      case .run(let run, let content): try learn(run, content: content)
      }
    }
  }
}
