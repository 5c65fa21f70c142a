import Replication
import Wire

/// One life of one node: the shell around the sync core, as the real node has it, with a model disk and a virtual network.
///
/// Each turn takes what waits, lets the mesh judge it, commits once, and then tells what became durable. Used from the
/// one thread of its world alone.
final class NodeProcess {
  unowned let world: World
  let node: SimulatedNode
  let life: Int

  var mesh: Mesh
  var own: OwnReplica
  var pending = PendingCommit()
  /// What waits for the commit of what it may tell of.
  var outbox: [Outgoing] = []
  /// Within a transaction.
  var isWriting = false
  /// A chain has forked, or its branches moved: own work may have been put aside.
  var forksToSettle = false
  var inbox: [NodeJob] = []
  var links: [SessionID: Link] = [:]
  var random: SimulationRandom
  /// The statements that the thread which decodes frames knows.
  var intakeAuthority: Authority
  /// Crashed, or stopped: what is on the stack still does nothing any more.
  var isDead = false
  /// When it crashes within its next turn.
  var crashPoint: CrashPoint?
  var lastTick: MonotonicTime
  /// When the next turn is due; `max`: none is planned.
  var plannedTurn = UInt64.max
  var busyUntil: UInt64 = 0

  struct Link {
    let connection: UInt64
    let side: Int
    let remoteSlot: Int
    var isAuthenticated = false
  }

  enum Outgoing {
    case message(SessionID, Message)
    case close(SessionID)
  }

  enum CrashPoint { case beforeCommit, afterCommit }

  init(world: World, node: SimulatedNode, life: Int, mesh: Mesh, own: OwnReplica, random: SimulationRandom) {
    (self.world, self.node, self.life) = (world, node, life)
    (self.mesh, self.own, self.random) = (mesh, own, random)
    intakeAuthority = mesh.authority
    lastTick = MonotonicTime(milliseconds: world.clock)
  }

  var now: MonotonicTime { MonotonicTime(milliseconds: world.clock) }
  var wall: Int64 { world.wall(of: node) }
  var fleet: FleetID { world.fleet.id }

  func put(_ job: NodeJob) {
    inbox.append(job)
    world.planTurn(self, at: world.clock + random.between(0...2))
  }

  func turn() {
    let jobs = inbox
    inbox = []
    for job in jobs {
      handle(job)
      if pending.isFull { commit() }
      if isDead { return }
    }
    tickIfDue()
    commit()
    reissueLost()
    answerLoads()
    guard !isDead else { return }
    world.oracle.turnEnded(self)
    world.planTurn(self, at: wakeTime)
  }

  private var wakeTime: UInt64 {
    let tick = lastTick.advanced(byMilliseconds: Mesh.tickMilliseconds)
    return max(min(tick, mesh.nextRelay ?? tick).milliseconds, world.clock + 1)
  }

  private func handle(_ job: NodeJob) {
    switch job {
    case .opened(let id, let isDialer, let peer, let exporter):
      guard links[id] != nil else { return }
      deliver(.opened(id, isDialer: isDialer, peer: peer, exporter: exporter))
    case .message(let id, let message): deliver(.received(id, message))
    case .runs(let id, let batch, let runs): receive(batch, runs, from: id)
    case .violation(let id, let reason):
      world.note("violation of the protocol seen by \(node.slot): \(reason)")
      deliver(.violated(id, reason))
    case .closed(let id):
      guard links.removeValue(forKey: id) != nil else { return }
      deliver(.closed(id))
    case .drained(let id):
      guard links[id] != nil else { return }
      deliver(.writable(id))
    case .write(let job):
      if world.has(.acknowledgeBeforeCommit) { world.oracle.acknowledgeEarly(job, by: self) }
      beginWriting(job.partition)
      pending.writes.append(job)
    case .subscribe(let pattern): subscribe(pattern)
    case .unsubscribe(let pattern): unsubscribe(pattern)
    }
  }

  private func tickIfDue() {
    let relayIsDue = mesh.nextRelay.map { $0 <= now } ?? false
    guard relayIsDue || now.millisecondsSince(lastTick) >= Mesh.tickMilliseconds else { return }
    lastTick = now
    deliver(.tick)
    if world.clock >= node.nextMark { saveSidecar() }
  }

  /// Hands an event to the mesh and carries out what it wants.
  func deliver(_ event: Mesh.Event) {
    guard !isDead else { return }
    mesh.wallMilliseconds = wall
    mesh.ownReplica = own.replica?.id
    mesh.ownCommits = own.commits
    for directive in mesh.handle(event, now: now, random: &random) { perform(directive) }
  }

  /// Notes beside the database how far it has come. What is noted is committed already.
  func saveSidecar() {
    // What is there is the evidence for the renewal that is due.
    guard own.replica == nil || own.causes.isEmpty else { return }
    node.disk.reached = own.commits
    node.nextMark = world.clock + 60_000
  }

  /// A reason that came up while the node runs must outlast a stop before the next write.
  func demandRenewal(_ cause: RenewalCause) {
    guard own.causes.insert(cause).inserted, own.replica != nil else { return }
    node.disk.reached = nil
  }

  func die() { isDead = true }
}

/// A place in the simulated world: a device, its directory, its clock, and the process that runs there, if any.
final class SimulatedNode {
  let slot: Int
  let key: FakeKey
  var disk = ModelDisk()
  var process: NodeProcess?
  var join: JoinClient?
  /// Counts processes, so that events for an earlier one are told apart.
  var life = 0
  /// Counts the times that its store was replaced by something older.
  var lineage = 0
  var clockOffset: Int64 = 0
  var nextMark: UInt64 = 0
  /// Until then every commit fails, or takes long.
  var diskFullUntil: UInt64 = 0
  var slowDiskUntil: UInt64 = 0
  /// Copies of the directory at earlier times, to come back.
  var copies: [ModelDisk] = []
  /// It is meant to run: a crashed one comes back.
  var isMember = false

  init(slot: Int, key: FakeKey) { (self.slot, self.key) = (slot, key) }
}
