import Engine
import Replication

/// What a node's engine stands on in the simulated world. Once the process is dead nothing of it has an effect.
final class NodePorts: EngineClock, EngineLinks, EngineJournal, ReplicaMark, CommitListener {
  unowned let world: World
  unowned let node: SimulatedNode
  let life: Int
  var isDead = false
  private(set) var links: [SessionID: Link] = [:]
  /// The statements that the thread which decodes frames knows.
  private(set) var authority: Authority
  /// What commits were told of since the last look.
  private(set) var records: [CommitRecord] = []

  struct Link {
    let connection: UInt64
    let side: Int
    let remoteSlot: Int
    /// What it let pass when the engine took it up.
    fileprivate(set) var state = LinkState()
    fileprivate var isTakenUp = false
    /// When a frame found no room, until those that wait behind it in the engine have gone as well.
    fileprivate(set) var fullSince: UInt64?
    private var releasedAt: UInt64?

    init(connection: UInt64, side: Int, remoteSlot: Int) {
      (self.connection, self.side, self.remoteSlot) = (connection, side, remoteSlot)
    }

    fileprivate mutating func noteFull(_ isFull: Bool, _ clock: UInt64) {
      if let releasedAt, clock > releasedAt { (fullSince, self.releasedAt) = (nil, nil) }
      if isFull {
        (fullSince, releasedAt) = (fullSince ?? clock, nil)
      } else if fullSince != nil {
        releasedAt = releasedAt ?? clock
      }
    }
  }

  init(world: World, node: SimulatedNode, life: Int) {
    (self.world, self.node, self.life) = (world, node, life)
    authority = Authority(root: world.fleet.root.publicKey, hash: FakeCryptography.hash)
  }

  // MARK: Clock

  var now: MonotonicTime { MonotonicTime(milliseconds: world.clock) }
  var wallMilliseconds: Int64 { world.wall(of: node) }

  // MARK: Links

  func opened(_ session: SessionID, _ link: Link) { links[session] = link }
  func closed(_ session: SessionID) -> Bool { links.removeValue(forKey: session) != nil }

  func send(_ frame: [UInt8], on session: SessionID) -> LinkSending {
    guard !isDead, let link = links[session] else { return .closed }
    let frames = node.liar?.spoil(frame, to: world.nodes[link.remoteSlot], in: world) ?? [frame]
    world.oracle.conduct.checkGoodbye(frame, by: node, over: link)
    var result = LinkSending.queued(isLong: false)
    let news = node.process.map { world.newsOfLaterBuild(from: $0, on: session) } ?? []
    for frame in news + frames { result = world.send(frame, on: link.connection, from: link.side) }
    guard case .queued = result else {
      // It is handed in again.
      if case .full = result { links[session]?.noteFull(true, world.clock) }
      return result
    }
    links[session]?.noteFull(false, world.clock)
    world.oracle.sending(frame, by: node, over: links[session] ?? link)
    return result
  }

  func close(_ session: SessionID, afterFlush: Bool) {
    guard !isDead, let link = links[session] else { return }
    world.close(link.connection, side: link.side, afterFlush: afterFlush)
    world.queue.put(.ended(connection: link.connection, side: link.side), at: world.clock + 1)
  }

  func authenticate(_ session: SessionID) {}
  func closeStranded() {}
  func passage(of session: SessionID) -> Passage? {
    // Of one that stands it is only asked whether it moved.
    if links[session]?.isTakenUp == false {
      links[session]?.state = node.link
      links[session]?.isTakenUp = true
    }
    return node.link.passage(world.fleet)
  }
  func keepShort(_ session: SessionID) {}

  func release(_ session: SessionID, byteCount: Int) {
    changeIntake(of: session) { [limit = world.plan.intakeByteLimit] in $0.remove(byteCount, limit: limit) }
  }
  func holdUp(_ session: SessionID) { changeIntake(of: session) { $0.isHeldUp = true } }
  func letGo(_ session: SessionID) { changeIntake(of: session) { $0.isHeldUp = false } }

  private func changeIntake(of session: SessionID, _ change: (inout Connection.Intake) -> Void) {
    guard !isDead, let link = links[session] else { return }
    world.changeIntake(of: link.connection, side: link.side, change)
  }

  /// A frame waits for the engine.
  func taken(_ byteCount: Int, on session: SessionID) {
    guard let link = links[session] else { return }
    world.taken(byteCount, on: link.connection, side: link.side)
  }

  func queuedByteCount(of session: SessionID) -> Int {
    links[session].flatMap { world.connections[$0.connection]?.pipes[$0.side].queuedBytes } ?? 0
  }
  func queueByteMark(of session: SessionID) -> Int { .max }
  func adopt(_ authority: Authority) { self.authority = authority }
  func text(of address: SocketAddress) -> String { "\(world.slot(at: address) ?? -1)" }
  var frameOverheadByteCount: Int { 4 }

  func dial(_ address: PeerAddress, tag: UInt64) {
    guard !isDead, case .socket(let socket) = address else { return }
    world.dial(from: node, life, to: socket, tag: tag)
  }

  // MARK: The mark beside the store

  func causes(_ store: RenewalEvidence.Store) throws -> [RenewalCause] {
    let mark = node.directory.mark
    let sidecar = RenewalEvidence.Sidecar(
      storeID: mark?.store ?? .zero, reached: mark?.reached ?? 0, machine: "machine", inode: 1)
    return RenewalEvidence.causes(store: store, sidecar: sidecar, machine: "machine", inode: 1)
  }

  func save(store: UUIDValue, replica: Incarnation?, resting: [RestingReplica], reached: UInt64) throws {
    guard !isDead else { throw PowerLost() }
    if world.options.plantedBug == .markNotSaved { return }
    node.directory.mark = NodeDirectory.Mark(store: store, replica: replica, resting: resting, reached: reached)
  }

  func resting(beside replica: Incarnation) throws -> [RestingReplica] {
    guard let mark = node.directory.mark, mark.replica == replica else { return [] }
    return mark.resting
  }

  func discard() throws {
    guard !isDead else { throw PowerLost() }
    node.directory.mark = nil
  }

  // MARK: What is told

  func note(_ level: LogLevel, _ message: String, _ facts: KeyValuePairs<String, JournalFact>) {
    guard !isDead else { return }
    world.note("\(node.slot) \(level) \(message) \(facts.map { "\($0.key)=\($0.value)" }.joined(separator: " "))")
    world.countOccurrence(in: message)
    if message == "gives up a link" { tellOfGivingUp(facts) }
    if message == "closed a connection" { world.oracle.conduct.checkSilence(facts, of: self) }
  }

  private func tellOfGivingUp(_ facts: KeyValuePairs<String, JournalFact>) {
    guard case .device(let device)? = facts.first(where: { $0.key == "device" })?.value, let process = node.process
    else { return }
    let isSurplus = facts.contains { fact in if case .text("surplus") = fact.value { true } else { false } }
    world.oracle.givesUp(device, asSurplus: isSurplus, process)
  }

  func committed(_ record: CommitRecord) {
    let isLeftOut = world.options.plantedBug == .feedSilent && record.partitions.count == 1
    guard !isLeftOut else { return }
    records.append(record)
    if !isDead { node.process?.relay?.committed(record) }
  }
  func takeRecords() -> [CommitRecord] {
    defer { records = [] }
    return records
  }
}
