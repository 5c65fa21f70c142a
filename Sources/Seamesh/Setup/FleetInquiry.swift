import Engine
import Identity
import Kernel
import Replication
import Storage
import Synchronization
import Transport
import Wire

/// What a device without a store asks of its fleet: the words differ, the answer is the fleet's statements.
protocol InquiryTopic: Sendable {
  var fleet: FleetID { get }
  /// The device's own.
  var key: SigningKey { get }

  func greeting(_ connection: OpenedConnection) -> Message
  /// Of every message but statements, which are collected.
  func step(after message: Message, on connection: OpenedConnection) -> InquiryStep
  /// What a person is told where nobody has helped within the time.
  func failure(_ inquiry: InquiryProgress) -> NodeError
}

/// How far an inquiry has come.
struct InquiryProgress: Sendable {
  var elapsedMilliseconds: UInt64 = 0
  /// Why the node that was asked last did not help.
  var lastFailure: String?
}

enum InquiryStep: Sendable {
  case wait
  case say(Message)
  /// The statements that came are all.
  case complete
  /// This node does not help; another one may.
  case askElsewhere(String)
  /// This node may help in a while.
  case askAgain(String)
  /// No node will.
  case giveUp(NodeError)
}

/// Asks one node after another until one tells the fleet's statements. The handler's calls come on the transport's thread.
final class FleetInquiry: TransportHandler {
  private struct State {
    /// Where to ask, in order, each once: what was given, then what discovery found.
    var addresses: [PeerAddress] = []
    var lastFailure: String?
    /// Somebody was asked who may help in a while.
    var mustAskAgain = false
    var asked = AskedNodes()
  }

  private let topic: any InquiryTopic
  /// So long somebody may go on telling statements in the first round while others wait to be asked, and ten times that where nobody
  /// waits. Each round gives twice as much, so that over a slow link one comes to its end some time.
  private let turnMilliseconds: UInt64
  private let verifier: StatementVerifier
  private let state = Mutex(State())
  private let outcome = Mutex<Result<[Statement], NodeError>?>(nil)
  private let signal = TimedSemaphore()
  /// The transport whose handler this is.
  private let held = Mutex<SecureTransport?>(nil)

  init(_ topic: any InquiryTopic, turnMilliseconds: UInt64 = 60_000) {
    (self.topic, self.turnMilliseconds) = (topic, turnMilliseconds)
    verifier = StatementVerifier(fleet: topic.fleet)
  }

  /// `isGivenUp` is asked every second or so, and hears how far it has come.
  func run(
    _ addresses: [PeerAddress], usesDiscovery: Bool, timeoutMilliseconds: UInt64,
    isGivenUp: (InquiryProgress) -> Bool = { _ in false }
  ) throws -> [Statement] {
    guard usesDiscovery || !addresses.isEmpty else {
      throw NodeError(
        .failed, "nobody to ask: no address of a node of this fleet is known; give one with --peer HOST:PORT")
    }
    let identity = try TLSIdentity(topic.key)
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
    let start = ElapsedClock.now()
    let deadline = start.advanced(byMilliseconds: timeoutMilliseconds)
    func progress() -> InquiryProgress {
      let elapsed = ElapsedClock.now().millisecondsSince(start)
      return InquiryProgress(elapsedMilliseconds: elapsed, lastFailure: state.withLock { $0.lastFailure })
    }
    ask(transport, keepsAsking: usesDiscovery || deadline == .never, until: deadline) {
      isGivenUp(progress())
    }
    guard let result = outcome.withLock({ $0 }) else {
      if isGivenUp(progress()) { throw NodeError(.stopping, "given up") }
      throw topic.failure(progress())
    }
    return try result.get()
  }

  /// One node at a time, since each that is asked may sign a membership; round after round while another may turn up, or
  /// one that is known come within reach.
  private func ask(
    _ transport: SecureTransport, keepsAsking: Bool, until deadline: MonotonicTime, _ isGivenUp: () -> Bool
  ) {
    var (next, round) = (0, 0)
    // Somebody in this round was still telling when his turn was over; the round may go on when the time is over.
    var (wasCutOff, isGranted) = (false, false)
    while outcome.withLock({ $0 == nil }), !isGivenUp() {
      let isOver = ElapsedClock.now() >= deadline && !isGranted
      if !isOver, let address = state.withLock({ $0.addresses.indices.contains(next) ? $0.addresses[next] : nil }) {
        next += 1
        let (tag, outdated) = state.withLock { $0.asked.begin() }
        for connection in outdated { transport.close(connection, afterFlush: false) }
        transport.dial(address, tag: tag)
        guard let failure = silence(turnMilliseconds << UInt64(round), next, isGivenUp) else { continue }
        if failure == FleetInquiry.turnOver { (wasCutOff, isGranted) = (true, true) }
        state.withLock { state in
          state.asked.end()
          state.lastFailure = "\(address) \(failure)"
        }
      } else if wasCutOff, round < FleetInquiry.grantedRounds {
        (next, round, wasCutOff, isGranted) = (0, round + 1, false, true)
      } else if !isOver, state.withLock({ $0.mustAskAgain }) || keepsAsking {
        (next, wasCutOff, isGranted) = (0, false, false)
        state.withLock { $0.mustAskAgain = false }
        _ = signal.wait(milliseconds: FleetInquiry.pauseMilliseconds)
      } else {
        return
      }
    }
  }

  /// What is to be said of who did not answer in time; nil where he did. As long as statements come, it goes on up to the end of his
  /// turn, also where the time for asking is over.
  private func silence(_ turnMilliseconds: UInt64, _ next: Int, _ isGivenUp: () -> Bool) -> String? {
    let begun = ElapsedClock.now()
    var (steps, count) = (0, 0)
    while steps < FleetInquiry.patienceSteps {
      if signal.wait(milliseconds: FleetInquiry.patienceMilliseconds / UInt64(FleetInquiry.patienceSteps)) {
        return nil
      }
      if isGivenUp() { return nil }
      let (come, isLast) = state.withLock { ($0.asked.statementCount, $0.addresses.count <= next) }
      let turn = isLast ? turnMilliseconds * 10 : turnMilliseconds
      guard ElapsedClock.now().millisecondsSince(begun) < turn else {
        return FleetInquiry.turnOver
      }
      (steps, count) = come > count ? (0, come) : (steps + 1, count)
    }
    return "said nothing, as a node of another fleet does"
  }

  private static let turnOver = "was not at the end of its statements when its turn was over"
  /// So often whoever was cut off has twice as long: 16 times in the end.
  private static let grantedRounds = 4
  private static let patienceSteps = 8
  private static let addressLimit = 64
  private static let patienceMilliseconds: UInt64 = 4_000
  private static let pauseMilliseconds: UInt64 = 1_000

  private func add(_ address: PeerAddress) {
    state.withLock { state in
      guard state.addresses.count < FleetInquiry.addressLimit, !state.addresses.contains(address) else { return }
      state.addresses.append(address)
    }
  }

  private func look() throws -> Discovery {
    let finder = FleetFinder(fleet: topic.fleet) { [weak self] in self?.add(.socket($0)) }
    return try Discovery(advertisement: nil, handler: finder) {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    }
  }

  private func finish(_ result: Result<[Statement], NodeError>) {
    outcome.withLock { $0 = $0 ?? result }
    signal.signal()
  }

  /// Whoever asks goes on to the next node.
  private func oneFailed(_ connection: ConnectionID, _ reason: String) {
    oneFailed(reason) { $0.failed(connection) }
  }

  /// `isPresent`: whether it was the one that is asked now.
  private func oneFailed(_ reason: String, _ isPresent: (inout AskedNodes) -> Bool) {
    let ends = state.withLock { state in
      guard isPresent(&state.asked) else { return false }
      state.lastFailure = reason
      return true
    }
    if ends { signal.signal() }
  }

  // MARK: TransportHandler

  func opened(_ connection: OpenedConnection) {
    guard let transport = held.withLock({ $0 }) else { return }
    state.withLock { $0.asked.opened(connection) }
    transport.authenticate(connection.id)
    transport.send(connection.id, MessageCodec.encode(topic.greeting(connection)))
  }

  func received(_ connection: ConnectionID, frame: [UInt8]) {
    do {
      guard let message = try MessageCodec.decode(frame[...]) else { return }
      if case .statements(let encoded, _) = message { return try collect(encoded, from: connection) }
      guard let opened = state.withLock({ $0.asked[connection] }) else { return }
      switch topic.step(after: message, on: opened) {
      case .wait: break
      case .say(let answer): held.withLock { $0 }?.send(connection, MessageCodec.encode(answer))
      case .complete: complete(connection)
      case .askElsewhere(let reason): oneFailed(connection, reason)
      case .askAgain(let reason):
        state.withLock { $0.mustAskAgain = true }
        oneFailed(connection, reason)
      case .giveUp(let error): finish(.failure(error))
      }
    } catch {
      oneFailed(connection, "it sent what is no message: \(error)")
      state.withLock { $0.asked.drop(connection) }
      held.withLock { $0 }?.close(connection, afterFlush: false)
    }
  }

  private func collect(_ encoded: [[UInt8]], from connection: ConnectionID) throws {
    var statements: [Statement] = []
    for bytes in encoded {
      do throws(StatementVerifier.Failure) {
        statements.append(try verifier.verify(bytes))
      } catch .statement(.version) {
        continue
      }
    }
    guard state.withLock({ $0.asked.collect(statements, from: connection) }) else {
      throw NodeError(.tooLarge, "more than \(Statement.countLimit) statements")
    }
  }

  /// Believed only if the statements show it: a genesis by this fleet's root, and a membership of this very device. Of statements
  /// that stand on neither, whoever answers may sign as many as there is room for.
  private func complete(_ connection: ConnectionID) {
    let statements = state.withLock { $0.asked.statements(from: connection) }
    guard let authority = Authority(ofFleet: topic.fleet, statements, SHA256.hash),
      authority.member(of: topic.key.publicKey) != nil
    else { return oneFailed(connection, "it took this device for a member without showing the statement") }
    finish(.success(statements.filter { authority.holds($0.id) }))
  }

  func closed(_ connection: ConnectionID, reason: CloseReason) {
    guard outcome.withLock({ $0 == nil }) else { return }
    let ends = state.withLock { state in
      let (remote, ends) = state.asked.closed(connection)
      let address = remote.map { "\($0)" } ?? "a node"
      if ends { state.lastFailure = "\(address) closed the connection without a word, as a node of another fleet does" }
      return ends
    }
    if ends { signal.signal() }
  }
  func drained(_ connection: ConnectionID, queuedBytes: Int) {}

  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {
    oneFailed("\(reason)") { $0.failed(round: tag) }
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
