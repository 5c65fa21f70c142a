import Engine
import Glibc
import Identity
import Replication
import Storage
import Transport
import Wire

/// The shipped engine on a real store, on a clock that the measurement moves, with an account of what its turns take: time on
/// the processor and memory, which other threads and other engines of this process have no part in.
final class ScaleEngine {
  let engine: NodeEngine
  let identity: EngineIdentity
  let links = ScaleLinks()
  private let decoder: FrameDecoder
  private(set) var seconds = 0.0
  private(set) var bytes = 0
  private var countsMemory = false

  init(_ store: Store, fleet: FleetID, key: SigningKey, clock: ScaleClock) throws {
    let verifier = StatementVerifier(fleet: fleet)
    let cryptography = Cryptography(
      hash: SHA256.hash, verify: Ed25519.verify, sign: key.sign, authenticationCode: HMAC.sha256,
      statement: verifier.read, holdingsBytes: HoldingsCodec.signedBytes)
    identity = EngineIdentity(fleet: fleet, device: key.publicKey, cryptography: cryptography)
    decoder = FrameDecoder(fleet: fleet, cryptography)
    let ports = EnginePorts(
      store: store, mark: NoMark(), clock: clock, links: links, journal: NoJournal(), feed: NoListener(),
      random: SystemRandomNumberGenerator())
    engine = try NodeEngine(identity, EngineOptions(instance: UUIDValue(SecureRandom.bytes(16)) ?? .zero), ports)
  }

  /// - Parameter withMemory: asking the heap takes long where it is large.
  func beginAccount(withMemory: Bool = false) { (seconds, bytes, countsMemory) = (0, 0, withMemory) }

  /// Counted.
  func turn(_ events: () throws -> [EngineEvent]) rethrows {
    let before = countsMemory ? Heap.bytes : 0
    let start = ScaleEngine.threadSeconds
    engine.turn(try events())
    seconds += ScaleEngine.threadSeconds - start
    if countsMemory { bytes += Heap.bytes - before }
  }

  /// As the thread of a connection makes it of a frame.
  func event(_ frame: [UInt8], on session: SessionID) throws -> EngineEvent {
    switch try decoder.decode(frame, under: { engine.state.mesh.authority }) {
    case .message(let message): .message(session, message, byteCount: frame.count)
    case .runs(let batch, let runs): .runs(session, batch, runs, byteCount: frame.count)
    case .nothing: .drained(session)
    }
  }

  /// Runs from outside, in one turn; making their events is not counted.
  func take(_ runs: [ScaleRun]) throws {
    let events = try runs.map { run in
      let inspected = try decoder.inspect(
        run.encoded, context: run.context, in: run.partition, under: engine.state.mesh.authority
      ) { _ in [] }
      return EngineEvent.ledgerRun(run.partition, inspected.delivered)
    }
    turn { events }
    if let failure = engine.failure { throw failure }
  }

  static var threadSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

final class ScaleClock: EngineClock {
  private(set) var now = MonotonicTime(milliseconds: 1_000)
  private(set) var wallMilliseconds: Int64 = 1_800_000_000_000
  func advance(_ milliseconds: UInt64) {
    now = now.advanced(byMilliseconds: milliseconds)
    wallMilliseconds += Int64(milliseconds)
  }
}

/// Connections that end in this process, or wherever what is set here leads.
final class ScaleLinks: EngineLinks {
  var deliver: (([UInt8], SessionID) -> Void)?
  var authenticated: ((SessionID) -> Void)?
  var ended: ((SessionID) -> Void)?
  private(set) var byteCount = 0

  func send(_ frame: [UInt8], on session: SessionID) -> LinkSending {
    byteCount += frame.count
    deliver?(frame, session)
    return deliver == nil ? .closed : .queued(isLong: false)
  }

  func close(_ session: SessionID, afterFlush: Bool) { ended?(session) }
  func authenticate(_ session: SessionID) { authenticated?(session) }
  func dial(_ address: PeerAddress, tag: UInt64) {}
  func release(_ session: SessionID, byteCount: Int) {}
  func queuedByteCount(of session: SessionID) -> Int { 0 }
  func queueByteMark(of session: SessionID) -> Int { .max }
  func holdUp(_ session: SessionID) {}
  func letGo(_ session: SessionID) {}
  func adopt(_ authority: Authority) {}
  func passage(of session: SessionID) -> Passage? { .everything }
  func keepShort(_ session: SessionID) {}
  func closeStranded() {}
  func text(of address: SocketAddress) -> String { address.description }
  var frameOverheadByteCount: Int { 4 }
}

/// Engines of one fleet, each as another device, and connections between the first and all others. Those that write nothing but
/// what all would write alike stand on one store.
final class ScaleMeeting {
  let clock = ScaleClock()
  let measured: ScaleEngine
  private var peers: [ScaleEngine] = []
  private var wire: [(to: ScaleEngine, frame: [UInt8], session: SessionID)] = []
  private let store: Store
  private let fleet: ScaleFleet

  init(_ fleet: ScaleFleet) throws {
    self.fleet = fleet
    store = try Store.open(directory: fleet.directory, fleet: fleet.fleet, device: DeviceID(fleet.deviceKey.publicKey))
    measured = try ScaleEngine(store, fleet: fleet.fleet, key: fleet.deviceKey, clock: clock)
    measured.links.deliver = { [unowned self] frame, session in
      wire.append((peers[Int(session.rawValue)], frame, session))
    }
  }

  /// - Parameter news: what the peer alone has: it stands on a copy of the store then.
  func connect(as key: SigningKey, with news: [ScaleRun] = []) throws {
    let peer = try ScaleEngine(try news.isEmpty ? store : copy(), fleet: fleet.fleet, key: key, clock: clock)
    if !news.isEmpty { try peer.take(news) }
    peer.beginAccount()
    let session = SessionID(rawValue: UInt64(peers.count))
    peers.append(peer)
    peer.links.deliver = { [unowned self] frame, session in wire.append((measured, frame, session)) }
    func link(isDialer: Bool, _ key: SigningKey) -> EngineEvent {
      .opened(
        OpenedLink(
          session: session, dialTag: isDialer ? .max : nil,
          remote: SocketAddress(.ipv4(0x7f00_0001), port: UInt16(4_000 + peers.count)), peerKey: key.publicKey,
          exporter: .zero))
    }
    peer.turn { [link(isDialer: true, fleet.deviceKey)] }
    measured.turn { [link(isDialer: false, key)] }
    try run()
  }

  private func copy() throws -> Store {
    let directory = fleet.directory + "-copy"
    try BenchScratch.makeDirectory(directory)
    _ = try store.carryOverAll()
    let file = "/" + Store.fileName
    try BenchScratch.copy(fleet.directory + file, to: directory + file)
    return try Store.open(directory: directory, fleet: fleet.fleet, device: DeviceID(fleet.deviceKey.publicKey))
  }

  /// Until nothing is under way any more.
  func run() throws {
    var next = 0
    while next < wire.count {
      let arrival = wire[next]
      next += 1
      try arrival.to.turn { [try arrival.to.event(arrival.frame, on: arrival.session)] }
    }
    wire = []
  }

  func advance(_ milliseconds: UInt64, step: UInt64 = 250) throws {
    for _ in 0..<(milliseconds / step) {
      clock.advance(step)
      for engine in [measured] + peers where engine.engine.nextWake <= clock.now { engine.turn { [] } }
      try run()
    }
  }

  /// Bytes that all of them have said.
  var saidBytes: Int { ([measured] + peers).reduce(0) { $0 + $1.links.byteCount } }
  /// Processor time of all of them.
  var seconds: Double { ([measured] + peers).reduce(0) { $0 + $1.seconds } }
  var liveSessions: Int { measured.engine.state.mesh.sessions.values.count { $0.phase == .live } }
}
