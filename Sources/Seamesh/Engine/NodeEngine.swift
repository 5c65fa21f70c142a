import Identity
import Replication
import Storage
import Transport
import Wire

/// The one thread that owns everything that changes: the store's writer, the mesh, the dial policy.
///
/// Each turn takes what waits in the inbox, lets the mesh judge it, commits once, and then tells what became durable.
/// Not thread-safe by design: other threads hand in jobs.
final class NodeEngine {
  let files: NodeFiles
  let configuration: NodeConfiguration
  let store: Store
  let inbox: Inbox<EngineJob>
  let intake: FrameIntake
  let transport: SecureTransport
  let watchers: WatchHub
  let log: NodeLog

  var mesh: Mesh
  var dialPolicy: DialPolicy
  var own: OwnReplica
  var random = SystemRandomNumberGenerator()
  var pending = PendingCommit()
  /// What waits for the commit of what it may tell of.
  var outbox: [Outgoing] = []
  /// Within a transaction.
  var isWriting = false
  var links = LinkTable()
  var subscriptions: Set<Text>
  /// Set when the store failed for good (K3): nothing is acknowledged any more.
  var failure: NodeError?
  var isStopping = false
  /// A fork was learned since the last look at what it put aside.
  var forksToSettle = true
  /// It could not be written; tried again once another commit has gone well.
  var reissueIsOverdue = false
  var discovery: Discovery?
  var discoveryState = DiscoveryState()
  var advertisedAt = MonotonicTime(milliseconds: 0)
  /// Devices that asked to join with another code, since the start.
  var refusedJoins = 0
  var lastTick = MonotonicTime(milliseconds: 0)
  var lastMaintenance = MonotonicTime(milliseconds: 0)
  let startedAt: MonotonicTime

  init(_ parts: EngineParts) {
    (files, configuration, store) = (parts.files, parts.configuration, parts.store)
    (inbox, intake, transport) = (parts.inbox, parts.intake, parts.transport)
    (watchers, log) = (parts.watchers, parts.log)
    (mesh, own, subscriptions) = (parts.mesh, parts.own, parts.subscriptions)
    dialPolicy = DialPolicy(thisDevice: parts.files.device)
    startedAt = NodeEngine.now
  }

  static var now: MonotonicTime { MonotonicTime(milliseconds: ElapsedClock.now()) }

  /// Ends after ``EngineJob/stop``.
  func run() {
    begin()
    while !isStopping { turn() }
    finish()
  }

  private func turn() {
    for job in inbox.take(timeoutMilliseconds: patience) {
      handle(job)
      if pending.isFull { commit() }
    }
    tickIfDue()
    commit()
    reissueLost()
    answerLoads()
    log.flush()
  }

  /// How long nothing has to be done if nothing comes.
  private var patience: UInt64 {
    let now = NodeEngine.now
    var wake = lastTick.advanced(byMilliseconds: Mesh.tickMilliseconds)
    if let relay = mesh.nextRelay { wake = min(wake, relay) }
    if let dial = dialPolicy.nextWake() { wake = min(wake, MonotonicTime(milliseconds: dial)) }
    return wake.millisecondsSince(now)
  }

  private func handle(_ job: EngineJob) {
    switch job {
    case .opened(let connection): opened(connection)
    case .message(let id, let message, let byteCount):
      // What was judged without them is stored before; they and what they move then stand in one transaction.
      if case .statements = message { commit() }
      deliver(.received(SessionID(rawValue: id.number), message))
      release(id, byteCount)
    case .runs(let id, let batch, let runs, let byteCount):
      receive(batch, runs, from: id)
      release(id, byteCount)
    case .violation(let id, let reason): violated(id, reason)
    case .closed(let id, let reason): closed(id, reason)
    case .drained(let id): drained(id)
    case .dialFailed(let tag, let reason): dialFailed(tag, reason)
    case .found(let instance, let addresses, let tagMatches): found(instance, addresses, tagMatches)
    case .lost(let instance): dial(dialPolicy.handle(.lost(instance: instance), now: clock, using: &random))
    case .networkChanged:
      transport.closeStranded()
      dial(dialPolicy.handle(.networkChanged, now: clock, using: &random))
    case .write(let job):
      beginWriting(job.partition)
      pending.writes.append(job)
    case .call(let body):
      // What the mesh has taken in must be on disk before anybody is told of it.
      commit()
      body(self)
    case .stop: isStopping = true
    }
  }

  var clock: UInt64 { ElapsedClock.now() }

  private func tickIfDue() {
    let now = NodeEngine.now
    let relayIsDue = mesh.nextRelay.map { $0 <= now } ?? false
    guard relayIsDue || now.millisecondsSince(lastTick) >= Mesh.tickMilliseconds else {
      return dial(dialPolicy.handle(.tick, now: clock, using: &random))
    }
    lastTick = now
    deliver(.tick)
    renewAnswers()
    dial(dialPolicy.handle(.tick, now: clock, using: &random))
    maintain(now)
    refreshAdvertisement(now)
  }

  /// Hands an event to the mesh and carries out what it wants.
  func deliver(_ event: Mesh.Event) {
    mesh.wallMilliseconds = WallClock.milliseconds
    mesh.ownReplica = own.replica?.id
    mesh.ownCommits = own.commits
    let directives = mesh.handle(event, now: NodeEngine.now, random: &random)
    for directive in directives { perform(directive) }
    if case .received(let id, _) = event { noteAnswers(directives, to: id) }
  }
}

/// What ``NodeOpening`` put together for the engine.
struct EngineParts {
  let files: NodeFiles
  let configuration: NodeConfiguration
  let store: Store
  let inbox: Inbox<EngineJob>
  let intake: FrameIntake
  let transport: SecureTransport
  let watchers: WatchHub
  let log: NodeLog
  let mesh: Mesh
  let own: OwnReplica
  let subscriptions: Set<Text>
}

/// What the next commit will write.
struct PendingCommit {
  struct Applied {
    let partition: PartitionID
    let source: SessionID
    let runs: [DeliveredRun]
  }

  var statements: [Statement] = []
  var partitions: [(PartitionID, PartitionName)] = []
  var applied: [Applied] = []
  var rebuilds: [(PartitionID, LogChange)] = []
  var writes: [LocalWriteJob] = []
  var loads: [(SessionID, PartitionID, VersionVector, Int)] = []
  var pieces: [PayloadPiece] = []
  /// Contacts to remember: device, and where it can be dialled.
  var contacts: [(DeviceID, String?)] = []
  var changeCount = 0
  var byteCount = 0

  /// One transaction holds this much at the most: large enough that random ids sort well, small enough for memory.
  static let changeLimit = 32_768
  static let byteLimit = 24 * 1024 * 1024

  var isEmpty: Bool {
    statements.isEmpty && partitions.isEmpty && applied.isEmpty && rebuilds.isEmpty && writes.isEmpty
      && contacts.isEmpty && pieces.isEmpty
  }
  var isFull: Bool {
    changeCount >= PendingCommit.changeLimit || byteCount >= PendingCommit.byteLimit
      || writes.count >= PendingCommit.writeLimit
  }
  static let writeLimit = 1_024
}
