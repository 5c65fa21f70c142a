import Wire

@testable import Replication
@testable import Simulation

/// Meshes wired by hand: every message in order and at once, time only where a test moves it.
final class MeshBench {
  struct Line {
    let from: Int
    let to: Int
    let message: Message
  }

  private enum Delivery {
    case message(Message)
    case closed
  }

  let fleet: Fleet
  /// The one partition in which nodes write.
  var name: PartitionName
  private(set) var nodes: [BenchNode] = []
  /// Declared replicas of devices that have no node here, with their keys.
  private(set) var otherReplicas: [(ReplicaID, PublicKey)] = []
  /// All that was ever said.
  private(set) var transcript: [Line] = []
  var now = MonotonicTime(milliseconds: 1_000)
  var random: SimulationRandom
  private var wire: [(to: Int, session: SessionID, delivery: Delivery, due: MonotonicTime)] = []
  /// How long each message is under way; nil: it arrives at once.
  var delays: ClosedRange<UInt64>?
  private var lastOfRoot: Statement?
  private var ends: [SessionID: (Int, Int)] = [:]

  var partition: PartitionID { fleet.partition(name) }

  /// `devices[i]` is the device of node i: the same number twice makes a clone. `wants[i]`: a name, or a prefix followed by
  /// `*`; everything, where nothing is said. `users[i]`: of device i, one and the same where nothing is said. `formats[i]`: what the build of node i knows.
  init(
    _ devices: [Int], wants: [Text] = [], users: [Text] = [], formats: [Int: KnownFormats] = [:],
    rights: FoundingRights = .open, seed: UInt64 = 1
  ) throws {
    var random = SimulationRandom(seed: seed)
    var fleet = Fleet(&random, rights)
    name = try PartitionName("agency=Galapagos")
    let keys = (0...(devices.max() ?? 0)).map { _ in FakeKey(&random) }
    self.random = random
    var statements = fleet.statements
    var replicas: [ReplicaID] = []
    for (index, key) in keys.enumerated() {
      let user = index < users.count ? users[index] : "user"
      let byRoot = fleet.membership(of: key.publicKey, user: user, role: Fleet.memberRole)
      guard let membership = byRoot.last else { continue }
      let nonce = UUIDValue(high: 7, low: UInt64(index))
      let replica = ReplicaID.derived(device: key.device, nonce: nonce, FakeCryptography.hash)
      let declaration = Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: membership.id)
      guard let declared = key.statement(fleet.id, .replica(declaration)) else { continue }
      statements += [membership, declared]
      replicas.append(replica)
    }
    self.fleet = fleet
    lastOfRoot = statements.last { $0.issuer == fleet.root.publicKey }
    otherReplicas = zip(replicas, keys.map(\.publicKey)).enumerated()
      .filter { !devices.contains($0.offset) }.map(\.element)
    nodes = devices.enumerated().map { slot, device in
      BenchNode(
        bench: self, slot: slot, key: keys[device], replica: replicas[device], statements,
        fleet.interest(slot < wants.count ? wants[slot] : "*"), formats[slot] ?? .all)
    }
  }

  /// One more node, which knows these statements and brings these credentials. Answers its place.
  func add(_ key: FakeKey, _ statements: [Statement], credentials: [Statement]) -> Int {
    let node = BenchNode(
      bench: self, slot: nodes.count, key: key, replica: .zero, statements, fleet.interest("*"))
    node.mesh.local.credentials = credentials.map(\.encoded)
    nodes.append(node)
    return nodes.count - 1
  }

  /// - Parameter passage: what the dialer's link lets pass.
  func connect(_ dialer: Int, _ listener: Int, _ passage: Passage = .everything) -> SessionID {
    let id = SessionID(rawValue: UInt64(ends.count) + 1)
    ends[id] = (dialer, listener)
    nodes[listener].deliver(
      .opened(id, isDialer: false, peer: nodes[dialer].key.publicKey, exporter: exporter(of: id)))
    nodes[dialer].deliver(
      .opened(id, isDialer: true, peer: nodes[listener].key.publicKey, exporter: exporter(of: id), passage: passage))
    return id
  }

  func exporter(of id: SessionID) -> Digest {
    Digest.of(Text("connection \(id.rawValue)").bytes, FakeCryptography.hash)
  }

  func fleetProof(_ id: SessionID) -> FleetProof { FakeCryptography.fleetProof(fleet.id, exporter(of: id)) }

  func areLinked(_ a: Int, _ b: Int) -> Bool {
    nodes[a].mesh.sessions.values.contains { $0.device == nodes[b].device }
  }

  /// Both are live, and all that they had to say has arrived.
  func connected(_ dialer: Int, _ listener: Int) -> SessionID {
    let id = connect(dialer, listener)
    run()
    return id
  }

  func cut(_ id: SessionID) {
    guard let (a, b) = ends[id] else { return }
    wire.removeAll { $0.session == id }
    for slot in [a, b] { nodes[slot].deliver(.closed(id)) }
  }

  /// Carries messages until nobody has anything to say, or for so many.
  func run(_ limit: Int = 10_000) {
    for _ in 0..<limit {
      guard let index = wire.firstIndex(where: { $0.due <= now }) else { return }
      let next = wire.remove(at: index)
      switch next.delivery {
      case .message(let message): nodes[next.to].receive(message, on: next.session)
      case .closed: nodes[next.to].deliver(.closed(next.session))
      }
    }
  }

  /// Carries messages, each as soon as it is said, and tells how many ways one after the other it took until this holds.
  func flights(since start: Int, until isDone: () -> Bool) -> Int? {
    var depths = [Int](repeating: 1, count: transcript.count - start)
    var heard = [Int](repeating: 0, count: nodes.count)
    var (next, done) = (0, Int?.none)
    while !wire.isEmpty {
      let line = transcript[start + next]
      heard[line.to] = max(heard[line.to], depths[next])
      next += 1
      run(1)
      while depths.count < transcript.count - start {
        depths.append(heard[transcript[start + depths.count].from] + 1)
      }
      if done == nil, isDone() { done = heard[line.to] }
    }
    return done
  }

  /// A node is shown runs as evidence of a fork, which stands outside of every stream.
  func show(_ runs: [LoggedRun], to slot: Int, on id: SessionID) {
    let entries = runs.map { RunBatch.Entry(context: .full($0.context), encoded: $0.encoded) }
    nodes[slot].receive(.runs(RunBatch(name: name, stream: 0, entries: entries, isForkEvidence: true)), on: id)
  }

  /// Lets time pass in steps, as a shell that ticks.
  func pass(_ milliseconds: UInt64) {
    for _ in 0..<milliseconds / 50 {
      now = now.advanced(byMilliseconds: 50)
      for node in nodes { node.deliver(.tick) }
      run()
    }
  }

  /// Time passes for one node, and nothing arrives anywhere.
  func tick(_ slot: Int, after milliseconds: UInt64) {
    now = now.advanced(byMilliseconds: milliseconds)
    nodes[slot].deliver(.tick)
  }

  /// What is under way is lost, as on a connection whose other end has gone without a word.
  func loseMessages() { wire.removeAll() }

  func loseStatements() {
    wire.removeAll { if case .message(.statements) = $0.delivery { true } else { false } }
  }

  /// Statements of the root that every node has stored.
  func state(_ bodies: [Statement.Body]) {
    let statements = bodies.compactMap(state)
    for node in nodes { node.deliver(.statementsStored(statements)) }
  }

  /// Of the device of a node, which keeps all that it said; other nodes have yet to hear of it.
  func endMembership(of slot: Int, knownBy other: Int) throws {
    let (node, authority) = (nodes[slot], nodes[other].mesh.authority)
    guard let membership = authority.member(of: node.key.publicKey)?.id,
      let last = authority.lastStatement(of: node.key.publicKey)
    else { throw NoMember() }
    let tip = Statement.Tip(issuer: node.key.publicKey, sequence: last.sequence, id: last.id)
    let listing = Statement.Listing(tips: [Statement.ScopeTips(scope: "", tips: [tip])])
    let end = Statement.End(reason: .retire, target: .membership(membership), listing: listing)
    try tell(.end(end), to: other)
  }

  func admitAgain(_ slot: Int, knownBy other: Int) throws {
    let membership = Statement.Membership(
      device: nodes[slot].key.publicKey, user: "user", label: "again", role: Fleet.memberRole, profile: ValueMap())
    try tell(.membership(membership), to: other)
  }

  private func tell(_ body: Statement.Body, to slot: Int) throws {
    guard let statement = state(body) else { throw NoMember() }
    nodes[slot].deliver(.statementsStored([statement]))
  }

  struct NoMember: Error {}

  /// What the root says next, which nobody has heard yet.
  func state(_ body: Statement.Body) -> Statement? {
    let statement = fleet.root.statement(fleet.id, body, after: lastOfRoot ?? fleet.statements.last)
    lastOfRoot = statement
    return statement
  }

  /// The same with notes.
  func byRoot(_ body: Statement.Body, _ notes: StatementNotes) throws -> Statement {
    let link = lastOfRoot.map { Statement.Link(sequence: $0.sequence, id: $0.id) }
    let unsigned = try StatementCodec.unsigned(
      fleet: fleet.id, issuer: fleet.root.publicKey, after: link, body: body, notes: notes)
    let statement = try StatementCodec.assemble(
      unsigned: unsigned, signature: fleet.root.sign(unsigned), FakeCryptography.hash)
    lastOfRoot = statement
    return statement
  }

  func post(_ message: Message, from slot: Int, on id: SessionID) {
    guard let other = other(slot, id) else { return }
    transcript.append(Line(from: slot, to: other, message: message))
    put(.message(message), to: other, id)
  }

  func close(_ id: SessionID, from slot: Int) {
    guard let other = other(slot, id) else { return }
    put(.closed, to: other, id)
  }

  /// In order on each connection.
  private func put(_ delivery: Delivery, to slot: Int, _ id: SessionID) {
    let delay = delays.map { UInt64.random(in: $0, using: &random) } ?? 0
    let last = wire.last { $0.to == slot && $0.session == id }?.due ?? now
    wire.append((slot, id, delivery, max(last, now.advanced(byMilliseconds: delay))))
  }

  private func other(_ slot: Int, _ id: SessionID) -> Int? { ends[id].map { $0.0 == slot ? $0.1 : $0.0 } }

  func messages(from: Int, to: Int, since start: Int = 0) -> [Message] {
    transcript.dropFirst(start).filter { $0.from == from && $0.to == to }.map(\.message)
  }

  /// The messages by name.
  func said(from: Int, to: Int, since start: Int = 0) -> [String] {
    messages(from: from, to: to, since: start).map { String("\($0)".prefix { $0 != "(" }) }
  }
}
