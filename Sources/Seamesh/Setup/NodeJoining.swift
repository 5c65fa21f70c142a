import Engine
import Identity
import Replication
import Storage
import Synchronization
import Transport
import Wire

extension NodeSetup {
  /// A code for another device. Whoever has it can enter the fleet until the admission secret is changed.
  static func joinCode(
    _ files: NodeFiles, _ request: InviteRequest, addresses: [Text]
  ) throws(NodeError) -> String {
    guard let secret = files.admissionSecret else {
      throw NodeError(.notPermitted, "this device does not hold the fleet's admission secret")
    }
    guard request.role != FleetFounding.adminRole else {
      throw NodeError(.notPermitted, "only the fleet root makes admins; choose another role")
    }
    try check(request.user, "a user", mayBeEmpty: false)
    try check(request.role, "a role")
    try check(request.profile)
    let code = JoinCode(
      fleet: files.fleet, secret: secret, user: request.user, role: request.role, profile: request.profile,
      addresses: addresses)
    do throws(JoinCode.Invalid) { return try code.encode() } catch {
      throw NodeError(.unprocessable, "no join code can be made of this: \(error)")
    }
  }

  /// The same without a running node: the code then has no addresses, and discovery must find somebody.
  package static func invite(_ path: String, _ request: InviteRequest) throws(NodeError) -> String {
    let directory: DataDirectory
    do throws(FileError) { directory = try DataDirectory(existing: path) } catch { throw NodeError(error) }
    return try joinCode(try NodeFiles.load(directory), request, addresses: [])
  }

  package struct Joined: Sendable {
    package let fleet: FleetID
    package let device: DeviceID
    package let statementCount: Int
  }

  /// Enters the fleet of the code: asks at its addresses, at `peers`, and at whatever node of that fleet discovery finds,
  /// until one admits this device.
  package static func join(
    _ path: String, code text: String, label: Text, peers: [PeerAddress], usesDiscovery: Bool = true,
    timeoutMilliseconds: UInt64 = 30_000
  ) throws(NodeError) -> Joined {
    let code: JoinCode
    do throws(JoinCode.Invalid) { code = try JoinCode.parse(text) } catch {
      throw NodeError(.badRequest, "this is no join code: \(error)")
    }
    do {
      try check(label, "a label")
      let (directory, lock) = try claim(path)
      let key = SigningKey()
      try KeyFile.device.create(key, in: directory)
      let addresses = peers + code.addresses.compactMap { PeerAddress($0.string) }
      let statements = try JoinAttempt(code: code, key: key, label: label)
        .run(addresses, usesDiscovery: usesDiscovery, timeoutMilliseconds: timeoutMilliseconds)
      try enter(
        directory, lock, fleet: code.fleet, deviceKey: key, secret: code.secret, statements: statements)
      return Joined(fleet: code.fleet, device: DeviceID(key.publicKey), statementCount: statements.count)
    } catch {
      throw NodeError(any: error)
    }
  }
}

/// One device's asking to be admitted. The handler's calls come on the transport's thread.
final class JoinAttempt: TransportHandler {
  private enum Outcome: Sendable {
    case admitted([Statement])
    case refused(JoinRefusal)
  }

  private struct State {
    var statements: [Statement] = []
    /// Where to ask, in order, each once: what was given, then what discovery found.
    var addresses: [PeerAddress] = []
    var lastFailure: String?
  }

  private let code: JoinCode
  private let key: SigningKey
  private let label: Text
  private let verifier: StatementVerifier
  private let state = Mutex(State())
  private let outcome = Mutex<Outcome?>(nil)
  private let signal = TimedSemaphore()
  /// The transport whose handler this is.
  private let held = Mutex<SecureTransport?>(nil)

  init(code: JoinCode, key: SigningKey, label: Text) {
    (self.code, self.key, self.label) = (code, key, label)
    verifier = StatementVerifier(fleet: code.fleet)
  }

  func run(
    _ addresses: [PeerAddress], usesDiscovery: Bool, timeoutMilliseconds: UInt64
  ) throws -> [Statement] {
    guard usesDiscovery || !addresses.isEmpty else {
      throw NodeError(.failed, "nobody to ask: the code names no address; give one with --peer HOST:PORT")
    }
    let identity = try TLSIdentity(key)
    let transport = try SecureTransport(
      credentials: TLSCredentials(certificate: identity.certificateDER, privateKey: identity.privateKeyDER),
      handler: self)
    held.withLock { $0 = transport }
    defer {
      held.withLock { $0 = nil }
      transport.stop()
    }
    for address in addresses { add(address) }
    let discovery = usesDiscovery ? try look() : nil
    defer { discovery?.stop() }
    ask(transport, isLooking: usesDiscovery, until: ElapsedClock.now() + timeoutMilliseconds)
    switch outcome.withLock({ $0 }) {
    case .admitted(let statements): return statements
    case .refused(let refusal): throw NodeError(.notPermitted, JoinAttempt.sentence(refusal))
    case nil:
      let last = state.withLock { $0.lastFailure }.map { " (\($0))" } ?? ""
      throw NodeError(.failed, "no node of this fleet could be reached\(last); give its address with --peer HOST:PORT")
    }
  }

  /// One node at a time, since each that is asked may sign a membership; round after round while discovery looks for more:
  /// an address may not be ready, or a node not have begun to listen.
  private func ask(_ transport: SecureTransport, isLooking: Bool, until deadline: UInt64) {
    var next = 0
    while outcome.withLock({ $0 == nil }), ElapsedClock.now() < deadline {
      if let address = state.withLock({ $0.addresses.indices.contains(next) ? $0.addresses[next] : nil }) {
        next += 1
        state.withLock { $0.statements = [] }
        transport.dial(address, tag: 0)
        _ = signal.wait(milliseconds: JoinAttempt.patienceMilliseconds)
      } else if isLooking {
        next = 0
        _ = signal.wait(milliseconds: JoinAttempt.pauseMilliseconds)
      } else {
        return
      }
    }
  }

  private static let addressLimit = 64
  private static let patienceMilliseconds: UInt64 = 4_000
  private static let pauseMilliseconds: UInt64 = 1_000

  private func add(_ address: PeerAddress) {
    state.withLock { state in
      guard state.addresses.count < JoinAttempt.addressLimit, !state.addresses.contains(address) else { return }
      state.addresses.append(address)
    }
  }

  static func sentence(_ refusal: JoinRefusal) -> String {
    switch refusal {
    case .wrongCode: "the join code is not this fleet's: ask for a new one with seamesh invite"
    case .otherFleet: "the node at this address belongs to another fleet"
    case .cannotAdmit: "the node that was asked cannot admit devices: ask another one"
    case .busy: "the node that was asked is busy: try again"
    }
  }

  private func look() throws -> Discovery {
    let finder = FleetFinder(fleet: code.fleet) { [weak self] in self?.add(.socket($0)) }
    return try Discovery(advertisement: nil, handler: finder) {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    }
  }

  private func finish(_ result: Outcome) {
    outcome.withLock { $0 = $0 ?? result }
    signal.signal()
  }

  private func oneFailed(_ reason: String) {
    state.withLock { $0.lastFailure = reason }
    signal.signal()
  }

  // MARK: TransportHandler

  func opened(_ connection: OpenedConnection) {
    var request = JoinRequest(
      fleet: code.fleet, device: key.publicKey, user: code.user, label: label, role: code.role, profile: code.profile)
    request.proof = code.secret.key(in: code.fleet).sign(request.signedBytes(exporter: connection.exporter))
    guard let transport = held.withLock({ $0 }) else { return }
    transport.authenticate(connection.id)
    transport.send(connection.id, MessageCodec.encode(.joinRequest(request)))
  }

  func received(_ connection: ConnectionID, frame: [UInt8]) {
    do {
      switch try MessageCodec.decode(frame[...]) {
      case .statements(let encoded):
        let statements = try encoded.map { try verifier.verify($0) }
        state.withLock { $0.statements += statements }
      case .joinAccepted: admitted()
      case .joinRefused(.wrongCode): finish(.refused(.wrongCode))
      case .joinRefused(let refusal): oneFailed(JoinAttempt.sentence(refusal))
      default: break
      }
    } catch {
      oneFailed("it sent what is no message: \(error)")
    }
  }

  /// Believed only if the statements show it: a genesis by this fleet's root, and a membership of this very device.
  private func admitted() {
    let statements = state.withLock { $0.statements }
    guard let authority = Authority(ofFleet: code.fleet, statements, SHA256.hash),
      authority.member(of: key.publicKey) != nil
    else { return oneFailed("it admitted this device without showing the statement") }
    finish(.admitted(statements))
  }

  func closed(_ connection: ConnectionID, reason: CloseReason) {
    guard outcome.withLock({ $0 == nil }) else { return }
    oneFailed("it closed the connection")
  }
  func drained(_ connection: ConnectionID, queuedBytes: Int) {}

  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) { oneFailed("\(reason)") }
}

/// Passes on where nodes announce the tag of one fleet.
private final class FleetFinder: DiscoveryHandler {
  private let fleet: FleetID
  private let found: @Sendable (SocketAddress) -> Void

  init(fleet: FleetID, found: @escaping @Sendable (SocketAddress) -> Void) { (self.fleet, self.found) = (fleet, found) }

  func found(instance: String, addresses: [SocketAddress], tag: [UInt8]) {
    guard DiscoveryTag.matches(tag, fleet: fleet, instanceName: instance) else { return }
    for address in addresses { found(address) }
  }

  func lost(instance: String) {}
  func discoveryChanged(_ state: DiscoveryState) {}
  func interfacesChanged() {}
}
