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
  let name: PartitionName
  private(set) var nodes: [BenchNode] = []
  /// All that was ever said.
  private(set) var transcript: [Line] = []
  var now = MonotonicTime(milliseconds: 1_000)
  var random: SimulationRandom
  private var wire: [(to: Int, session: SessionID, delivery: Delivery)] = []
  private var ends: [SessionID: (Int, Int)] = [:]

  var partition: PartitionID { fleet.partition(name) }

  /// `devices[i]` is the device of node i: the same number twice makes a clone.
  init(_ devices: [Int], seed: UInt64 = 1) throws {
    random = SimulationRandom(seed: seed)
    fleet = Fleet(&random)
    name = try PartitionName("agency=Galapagos")
    let keys = (0...(devices.max() ?? 0)).map { _ in FakeKey(&random) }
    var statements = fleet.statements
    var replicas: [ReplicaID] = []
    for (index, key) in keys.enumerated() {
      guard let membership = fleet.membership(of: key.publicKey, sequence: UInt64(index) + 1) else { continue }
      let nonce = UUIDValue(high: 7, low: UInt64(index))
      let replica = ReplicaID.derived(device: key.device, nonce: nonce, FakeCryptography.hash)
      let declaration = Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: membership.id)
      guard let declared = key.statement(fleet.id, .replica(declaration), sequence: 1) else { continue }
      statements += [membership, declared]
      replicas.append(replica)
    }
    nodes = devices.enumerated().map { slot, device in
      BenchNode(bench: self, slot: slot, key: keys[device], replica: replicas[device], statements)
    }
  }

  func connect(_ dialer: Int, _ listener: Int) -> SessionID {
    let id = SessionID(rawValue: UInt64(ends.count) + 1)
    ends[id] = (dialer, listener)
    let exporter = Digest.of(Text("connection \(id.rawValue)").bytes, FakeCryptography.hash)
    nodes[listener].deliver(
      .opened(id, isDialer: false, peer: nodes[dialer].key.publicKey, exporter: exporter))
    nodes[dialer].deliver(.opened(id, isDialer: true, peer: nodes[listener].key.publicKey, exporter: exporter))
    return id
  }

  func cut(_ id: SessionID) {
    guard let (a, b) = ends[id] else { return }
    wire.removeAll { $0.session == id }
    for slot in [a, b] { nodes[slot].deliver(.closed(id)) }
  }

  /// Carries messages until nobody has anything to say, or for so many.
  func run(_ limit: Int = 10_000) {
    for _ in 0..<limit where !wire.isEmpty {
      let next = wire.removeFirst()
      switch next.delivery {
      case .message(let message): nodes[next.to].receive(message, on: next.session)
      case .closed: nodes[next.to].deliver(.closed(next.session))
      }
    }
  }

  /// Lets time pass in steps, as a shell that ticks.
  func pass(_ milliseconds: UInt64) {
    for _ in 0..<milliseconds / 50 {
      now = now.advanced(byMilliseconds: 50)
      for node in nodes { node.deliver(.tick) }
      run()
    }
  }

  func post(_ message: Message, from slot: Int, on id: SessionID) {
    guard let other = other(slot, id) else { return }
    transcript.append(Line(from: slot, to: other, message: message))
    wire.append((other, id, .message(message)))
  }

  func close(_ id: SessionID, from slot: Int) {
    guard let other = other(slot, id) else { return }
    wire.append((other, id, .closed))
  }

  private func other(_ slot: Int, _ id: SessionID) -> Int? { ends[id].map { $0.0 == slot ? $0.1 : $0.0 } }

  func said(from: Int, to: Int, since start: Int = 0) -> [String] {
    transcript.dropFirst(start).filter { $0.from == from && $0.to == to }.map { "\($0.message)".prefix { $0 != "(" } }
      .map(String.init)
  }
}

/// The least of a shell: a log in memory that is durable when told so.
final class BenchNode {
  unowned let bench: MeshBench
  let slot: Int
  let key: FakeKey
  let replica: ReplicaID
  var mesh: Mesh
  private(set) var log: [LoggedRun] = []
  private(set) var pieces: [PayloadPiece] = []
  private(set) var notes: [Mesh.Note] = []
  private(set) var hasToRenew = false
  private(set) var damaged: [ReplicaID] = []
  /// What comes from peers stays undone.
  var holdsCommits = false
  /// The disk gives back nothing.
  var hasLostLog = false
  private var waiting: [(source: SessionID, runs: [DeliveredRun])] = []
  private var loads: [(SessionID, have: VersionVector)] = []
  private var context = VersionVector()

  init(bench: MeshBench, slot: Int, key: FakeKey, replica: ReplicaID, _ statements: [Statement]) {
    (self.bench, self.slot, self.key, self.replica) = (bench, slot, key, replica)
    let local = LocalIdentity(
      fleet: bench.fleet.id, device: key.publicKey, instance: UUIDValue(high: 1, low: UInt64(slot)), credentials: [])
    mesh = Mesh(
      local: local,
      authority: Authority(root: bench.fleet.root.publicKey, statements: statements, hash: FakeCryptography.hash),
      statements: statements, partitions: [], interest: bench.fleet.interest("*"),
      cryptography: FakeCryptography.cryptography(of: key))
    mesh.ownReplica = replica
  }

  var state: PartitionLog? { mesh.partitions[bench.partition]?.log }
  func holds(_ other: BenchNode) -> UInt64 { state?.accepted.sequence(of: other.replica) ?? 0 }

  // MARK: Writing

  /// An own run that does not follow: a mistake of the test.
  struct NotTaken: Error {}

  /// A change of its own, durable at once.
  @discardableResult
  func write(_ value: Int64, payloadByteCount: Int = 0) throws -> LoggedRun {
    let partition = mesh.begin(bench.name)
    let run = try compose(value, payloadByteCount)
    guard mesh.learnOwn(run, in: partition, signer: key.publicKey) != nil else { throw NotTaken() }
    context = run.record.context
    let logged = BenchNode.logged(run)
    log.append(logged)
    deliver(.committed(partition, source: nil, [logged]))
    return logged
  }

  private func compose(_ value: Int64, _ payloadByteCount: Int) throws -> Run {
    let chain = ChainIdentity(fleet: bench.fleet.id, partition: bench.partition, replica: replica)
    let own = log.last { $0.replica == replica }
    var builder = RunBuilder(
      chain: chain, after: own?.last ?? 0, hashBefore: own?.hashAtLast ?? chain.genesis(FakeCryptography.hash),
      context: state?.nextContext(of: replica, after: context) ?? VersionVector(), hash: FakeCryptography.hash)
    let content = Value.bytes([UInt8](repeating: 5, count: payloadByteCount))
    let write = DocumentWrite(
      collection: "reports", id: .int(value), kind: .create, generation: 1,
      operations: [Operation(.set, [.key("content")], value: content)])
    let dot = builder.nextDot
    let payload = PayloadEncoder.encode([write], dot: dot)
    let header = ChangeHeader(
      sequence: dot.sequence, timestamp: .zero, wall: WallTime(milliseconds: 0), payloadByteCount: 0,
      payloadHash: .zero, keyHashes: [])
    let keyHashes = try Change.plain(header, payload: payload, chain: chain, FakeCryptography.hash)
      .change.header.keyHashes
    builder.append(payload: payload, keyHashes: keyHashes, timestamp: .zero, wall: header.wall)
    return builder.close(sign: key.sign)
  }

  private static func logged(_ run: Run) -> LoggedRun {
    let payload = run.changes[0].payload
    let isApart = payload.count > Run.inlinePayloadByteLimit
    return LoggedRun(
      replica: run.record.chain.replica, first: run.record.first, last: run.record.last,
      hashBefore: run.record.hashBefore, hashAtLast: run.record.hashAtLast, context: run.record.context,
      encoded: RunCodec.encode(run)[...],
      apart: isApart ? ApartPayload(hash: run.changes[0].header.payloadHash, bytes: payload) : nil)
  }

  // MARK: Events and directives

  func deliver(_ event: Mesh.Event) {
    for directive in mesh.handle(event, now: bench.now, random: &bench.random) { perform(directive) }
    while !loads.isEmpty {
      let (id, have) = loads.removeFirst()
      let runs = log.filter { $0.last > have.sequence(of: $0.replica) }
      deliver(.loaded(id, bench.partition, runs, hasMore: false))
    }
  }

  func receive(_ message: Message, on id: SessionID) {
    guard case .runs(let batch) = message else { return deliver(.received(id, message)) }
    do {
      let runs = try batch.entries.map { entry in
        try IncomingRun(decode(entry.encoded), context: entry.context, in: batch.name, mesh.authority)
      }
      deliver(.receivedRuns(id, batch, runs))
    } catch {
      deliver(.violated(id, "\(error)"))
    }
  }

  private func decode(_ encoded: ArraySlice<UInt8>) throws -> DecodedRun {
    try RunCodec.decode(encoded, fleet: bench.fleet.id, partition: bench.partition, hash: FakeCryptography.hash)
  }

  private func perform(_ directive: Mesh.Directive) {
    switch directive {
    case .send(let id, let message): bench.post(message, from: slot, on: id)
    case .close(let id, _): bench.close(id, from: slot)
    case .apply(_, let source, let runs):
      waiting.append((source, runs))
      if !holdsCommits { commit() }
    case .load(let id, _, let have, _): loads.append((id, have))
    case .loadChain(let partition, let replica, let first, let purpose):
      deliver(.chainLoaded(partition, replica, summaries(of: replica, from: first), purpose))
    case .loadEvidence(let id, let partition, let replica, let above):
      deliver(.evidenceLoaded(id, partition, stored(of: replica).filter { $0.last > above }))
    case .stage(_, let piece): pieces.append(piece)
    case .renewReplica: hasToRenew = true
    case .damaged(_, let replica): damaged.append(replica)
    case .note(_, let note): notes.append(note)
    case .authenticated, .createPartition, .store, .admit, .rebuild: break
    }
  }

  /// What came is on the disk now.
  func commit() {
    let applied = waiting
    waiting = []
    for item in applied {
      let runs = item.runs.map(\.logged)
      log += runs
      deliver(.committed(bench.partition, source: item.source, runs))
    }
  }

  private func stored(of replica: ReplicaID) -> [LoggedRun] {
    hasLostLog ? [] : log.filter { $0.replica == replica }.sorted { $0.last < $1.last }
  }

  private func summaries(of replica: ReplicaID, from first: UInt64) -> [RunSummary] {
    stored(of: replica).filter { $0.last >= first }.compactMap { logged in
      guard let run = try? decode(logged.encoded), let signer = mesh.authority.signer(of: replica) else { return nil }
      return RunSummary(
        partition: bench.name, replica: replica, first: run.first, hashBefore: run.hashBefore, hashes: run.hashes,
        context: logged.context, signer: signer, facts: run.facts)
    }
  }
}
