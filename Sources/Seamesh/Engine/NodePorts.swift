import Engine
import Identity
import Replication
import Storage
import Transport
import Wire

/// What the engine thread is handed beside the engine's own events.
enum NodeJob: Sendable {
  case event(EngineEvent)
  case stop

  enum Lane: Sendable {
    /// Somebody waits for the answer: it goes before what waits in the other lane.
    case users
    case peers
  }

  var lane: Lane {
    switch self {
    case .event(let event): event.isAsked ? .users : .peers
    case .stop: .users
    }
  }

  var event: EngineEvent? { if case .event(let event) = self { event } else { nil } }
}

final class SystemClock: EngineClock {
  var now: MonotonicTime { ElapsedClock.now() }
  var wallMilliseconds: Int64 { WallClock.milliseconds }
}

/// The transport and the decoding of frames, as the engine sees them.
final class NodeLinks: EngineLinks {
  let transport: SecureTransport
  private let intake: FrameIntake
  private let keeper: LinkKeeper
  /// Nil but in tests of several builds.
  var news: NewsTeller?

  init(_ transport: SecureTransport, _ intake: FrameIntake, _ keeper: LinkKeeper) {
    (self.transport, self.intake, self.keeper) = (transport, intake, keeper)
  }

  func send(_ frame: [UInt8], on session: SessionID) -> LinkSending {
    let connection = ConnectionID(session)
    for said in news?.due(on: session) ?? [] { _ = transport.send(connection, said) }
    switch transport.send(connection, frame) {
    case .queued: return .queued(isLong: transport.isQueueLong(of: connection))
    case .full: return .full
    case .closed: return .closed
    }
  }

  func close(_ session: SessionID, afterFlush: Bool) {
    transport.close(ConnectionID(session), afterFlush: afterFlush)
  }

  func authenticate(_ session: SessionID) { transport.authenticate(ConnectionID(session)) }
  func dial(_ address: PeerAddress, tag: UInt64) { transport.dial(address, tag: tag) }

  func release(_ session: SessionID, byteCount: Int) {
    let connection = ConnectionID(session)
    if intake.release(connection, byteCount) { transport.resumeReading(connection) }
  }

  func queuedByteCount(of session: SessionID) -> Int { transport.queuedBytes(of: ConnectionID(session)) ?? 0 }
  func holdUp(_ session: SessionID) { intake.holdUp(ConnectionID(session)) }

  func letGo(_ session: SessionID) {
    let connection = ConnectionID(session)
    if intake.letGo(connection) { transport.resumeReading(connection) }
  }

  func adopt(_ authority: Authority) { intake.adopt(authority) }
  func passage(of session: SessionID) -> Passage? { keeper.passage(of: session) }
  func queueByteMark(of session: SessionID) -> Int { transport.queueByteMark(of: ConnectionID(session)) ?? .max }
  func keepShort(_ session: SessionID) { transport.keepShort(ConnectionID(session)) }
  func closeStranded() { transport.closeStranded() }
  func text(of address: SocketAddress) -> String { address.description }
  var frameOverheadByteCount: Int { SecureTransport.frameLengthByteCount }
}

/// Tells the feed of each commit, and how far the log has come with it.
final class FeedTeller: CommitListener {
  private let feed: CommitFeed
  private let board: EngineBoard
  private let store: Store

  init(_ feed: CommitFeed, _ board: EngineBoard, _ store: Store) {
    (self.feed, self.board, self.store) = (feed, board, store)
    feed.begin(at: store.end)
  }

  func committed(_ record: CommitRecord) {
    board.note(store.totals)
    feed.committed(record, at: store.end)
  }
}

/// The file beside the store.
final class SidecarMark: ReplicaMark {
  private let directory: DataDirectory
  private let store: Store
  /// The write-ahead log is as the last start left it; after the first look it is this one's.
  private var isAtStart = true
  /// The database alone holds everything, and the log is about to go.
  var isLogClosed = false

  init(_ directory: DataDirectory, _ store: Store) { (self.directory, self.store) = (directory, store) }

  func causes(_ evidence: RenewalEvidence.Store) throws -> [RenewalCause] {
    var evidence = evidence
    evidence.starts = try store.integer(.starts) ?? 0
    evidence.wasLogEmpty = isAtStart && store.wasLogEmpty
    isAtStart = false
    let host = try HostFacts.current(database: store.database.path)
    return try ReplicaSidecar.load(from: directory).renewalCauses(store: evidence, host: host)
  }

  /// Before the log is noted as open there is something in it.
  func save(store id: UUIDValue, replica: Incarnation?, resting: [RestingReplica], reached: UInt64) throws {
    if !isLogClosed { try store.noteStart() }
    var sidecar = ReplicaSidecar(
      store: id, replica: replica.map(ReplicaSidecar.Incarnation.init), reached: reached,
      host: try HostFacts.current(database: store.database.path))
    sidecar.resting = resting.map {
      ReplicaSidecar.Resting(incarnation: ReplicaSidecar.Incarnation($0.incarnation), ends: $0.ends)
    }
    sidecar.log = store.isStartNoted && !isLogClosed ? .open : .closed
    sidecar.starts = try store.integer(.starts) ?? 0
    try sidecar.save(to: directory)
  }

  func resting(beside replica: Incarnation) throws -> [RestingReplica] {
    guard case .present(let sidecar) = try ReplicaSidecar.load(from: directory),
      sidecar.replica == ReplicaSidecar.Incarnation(replica)
    else { return [] }
    return sidecar.resting.map { resting in
      let (id, nonce) = (resting.incarnation.id, resting.incarnation.nonce)
      return RestingReplica(incarnation: Incarnation(id: id, nonce: nonce), ends: resting.ends)
    }
  }

  func discard() throws { try PrivateFile.remove(directory.file(ReplicaSidecar.fileName)) }
}

extension ReplicaSidecar.Incarnation {
  fileprivate init(_ incarnation: Incarnation) { self.init(id: incarnation.id, nonce: incarnation.nonce) }
}

extension NodeLog: EngineJournal {
  package func note(_ level: LogLevel, _ message: String, _ facts: KeyValuePairs<String, JournalFact>) {
    guard level >= self.level else { return }
    write(level, message, facts.map { ($0.key, $0.value.text) })
  }
}

extension JournalFact {
  fileprivate var text: String {
    switch self {
    case .text(let text): text
    case .replica(let replica): replica.text
    case .device(let device): device.shortText
    }
  }
}

extension EngineIdentity {
  init(_ files: NodeFiles, formats: KnownFormats = .all) {
    let (fleet, key) = (files.fleet, files.deviceKey)
    let verifier = StatementVerifier(fleet: fleet)
    let cryptography = Cryptography(
      hash: SHA256.hash, verify: Ed25519.verify, sign: key.sign, authenticationCode: HMAC.sha256,
      statement: verifier.read, checkedStatement: verifier.readVerified,
      holdingsBytes: HoldingsCodec.signedBytes, formats: formats)
    self.init(fleet: fleet, device: key.publicKey, cryptography: cryptography) { files.root }
  }
}
