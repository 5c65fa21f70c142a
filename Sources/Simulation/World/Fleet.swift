import Replication

/// The fleet of a run: its root, the key that admits devices, and the statements it was founded with.
struct Fleet {
  let root: FakeKey
  let admission: FakeKey
  let id: FleetID
  private(set) var statements: [Statement] = []
  private var nextGrant: UInt64 = 100

  /// An open fleet, as a real one is founded: everyone may write everything.
  init(_ random: inout SimulationRandom) {
    (root, admission) = (FakeKey(&random), FakeKey(&random))
    id = FakeCryptography.fleet(root: root.publicKey)
    let bodies: [Statement.Body] = [
      .genesis(Statement.Genesis(fleetName: "simulated", admissionKey: admission.publicKey)),
      .rule(Statement.Rule(key: "user")),
      .rule(Statement.Rule(key: "agency")),
      .grant(Statement.Grant(subject: .everyone, level: .write, pattern: "*")),
    ]
    for (index, body) in bodies.enumerated() {
      if let statement = root.statement(id, body, sequence: UInt64(index) + 1) { statements.append(statement) }
    }
  }

  func membership(of device: PublicKey, user: Text, sequence: UInt64) -> Statement? {
    let membership = Statement.Membership(
      device: device, user: user, label: "node", role: "member", profile: ValueMap())
    return admission.statement(id, .membership(membership), sequence: sequence)
  }

  /// A grant by the root to everyone. One that lowers an earlier lets stand of every chain what `ends` say.
  mutating func grant(_ level: AccessLevel, on pattern: Text, ends: [Statement.ChainEnd]) -> Statement? {
    nextGrant += 1
    let grant = Statement.Grant(subject: .everyone, level: level, pattern: pattern, ends: ends)
    return root.statement(id, .grant(grant), sequence: nextGrant)
  }

  func partition(_ name: PartitionName) -> PartitionID { name.id(fleet: id, hash: FakeCryptography.hash) }

  /// A name, or a prefix followed by `*`.
  func interest(_ pattern: Text) -> Interest {
    if pattern.string.utf8.last == UInt8(ascii: "*") {
      return Interest(prefixes: [Text(String(decoding: pattern.utf8.dropLast(), as: UTF8.self))])
    }
    guard let name = try? PartitionName(pattern) else { return Interest() }
    return Interest(partitions: [partition(name)])
  }
}
