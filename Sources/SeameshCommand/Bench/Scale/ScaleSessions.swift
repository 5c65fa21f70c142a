import Engine
import Glibc
import Identity
import Replication
import Storage
import Synchronization
import Transport
import Wire

/// Peers of a node that runs in a process of its own: the shipped engine over the shipped transport, one of each for each peer,
/// all on one store, a copy of the node's. Whoever measures turns them, on his own thread.
final class ScaleSessions {
  private let fleet: ScaleFleet
  private let store: Store
  private let clock = ScaleClock()
  private var turnedAt = monotonicMilliseconds()
  private let arrivals = ScaleArrivals()
  private var peers: [(engine: ScaleEngine, transport: SecureTransport)] = []

  private static let pollMilliseconds: Int32 = 5

  /// No node may run on the fleet's directory meanwhile.
  init(_ fleet: ScaleFleet) throws {
    self.fleet = fleet
    let directory = fleet.directory + "-peers"
    try BenchScratch.makeDirectory(directory)
    let file = "/" + Store.fileName
    try BenchScratch.copy(fleet.directory + file, to: directory + file)
    store = try Store.open(directory: directory, fleet: fleet.fleet, device: DeviceID(fleet.deviceKey.publicKey))
  }

  deinit { for peer in peers { peer.transport.stop() } }

  /// - Parameter address: of the node that is measured.
  func connect(as key: SigningKey, to address: PeerAddress) throws {
    let engine = try ScaleEngine(store, fleet: fleet.fleet, key: key, clock: clock)
    let certificate = try TLSIdentity(key)
    let transport = try SecureTransport(
      credentials: TLSCredentials(certificate: certificate.certificateDER, privateKey: certificate.privateKeyDER),
      handler: ScaleIntake(peer: peers.count, arrivals))
    engine.links.deliver = { frame, session in transport.send(ConnectionID(number: session.rawValue), frame) }
    engine.links.authenticated = { transport.authenticate(ConnectionID(number: $0.rawValue)) }
    engine.links.ended = { transport.close(ConnectionID(number: $0.rawValue)) }
    peers.append((engine, transport))
    transport.dial(address, tag: .max)
  }

  var liveCount: Int {
    peers.count { peer in peer.engine.engine.state.mesh.sessions.values.contains { $0.phase == .live } }
  }

  /// They go on for so long, or until `isDone`.
  func serve(milliseconds: Int64, until isDone: () -> Bool = { false }) throws {
    let end = monotonicMilliseconds() + milliseconds
    while monotonicMilliseconds() < end, !isDone() {
      let now = monotonicMilliseconds()
      clock.advance(UInt64(now - turnedAt))
      turnedAt = now
      for (index, arrival) in arrivals.takeAll() {
        let engine = peers[index].engine
        try engine.turn { [try engine.event(arrival)] }
      }
      for (engine, _) in peers where engine.engine.nextWake <= clock.now { engine.turn { [] } }
      _ = poll(nil, 0, ScaleSessions.pollMilliseconds)
    }
  }
}

/// What the connections' threads have for the one that turns the peers.
private final class ScaleArrivals: Sendable {
  private let waiting = Mutex<[(peer: Int, arrival: ScaleArrival)]>([])

  func put(_ peer: Int, _ arrival: ScaleArrival) { waiting.withLock { $0.append((peer, arrival)) } }

  func takeAll() -> [(peer: Int, arrival: ScaleArrival)] {
    waiting.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
  }
}

enum ScaleArrival: Sendable {
  case opened(OpenedConnection)
  case frame(SessionID, [UInt8])
  case drained(SessionID)
  case closed(SessionID, reason: String)
}

private final class ScaleIntake: TransportHandler {
  private let peer: Int
  private let arrivals: ScaleArrivals

  init(peer: Int, _ arrivals: ScaleArrivals) { (self.peer, self.arrivals) = (peer, arrivals) }

  func opened(_ connection: OpenedConnection) { arrivals.put(peer, .opened(connection)) }
  func received(_ connection: ConnectionID, frame: [UInt8]) {
    arrivals.put(peer, .frame(SessionID(rawValue: connection.number), frame))
  }
  func closed(_ connection: ConnectionID, reason: CloseReason) {
    arrivals.put(peer, .closed(SessionID(rawValue: connection.number), reason: "\(reason)"))
  }
  func drained(_ connection: ConnectionID, queuedBytes: Int) {
    arrivals.put(peer, .drained(SessionID(rawValue: connection.number)))
  }
  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {
    arrivals.put(peer, .closed(SessionID(rawValue: connection.number), reason: "\(reason)"))
  }
}

extension ScaleEngine {
  fileprivate func event(_ arrival: ScaleArrival) throws -> EngineEvent {
    switch arrival {
    case .opened(let connection):
      .opened(
        OpenedLink(
          session: SessionID(rawValue: connection.id.number), dialTag: .max, remote: connection.remote,
          peerKey: connection.peerKey, exporter: connection.exporter))
    case .frame(let session, let frame): try event(frame, on: session)
    case .drained(let session): .drained(session)
    case .closed(let session, let reason): .closed(session, reason: reason)
    }
  }
}

/// What sessions at rest cost a node.
struct IdleSessionsBench {
  let run: BenchRun
  let fleet: ScaleFleet
  /// What is there, for people.
  let size: String
  private var sizes: ScaleSizes { run.sizes.scale }

  private static let connectMilliseconds: Int64 = 60_000

  func measure() throws(Failure) {
    try measuring {
      let peers = try ScaleSessions(fleet)
      let node = try ChildNode(directory: fleet.directory, peers: [])
      defer { node.stop() }
      guard let address = PeerAddress(node.listen) else { throw Failure(.failed, "\(node.listen) is no address") }
      let seconds = sizes.restSeconds
      let before = node.memory().resident
      let alone = try share(of: node, over: seconds, peers)
      let progress = ProgressBar("connecting \(sizes.sessions) sessions", on: run.terminal)
      for index in 0..<sizes.sessions {
        try peers.connect(as: fleet.authors[index].key, to: address)
        try peers.serve(milliseconds: IdleSessionsBench.connectMilliseconds) { peers.liveCount > index }
        progress.update(done: Int64(index), total: Int64(sizes.sessions), unit: "sessions")
      }
      progress.finish()
      // What the beginning of the sessions asks for is behind them.
      try peers.serve(milliseconds: Int64(seconds) * 1_000)
      let share = try share(of: node, over: seconds, peers)
      guard peers.liveCount == sizes.sessions else { throw Failure(.failed, "not all sessions are live") }
      let memory = node.memory().resident - before
      let basis = "\(size); a process of its own, over TLS on loopback; peers that want and have the same, in another"
      run.report.add(
        Figure(
          "scale-rest", "\(sizes.sessions) sessions at rest", share, "% of a core",
          basis: "\(basis); over \(seconds) s; without sessions \(Figure.text(alone)) %", floor: .atMost(2)),
        Figure(
          "scale-rest-memory", "memory of \(sizes.sessions) sessions at rest", Double(memory) / 1_048_576, "MiB",
          basis: "\(basis); resident, more than when ready", floor: .atMost(32)))
    }
  }

  private func share(of node: ChildNode, over seconds: Int, _ peers: ScaleSessions) throws -> Double {
    let before = node.processorSeconds
    try peers.serve(milliseconds: Int64(seconds) * 1_000)
    return (node.processorSeconds - before) * 100 / Double(seconds)
  }
}
