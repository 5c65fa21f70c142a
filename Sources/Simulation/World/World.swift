import Engine
import Replication
import SimulatedDisk

/// Everything of one run: nodes, network, clock, people, faults, and the checks beside them. One thread.
final class World {
  enum Event {
    case turn(slot: Int, life: Int)
    case frame(connection: UInt64, side: Int)
    /// The end on this side reads on, after a pause.
    case readOn(connection: UInt64, side: Int)
    /// The end on this side learns that the connection is there, or gone.
    case opened(connection: UInt64, side: Int)
    case ended(connection: UInt64, side: Int)
    case dialled(slot: Int, life: Int, to: SocketAddress, tag: UInt64)
    case dialFailed(slot: Int, life: Int, tag: UInt64)
    /// Discovery looks around.
    case sight(slot: Int, life: Int)
    case join(slot: Int)
    case restart(slot: Int, life: Int)
    case act
    case actInRoom
    /// Some node's links let something else pass.
    case linkMoved
    /// Somebody signs more than any device may.
    case floodOn
    /// Somebody writes at this node.
    case write(slot: Int)
    case fault
    case reunite
    case check
    /// Somebody writes when all was quiet.
    case disturb(slot: Int, PartitionName)
    /// The root says something there when all was quiet.
    case stateInQuiet(slot: Int)
    /// An admin ends the device there when all was quiet, and all reach it again.
    case endInQuiet(slot: Int)
    case reuniteInQuiet
    /// A forwarder does the next thing.
    case relay(slot: Int, life: Int)
    case shore
  }

  let options: SimulationOptions
  private let broken: BrokenInvariants
  let plan: Plan
  var fleet: Fleet
  var random: SimulationRandom
  var clock: UInt64 = 0
  var queue = EventQueue<Event>()
  var nodes: [SimulatedNode] = []
  var connections: [UInt64: Connection] = [:]
  var nextConnection: UInt64 = 1
  /// Pairs of slots that do not reach one another now, the lower first.
  var severed: Set<SlotPair> = []
  var isTroubled = true
  var nextJob = 0
  var furtherMemberships = 0
  var report: SimulationReport
  var dialTargets: [[Int]]
  var agreedSince: UInt64?
  /// Since when all are to agree: the faults ended then, or the last words were written.
  var quietSince: UInt64 = 0
  /// All are connected that are to agree: what is new reaches everyone without waiting for a comparison.
  var isPrompt = false
  /// When the faults ended.
  var calmSince: UInt64 = 0
  /// All that may reach one another have been connected since then.
  var connectedSince: UInt64 = 0
  var disturbances = 0
  var hasWished = false
  /// Jobs that everyone writes when all is quiet.
  var lastWords: Set<Int> = []
  /// Who lacked then what somebody else had heard.
  var lackedStatements: Set<Int> = []
  /// When everybody asked last what others hold; nil before all have agreed.
  var askedAt: UInt64?
  /// Nil in worlds without rooms.
  var roomLife: RoomLife?
  /// Nil in worlds whose links let everything pass.
  var linkLife: LinkLife?
  /// Nil in worlds without relays.
  private(set) var shore: Shore?
  private(set) lazy var oracle = Oracle(self)

  /// The wall clock that all nodes would show if nothing were wrong with any.
  static let epoch: Int64 = 1_790_000_000_000
  /// An endless run is one that does not converge.
  static let eventLimit = 400_000

  struct SlotPair: Hashable {
    let low: Int
    let high: Int
    init(_ a: Int, _ b: Int) { (low, high) = (min(a, b), max(a, b)) }
  }

  init(seed: UInt64, _ options: SimulationOptions, _ broken: BrokenInvariants = BrokenInvariants()) {
    self.broken = broken
    var random = SimulationRandom(seed: SimulationRandom.mix(seed &+ 0x5ea3_e54d))
    (self.options, report) = (options, SimulationReport(seed: seed))
    plan = Plan(options, seed: seed, &random)
    report.usesDisk = plan.usesDisk
    var linkLife = LinkLife(seed: seed)
    self.linkLife = linkLife.random.chance(LinkLife.percent) ? linkLife : nil
    dialTargets = plan.dialTargets
    let usesDisk = plan.usesDisk
    var roomLife = RoomLife(seed: seed)
    self.roomLife = options.hasRooms ?? roomLife.random.chance(RoomLife.percent) ? roomLife : nil
    let users = self.roomLife == nil ? 2 : 3
    let nodes = (0..<plan.nodeCount).map { slot in
      let id = random.uuid()
      let medium: NodeMedium =
        usesDisk
        ? .disk(SimulatedDisk()) : .memory(MemoryStore(MemoryImage(storeID: UUIDValue(high: id.high, low: id.low))))
      return SimulatedNode(
        slot: slot, key: FakeKey(&random), user: Text("u\(slot % users)"), NodeDirectory(medium: medium, mark: nil))
    }
    fleet = Fleet(&random, plan.rights, devices: nodes.map(\.key.publicKey), hasRooms: self.roomLife != nil)
    self.nodes = nodes
    if plan.faults.contains(.liar), plan.nodeCount > 2 {
      let liar = nodes[plan.nodeCount - 1]
      liar.liar = Liar(liar.key, random.fork())
      report.faults[.liar] = 1
    }
    if !plan.flooded.isEmpty { nodes[plan.nodeCount - 1].isFlooder = true }
    if let flood = plan.flood, let last = nodes.last { last.flood = Flood(flood, last.key) }
    if options.builds != nil { nodes.last?.isEarlierBuild = true }
    self.random = random
    openShore(seed)
  }

  private func openShore(_ seed: UInt64) {
    var random = SimulationRandom(seed: SimulationRandom.mix(seed &+ 0x7368_6f72))
    let slots = nodes.filter { $0.isHonest && !$0.isFlooder }.map(\.slot)
    guard let plan = ShorePlan(options, slots: slots, usesDisk: plan.usesDisk, &random) else { return }
    shore = Shore(self, plan, random)
  }

  func run() -> SimulationReport {
    // Who signs what it likes has two histories as soon as it likes.
    for node in nodes where node.liar != nil { oracle.known.expectForks(of: node) }
    found()
    queue.put(.act, at: 50)
    if roomLife != nil { queue.put(.actInRoom, at: 100) }
    if linkLife != nil { queue.put(.linkMoved, at: LinkLife.interval.lowerBound) }
    if plan.flood != nil { queue.put(.floodOn, at: FloodPlan.interval.lowerBound) }
    queue.put(.fault, at: plan.faultInterval)
    if shore != nil { queue.put(.shore, at: 200) }
    while let (time, event) = queue.take(), report.events < World.eventLimit, report.violations.isEmpty {
      clock = time
      handle(event)
      for what in broken.take() { violate("assert", what) }
      if isTroubled, clock >= options.troubledMilliseconds { calm() }
      if let agreedSince, clock >= agreedSince + World.settlingMilliseconds, !goesOn() { break }
    }
    if report.events >= World.eventLimit { violate("I14", "after \(report.events) events there is no end of it") }
    if report.violations.isEmpty { oracle.finish() }
    report.virtualMilliseconds = clock
    report.changes = oracle.changeCount
    return report
  }

  private func handle(_ event: Event) {
    switch event {
    case .turn(let slot, let life):
      guard let process = process(slot, life), process.plannedTurn <= clock else { return }
      process.plannedTurn = .max
      if clock < process.busyUntil { return planTurn(process, at: process.busyUntil) }
      trace(1, UInt64(slot))
      process.turn()
    case .frame(let connection, let side): arrive(connection, side)
    case .readOn(let connection, let side): readOn(connection, side)
    case .opened(let connection, let side): deliverOpened(connection, side)
    case .ended(let connection, let side): deliverEnded(connection, side)
    case .dialled(let slot, let life, let address, let tag): deliverDial(slot, life, to: address, tag)
    case .dialFailed(let slot, let life, let tag):
      process(slot, life)?.put(.dialFailed(tag: tag, reason: "nobody answers"))
    case .sight(let slot, let life): lookAround(slot, life)
    case .join(let slot): tryToJoin(slot)
    case .restart(let slot, let life): restart(slot, life)
    case .act: act()
    case .actInRoom: actInRoom()
    case .linkMoved: moveLink()
    case .floodOn: floodOn()
    case .write(let slot): if isTroubled, let process = nodes[slot].process { write(process) }
    case .fault: causeFault()
    case .reunite: severed = []
    case .check: checkAgreement()
    case .disturb(let slot, let name): writeInQuiet(slot, name)
    case .stateInQuiet(let slot): stateInQuiet(slot)
    case .endInQuiet(let slot): endByAdmin(slot)
    case .reuniteInQuiet: reuniteInQuiet()
    case .relay(let slot, let life): process(slot, life)?.relay?.step()
    case .shore: shore?.act()
    }
  }

  // MARK: Processes

  func process(_ slot: Int, _ life: Int) -> NodeProcess? {
    guard let process = nodes[slot].process, process.life == life else { return nil }
    return process
  }

  func planTurn(_ process: NodeProcess, at time: UInt64) {
    guard !process.isDead, time < process.plannedTurn else { return }
    process.plannedTurn = max(time, process.busyUntil, clock)
    queue.put(.turn(slot: process.node.slot, life: process.life), at: process.plannedTurn)
  }

  func wall(of node: SimulatedNode) -> Int64 {
    let shown = World.epoch &+ Int64(clamping: clock)
    return shown &- shown % plan.clockStep &+ node.clockOffset
  }

  static let port: UInt16 = 7_000

  func slot(at address: SocketAddress) -> Int? { nodes.firstIndex { $0.address == address } }

  // MARK: Disks

  func openStore(of node: SimulatedNode) throws -> any LogStore & LogTransaction {
    let drawn = random.uuid()
    return try node.directory.medium.open(
      fleet.id, node.key.device, storeID: UUIDValue(high: drawn.high, low: drawn.low))
  }

  func refuseWriting(at node: SimulatedNode) throws {
    let (isFull, isSlow) = (clock < node.diskFullUntil, clock < node.slowDiskUntil)
    if isFull { count(.diskFull) }
    if isSlow { count(.slowDisk) }
    let delay: UInt64 = isSlow ? random.between(10...200) : 0
    // Early or late in the transaction, or not in this one: it needs little room.
    let refusal = isFull ? random.between(1...12) : nil
    try node.directory.medium.prepareWrite(refusedAfter: refusal, millisecondsPerSync: delay)
  }

  // MARK: Keeping book

  func mayCause(_ fault: Fault) -> Bool { isTroubled && plan.faults.contains(fault) }

  var occurrences: [Occurrence: Int] { report.occurrences }
  func count(_ fault: Fault) { report.faults[fault, default: 0] += 1 }
  func count(_ occurrence: Occurrence, times: Int = 1) { report.occurrences[occurrence, default: 0] += times }

  func countOccurrence(in message: String) {
    if message.hasPrefix("two histories") { count(.forkSeen) }
    if message.hasPrefix("issues again") { count(.reissued) }
    if message.hasPrefix("goes on under a new") { count(.replicaRenewed) }
    if message.hasPrefix("begins again") { count(.meshRestarted) }
  }

  func violate(_ rule: String, _ what: @autoclosure () -> String) {
    guard report.violations.count < SimulationReport.violationLimit else { return }
    let violation = SimulationReport.Violation(rule: rule, time: clock, what: what())
    report.violations.append(violation)
    note("VIOLATION \(violation)")
  }

  func note(_ text: @autoclosure () -> String) {
    guard options.keepsLog else { return }
    if report.log.count >= SimulationReport.logLimit { report.log.removeFirst(SimulationReport.logLimit / 4) }
    report.log.append("\(clock) \(text())")
  }

  func trace(_ kind: UInt64, _ word: UInt64) {
    report.traceHash = SimulationRandom.mix(report.traceHash ^ clock &* 0x9e37_79b9 ^ kind << 56 ^ word)
  }
}
