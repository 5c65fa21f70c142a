import Replication

/// The fleet of a run: its root, and the statements it was founded with.
struct Fleet {
  let root: FakeKey
  let id: FleetID
  private(set) var statements: [Statement] = []
  /// What the root has signed, in its order.
  private var saidByRoot: [Statement] = []
  /// What a later grant takes the place of, if it names the same.
  private(set) var registers: [Register] = []

  static let memberRole: Text = "member"
  static let furtherRole: Text = "further"

  struct Register {
    let subject: Statement.Subject
    let pattern: Text
  }

  init(
    _ random: inout SimulationRandom, _ rights: FoundingRights = .open, devices: [PublicKey] = [],
    hasRooms: Bool = false
  ) {
    root = FakeKey(&random)
    id = FakeCryptography.fleet(root: root.publicKey)
    let grants = rights.grants(devices) + (hasRooms ? Fleet.relays(devices) : [])
    registers = grants.map { Register(subject: $0.subject, pattern: $0.pattern) }
    let bodies: [Statement.Body] =
      [
        .genesis(Statement.Genesis(fleetName: "simulated")),
        .rule(Statement.Rule(key: "user")),
        .rule(Statement.Rule(key: "agency")),
      ] + (hasRooms ? [.rule(Statement.Rule(key: Statement.Rule.Key.conversation))] : []) + grants.map { .grant($0) }
    for body in bodies {
      guard let statement = root.statement(id, body, after: saidByRoot.last) else { continue }
      saidByRoot.append(statement)
    }
    statements = saidByRoot
  }

  /// One device that carries every room, whoever is invited.
  private static func relays(_ devices: [PublicKey]) -> [Statement.Grant] {
    devices.dropFirst(2).prefix(1).map {
      Statement.Grant(subject: .device($0), level: .carry, pattern: "conversation=*")
    }
  }

  func isOfFounding(_ statement: Statement) -> Bool { statements.contains { $0.id == statement.id } }

  /// A membership by the root, behind all that it has signed before, which comes with it.
  mutating func membership(of device: PublicKey, user: Text, role: Text) -> [Statement] {
    let membership = Statement.Membership(
      device: device, user: user, label: "node", role: role, profile: ValueMap())
    if let statement = root.statement(id, .membership(membership), after: saidByRoot.last) {
      saidByRoot.append(statement)
    }
    return saidByRoot
  }

  /// A grant by the root, behind all that it has signed before. One that lowers an earlier lets stand of every chain what
  /// `ends` say.
  mutating func grant(_ level: AccessLevel, _ register: Register, ends: [Statement.PartitionEnds]) -> [Statement]? {
    registers.append(register)
    let grant = Statement.Grant(
      subject: register.subject, level: level, pattern: register.pattern, listing: Statement.Listing(ends: ends))
    guard let statement = root.statement(id, .grant(grant), after: saidByRoot.last) else { return nil }
    saidByRoot.append(statement)
    return saidByRoot
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

/// Who may do what before anything is granted or lowered.
enum FoundingRights {
  /// Everyone may write everything, as in a fleet that is founded without more ado.
  case open
  /// One user writes everything; everyone else carries it, and writes some.
  case byUser
  /// One device reads and carries nothing of most; the others write.
  case byDevice

  func grants(_ devices: [PublicKey]) -> [Statement.Grant] {
    switch self {
    case .open: return [Statement.Grant(subject: .everyone, level: .write, pattern: "*")]
    case .byUser:
      return [
        Statement.Grant(subject: .everyone, level: .carry, pattern: "*"),
        Statement.Grant(subject: .user("u0"), level: .write, pattern: "*"),
        Statement.Grant(subject: .role(Fleet.memberRole), level: .write, pattern: "alpi*"),
        Statement.Grant(subject: .role(Authority.adminRole), level: .write, pattern: "alpi*"),
      ]
    case .byDevice:
      return [Statement.Grant(subject: .everyone, level: .write, pattern: "alpha")]
        + devices.dropLast().map { Statement.Grant(subject: .device($0), level: .write, pattern: "*") }
    }
  }
}
