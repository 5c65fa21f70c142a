import Engine
import Replication
import Wire

/// One life of one node: the shipped engine on the shipped store, with a simulated world around both.
final class NodeProcess {
  /// Which owns this process: a reference of its own would keep both for ever.
  unowned let node: SimulatedNode
  let life: Int
  let engine: NodeEngine
  let store: ObservedStore
  let ports: NodePorts
  /// Nil where the node does not forward.
  var relay: RelayProcess?
  private var inbox: [EngineEvent] = []
  private let answers = AnswerBook()
  private let intents = IntentBook()
  /// Of each transaction of the running turn.
  private var keptIntents: [[KeptIntent]] = []
  /// When the next turn is due; `max`: none is planned.
  var plannedTurn = UInt64.max
  var busyUntil: UInt64 = 0
  /// What counts of each partition, as far as those who follow commits were told.
  var told: [PartitionID: VersionVector] = [:]
  /// Jobs that the engine was not handed yet, and those that it has not answered, with the time when it was handed them.
  private var askedJobs: [Int] = []
  private(set) var takenJobs: [Int: UInt64] = [:]
  /// When the first write went on that had to wait for something.
  var heldUntil: UInt64?
  /// Before this moment the running turn could not begin: the disk was busy.
  private(set) var turnDue: UInt64 = 0
  /// Turns on end for which nothing had come, and when the first was.
  private(set) var idleTurns = 0
  private(set) var idleSince: UInt64 = 0
  /// What the node's statements said when the turn began, and behind each of its commits: a message may take a right away, and
  /// the next one give it back.
  private var rights: [JudgedRights] = []
  /// The last job of each partition that was written.
  var lastWritten: [PartitionName: Int] = [:]

  init(_ node: SimulatedNode, in world: World, life: Int) throws {
    (self.node, self.life) = (node, life)
    ports = NodePorts(world: world, node: node, life: life)
    let base = try world.openStore(of: node)
    store = ObservedStore(world.options.plantedBug.map { SpoiledStore(base, $0) } ?? base)
    var random = world.random.fork()
    let drawn = random.uuid()
    var options = EngineOptions(instance: UUIDValue(high: drawn.high, low: drawn.low))
    options.mesh = world.plan.mesh
    // It keeps to nothing.
    if node.isFlooder || node.flood != nil { options.mesh.takes = .none }
    if node.flood != nil { options.mesh.statementLimit = .max }
    options.listenPort = World.port
    options.limits = world.plan.limits
    options.leastReadByteCount = world.plan.leastReadByteCount
    options.changesBetweenMarks = world.plan.changesBetweenMarks
    let (key, fleet) = (node.key, world.fleet)
    let identity = EngineIdentity(
      fleet: fleet.id, device: key.publicKey,
      cryptography: FakeCryptography.cryptography(of: key, world.formats(of: node)))
    engine = try NodeEngine(
      identity, options,
      EnginePorts(
        store: store, mark: ports, clock: ports, links: ports, journal: ports, feed: ports, random: random))
    ports.adopt(engine.state.mesh.authority)
    // What a transaction that failed had asked for is forgotten.
    store.began = { [intents] in _ = intents.take() }
    store.committed = { [unowned self, unowned world] in
      world.oracle.committed($0, by: self)
      noteRights()
      keepIntents()
    }
    store.refuse = { [unowned node, unowned world] in try world.refuseWriting(at: node) }
  }

  var mesh: Mesh { engine.state.mesh }
  var isDead: Bool { ports.isDead }

  func put(_ event: EngineEvent) {
    guard !isDead else { return }
    inbox.append(event)
    let world = ports.world
    world.planTurn(self, at: world.clock + world.random.between(0...2))
  }

  /// What the thread of the connections does with the bytes.
  func received(_ frame: [UInt8], on session: SessionID) {
    let decoder = FrameDecoder(fleet: ports.world.fleet.id, engine.state.identity.cryptography)
    do {
      switch try decoder.decode(frame, under: { ports.authority }) {
      case .nothing: break
      case .message(let message): take(.message(session, message, byteCount: frame.count), frame.count, on: session)
      case .runs(let batch, let runs):
        take(.runs(session, batch, runs, byteCount: frame.count), frame.count, on: session)
      }
    } catch {
      put(.violation(session, BrokenRun.rule(of: error), at: BrokenRun.place(of: error)))
    }
  }

  private func take(_ event: EngineEvent, _ byteCount: Int, on session: SessionID) {
    ports.taken(byteCount, on: session)
    put(event)
  }

  func turn() {
    let world = ports.world
    let events = inbox.filter { !$0.isAsked }
    var asked = inbox.filter(\.isAsked)
    inbox = []
    for job in askedJobs { takenJobs[job] = world.clock }
    (askedJobs, turnDue, rights) = ([], busyUntil, [world.oracle.known.rights(of: node)])
    let count = events.count + asked.count
    countIdle(hasWork: count > 0 || engine.hasLoads)
    world.report.events += count + 1
    // What users ask comes in the midst of it.
    var before = asked.isEmpty ? 0 : world.random.between(0...events.count)
    engine.turn(events) {
      defer { before = before == 0 ? 0 : before - 1 }
      guard before == 0 else { return [] }
      defer { asked = [] }
      return asked
    }
    let answered = answers.take()
    for (job, _) in answered {
      guard let takenAt = takenJobs.removeValue(forKey: job.number) else { continue }
      world.oracle.conduct.checkPatience(with: job.number, takenAt: takenAt, by: self)
      world.oracle.conduct.checkTrust(in: job.number, takenAt: takenAt, by: self)
    }
    for (job, receipt) in answered { world.oracle.answered(job, receipt, by: self) }
    let written = answered.filter { if case .success = $0.result { true } else { false } }.map(\.job.number)
    for transaction in keptIntents { world.oracle.check(transaction, of: Set(written), by: self) }
    keptIntents = []
    busyUntil = world.clock + node.directory.medium.takeDelay()
    if store.hasLostPower || engine.failure != nil { return world.crash(node) }
    world.oracle.turnEnded(self)
    world.planTurn(self, at: max(engine.nextWake.milliseconds, world.clock + 1))
  }

  /// Counted anew each second.
  private func countIdle(hasWork: Bool) {
    let now = ports.world.clock
    if hasWork || now >= idleSince + 1_000 { (idleTurns, idleSince) = (0, now) }
    if !hasWork { idleTurns += 1 }
  }

  private func noteRights() {
    let now = ports.world.oracle.known.rights(of: node)
    if rights.last !== now { rights.append(now) }
  }

  /// All through the turn that is over.
  func mightWrite(_ name: PartitionName) -> Bool {
    rights.allSatisfy { $0.level(of: node.key.publicKey, in: name.text) >= .write }
  }

  func write(_ job: WriteJob) {
    let answers = answers
    askedJobs.append(job.number)
    let edits = job.edits.map { WatchedEdit(edit: $0, job: job, book: intents) }
    put(
      .write(
        LocalWriteJob(partition: job.partition, edits: edits) { result in
          answers.put(job, result.mapError { RefusedWrite(error: $0) })
        }))
  }

  /// One change of somebody who read elsewhere.
  func write(
    _ edit: any DocumentEdit, in partition: PartitionName, reading: EarlierReading,
    answer: @escaping @Sendable (Result<ChangeReceipt, any Error>) -> Void
  ) {
    let merged = MergedEdit(edit: edit, partition: partition, book: intents)
    put(.write(LocalWriteJob(partition: partition, edits: [merged], reading: reading, answer: answer)))
  }

  /// The next transaction may bring others' changes: how documents stand is looked at behind each.
  private func keepIntents() {
    let made = intents.take().map { intent in
      let partition = ports.world.fleet.partition(intent.partition)
      let stored = try? store.base.document(intent.key, in: partition)
      return KeptIntent(intent: intent, state: stored.flatMap { try? DocumentState(encoded: $0.state) })
    }
    if !made.isEmpty { keptIntents.append(made) }
  }

  func subscribe(_ pattern: Text, isWanted: Bool) {
    put(.subscription(SubscriptionJob(pattern: pattern, isWanted: isWanted) { _ in }))
  }

  /// Without a word; what is on the stack still does nothing any more.
  func die() { ports.isDead = true }
}

/// One change that somebody asks for.
struct WriteJob: Sendable {
  let number: Int
  let partition: PartitionName
  let edits: [AuthoredEdit]
}

struct RefusedWrite: Error {
  let error: any Error
  var reason: String { "\(error)" }
}
