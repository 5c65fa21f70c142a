import Identity
import Wire

@testable import Replication

/// Two nodes of one fleet and the connection between them. Messages wait until the test lets them arrive.
struct MeshPair {
  enum End: CaseIterable { case dialer, listener }

  static let session = SessionID(rawValue: 1)

  /// Declared by the dialer.
  let replica: ReplicaID
  private(set) var meshes: [End: Mesh] = [:]
  /// Sent to the end and not yet arrived, in order.
  private(set) var underway: [End: [Message]] = [.dialer: [], .listener: []]
  private var now = MonotonicTime(milliseconds: 1_000_000)
  private var random = ChainsRandom(seed: 7)

  /// `interests`: prefixes of names that each end wants from the start.
  init(dialerWants: Set<Text>, listenerWants: Set<Text>) throws {
    let founding = try FleetFounding.make(fleetName: "pair", user: "ann", label: "first")
    let other = SigningKey()
    let signer = StatementSigner(fleet: founding.fleet, key: founding.rootKey)
    let membership = try signer.sign(
      .membership(
        Statement.Membership(
          device: other.publicKey, user: "bob", label: "second", role: "officer", profile: ValueMap())),
      after: founding.statements.last)
    let device = StatementSigner(fleet: founding.fleet, key: founding.deviceKey)
    let nonce = UUIDValue(high: 3, low: 4)
    replica = ReplicaID.derived(
      device: DeviceID.derived(from: founding.deviceKey.publicKey, SHA256.hash), nonce: nonce, SHA256.hash)
    let declaration = try device.sign(
      .replica(Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: founding.membership)))
    let statements = founding.statements + [membership, declaration]
    for (number, (end, key, prefixes)) in [
      (End.dialer, founding.deviceKey, dialerWants), (End.listener, other, listenerWants),
    ].enumerated() {
      let instance = UUIDValue(high: 1, low: UInt64(number))
      meshes[end] = MeshPair.mesh(founding, key, instance, statements, Interest(prefixes: prefixes))
    }
    let exporter = Digest(words: (1, 2, 3, 4))
    handle(
      .listener, .opened(Self.session, isDialer: false, peer: founding.deviceKey.publicKey, exporter: exporter))
    handle(.dialer, .opened(Self.session, isDialer: true, peer: other.publicKey, exporter: exporter))
  }

  private static func mesh(
    _ founding: FleetFounding, _ key: SigningKey, _ instance: UUIDValue, _ statements: [Statement],
    _ interest: Interest
  ) -> Mesh {
    let verifier = StatementVerifier(fleet: founding.fleet)
    return Mesh(
      local: LocalIdentity(
        fleet: founding.fleet, device: key.publicKey, instance: instance, credentials: []),
      authority: Authority(root: founding.rootKey.publicKey, statements: statements, hash: SHA256.hash),
      statements: statements, partitions: [], interest: interest,
      cryptography: Cryptography(
        hash: SHA256.hash, verify: Ed25519.verify, sign: key.sign, authenticationCode: HMAC.sha256,
        statement: verifier.read, holdingsBytes: HoldingsCodec.signedBytes))
  }

  /// Answers what the end sent.
  @discardableResult mutating func handle(_ end: End, _ event: Mesh.Event) -> [Message] {
    let directives = meshes[end]?.handle(event, Surroundings(now: now), random: &random) ?? []
    let sent = directives.compactMap { directive -> Message? in
      if case .send(_, let message) = directive { message } else { nil }
    }
    underway[end == .dialer ? .listener : .dialer]? += sent
    return sent
  }

  /// Lets everything arrive that is under way to this end now; answers what it sent upon that.
  @discardableResult mutating func arrive(at end: End) -> [Message] {
    let messages = underway.updateValue([], forKey: end) ?? []
    return messages.flatMap { handle(end, .received(Self.session, $0)) }
  }

  /// Until neither has anything more to say.
  mutating func settle() {
    while underway.values.contains(where: { !$0.isEmpty }) { for end in End.allCases { arrive(at: end) } }
  }

  func phase(of end: End) -> PeerSession.Phase? { meshes[end]?.sessions[Self.session]?.phase }
}
