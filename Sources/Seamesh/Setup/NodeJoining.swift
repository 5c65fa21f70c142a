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
    case failed(String)
  }

  private struct State {
    var statements: [Statement] = []
    var transport: SecureTransport?
    /// Nodes may still be found beside the addresses given.
    var isLooking = false
    /// Addresses asked already; the place of each is the tag of its dials.
    var asked: [PeerAddress] = []
    /// Places of those that could not be reached, for another try.
    var unreached: Set<Int> = []
    /// Dials without an outcome yet.
    var pending = 0
    var lastFailure: String?
  }

  private let code: JoinCode
  private let key: SigningKey
  private let label: Text
  private let verifier: StatementVerifier
  private let state = Mutex(State())
  private let outcome = Mutex<Outcome?>(nil)
  private let signal = TimedSemaphore()

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
    defer { transport.stop() }
    state.withLock { ($0.transport, $0.isLooking) = (transport, usesDiscovery) }
    for address in addresses { ask(address) }
    let discovery = usesDiscovery ? try look() : nil
    defer { discovery?.stop() }
    let deadline = ElapsedClock.now() + timeoutMilliseconds
    while outcome.withLock({ $0 == nil }), ElapsedClock.now() < deadline {
      if !signal.wait(milliseconds: JoinAttempt.retryMilliseconds) { askAgain() }
    }
    switch outcome.withLock({ $0 }) {
    case .admitted(let statements): return statements
    case .refused(let refusal): throw NodeError(.notPermitted, JoinAttempt.sentence(refusal))
    case .failed(let reason): throw NodeError(.failed, reason)
    case nil:
      let last = state.withLock { $0.lastFailure }.map { " (\($0))" } ?? ""
      throw NodeError(
        .failed,
        "no node of this fleet was reached within \(timeoutMilliseconds / 1_000) s\(last); "
          + "give its address with --peer HOST:PORT")
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

  /// At most ``askLimit`` addresses.
  private func ask(_ address: PeerAddress) {
    state.withLock { state in
      guard state.asked.count < JoinAttempt.askLimit, !state.asked.contains(address) else { return }
      state.pending += 1
      state.transport?.dial(address, tag: UInt64(state.asked.count))
      state.asked.append(address)
    }
  }

  private static let askLimit = 64

  /// An address of this host may not have been ready, or the node that is asked not have begun to listen.
  private func askAgain() {
    state.withLock { state in
      for place in state.unreached.sorted() {
        state.pending += 1
        state.transport?.dial(state.asked[place], tag: UInt64(place))
      }
      state.unreached = []
    }
  }

  private static let retryMilliseconds: UInt64 = 1_000

  private func look() throws -> Discovery {
    let finder = FleetFinder(fleet: code.fleet) { [weak self] in self?.ask(.socket($0)) }
    return try Discovery(advertisement: nil, handler: finder) {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    }
  }

  private func finish(_ result: Outcome) {
    let isFirst = outcome.withLock { outcome in
      guard outcome == nil else { return false }
      outcome = result
      return true
    }
    if isFirst { signal.signal() }
  }

  private func oneFailed(_ reason: String) {
    let allFailed = state.withLock { state in
      state.lastFailure = reason
      state.pending -= 1
      return state.pending <= 0 && !state.isLooking
    }
    if allFailed { finish(.failed("no node could be reached: \(reason)")) }
  }

  // MARK: TransportHandler

  func opened(_ connection: OpenedConnection) {
    var request = JoinRequest(
      fleet: code.fleet, device: key.publicKey, user: code.user, label: label, role: code.role, profile: code.profile)
    request.proof = code.secret.key(in: code.fleet).sign(request.signedBytes(exporter: connection.exporter))
    guard let transport = state.withLock({ $0.transport }) else { return }
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
      case .joinRefused(let refusal): finish(.refused(refusal))
      case .goodbye(let reason): oneFailed("it closed the connection: \(reason)")
      default: break
      }
    } catch {
      oneFailed("it sent what is no message: \(error)")
    }
  }

  /// Believed only if the statements show it: a genesis by this fleet's root, and a membership of this very device.
  private func admitted() {
    let statements = state.withLock { $0.statements }
    guard let authority = try? NodeOpening.authority(statements, code.fleet), authority.member(of: key.publicKey) != nil
    else { return oneFailed("it admitted this device without showing the statement") }
    finish(.admitted(statements))
  }

  func closed(_ connection: ConnectionID, reason: CloseReason) {}
  func drained(_ connection: ConnectionID, queuedBytes: Int) {}

  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {
    state.withLock { state in
      if let place = Int(exactly: tag), state.asked.indices.contains(place) { state.unreached.insert(place) }
    }
    oneFailed("\(reason)")
  }
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
