import Wire

@testable import Engine
@testable import Replication
@testable import Simulation

/// The least of a shell: a log in memory that is durable when told so.
final class BenchNode {
  unowned let bench: MeshBench
  let slot: Int
  let key: FakeKey
  let replica: ReplicaID
  var mesh: Mesh
  private(set) var log: [LoggedRun] = []
  private(set) var pieces: [PayloadPiece] = []
  /// Broken rules among them as refusals.
  private(set) var notes: [Mesh.Note] = []
  private(set) var brokenRules: [BrokenRule] = []
  private(set) var hasToRenew = false
  private(set) var damaged: [ReplicaID] = []
  private(set) var authenticated: [SessionID] = []
  /// With how many devices peers said to be linked, one after the other.
  private(set) var links: [SessionID: [Int]] = [:]
  private(set) var redeemed: [JoinRequest] = []
  private(set) var admitted: [SessionID] = []
  private(set) var rebuilt: [LogChange] = []
  private(set) var stored: [Statement] = []
  private(set) var discarded: [Digest] = []
  private(set) var applied: [DeliveredRun] = []
  /// Bytes asked of the log, by load.
  private(set) var loadLimits: [Int] = []
  /// What comes from peers stays undone.
  var holdsCommits = false
  /// The disk gives back nothing.
  var hasLostLog = false
  /// Loads stay unanswered.
  var holdsLoads = false
  /// Nothing that was said is handed over: what waits for that has no turn.
  var holdsSaid = false
  private var waiting: [(source: SessionID, runs: [DeliveredRun])] = []
  private var loads: [(SessionID, have: VersionVector)] = []
  private var awaitingRoom: [SessionID] = []
  private var context = VersionVector()
  var ownReplica: ReplicaID?
  var isRenewalDue = false
  var wallMilliseconds: Int64 = 0
  var staged = StagedPayloads()

  init(
    bench: MeshBench, slot: Int, key: FakeKey, replica: ReplicaID, _ statements: [Statement],
    _ interest: Interest, _ formats: KnownFormats = .all
  ) {
    (self.bench, self.slot, self.key, self.replica) = (bench, slot, key, replica)
    let local = LocalIdentity(
      fleet: bench.fleet.id, device: key.publicKey, instance: UUIDValue(high: 1, low: UInt64(slot)), credentials: [])
    mesh = Mesh(
      local: local,
      authority: Authority(root: bench.fleet.root.publicKey, statements: statements, hash: FakeCryptography.hash),
      statements: statements, partitions: [], interest: interest,
      cryptography: FakeCryptography.cryptography(of: key, formats))
    ownReplica = replica
  }

  var surroundings: Surroundings {
    Surroundings(
      now: bench.now, wallMilliseconds: wallMilliseconds, ownReplica: ownReplica, isRenewalDue: isRenewalDue,
      staged: staged)
  }

  var device: DeviceID { DeviceID.derived(from: key.publicKey, FakeCryptography.hash) }
  var membership: Digest? { mesh.authority.member(of: key.publicKey)?.id }
  var state: PartitionLog? { mesh.partitions[bench.partition]?.log }
  func holds(_ other: BenchNode) -> UInt64 { state?.accepted.sequence(of: other.replica) ?? 0 }

  /// Puts into what the node knows what no run has brought; counted as at a start.
  func plant(_ change: (inout Ledger) throws -> Void) rethrows {
    try change(&mesh.ledger)
    mesh.ledger.takes.count(mesh.ledger.partitions, mesh.authority)
  }

  // MARK: Writing

  /// An own run that does not follow: a mistake of the test.
  struct NotTaken: Error {}

  /// A change of its own, durable at once.
  @discardableResult
  func write(_ value: Int64, payloadByteCount: Int = 0) throws -> LoggedRun {
    let partition = mesh.ledger.begin(bench.name)
    let run = try compose(value, payloadByteCount)
    guard mesh.learnOwn(run, in: partition, signer: key.publicKey) != nil else { throw NotTaken() }
    context = run.record.context
    let logged = BenchNode.logged(run)
    log.append(logged)
    deliver(.committed([Mesh.Commit(partition, source: nil, [logged])]))
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
    for directive in mesh.handle(event, surroundings, random: &bench.random) { perform(directive) }
    while !holdsLoads, !loads.isEmpty {
      let (id, have) = loads.removeFirst()
      let runs = log.filter { $0.last > have.sequence(of: $0.replica) }
      deliver(.loaded(id, bench.partition, runs, hasMore: false))
    }
  }

  /// Begins a comparison, whether one is due or not.
  func ask(_ id: SessionID) {
    var step = Step(surroundings, mesh.configuration)
    mesh.settleSums()
    let (ledger, interval) = (mesh.ledger, mesh.configuration.antiEntropyMilliseconds)
    mesh.sessions[id]?.compare(nextAfter: interval, ledger, &step)
    for directive in step.directives { perform(directive) }
  }

  /// Begins to search whether histories of the replica differ, as upon a sign that they do.
  func search(_ replica: ReplicaID, on id: SessionID) {
    var step = Step(surroundings, mesh.configuration)
    let ledger = mesh.ledger
    mesh.sessions[id]?.searchFork(bench.partition, replica, ledger, &step)
    for directive in step.directives { perform(directive) }
  }

  func receive(_ message: Message, on id: SessionID) {
    guard case .runs(let batch) = message else { return deliver(.received(id, message)) }
    do {
      let runs = try batch.entries.map { entry in
        try arrived(entry.encoded, entry.context)
      }
      deliver(.receivedRuns(id, batch, runs))
    } catch {
      deliver(.violated(id, "\(error)"))
    }
  }

  /// What of a run off the wire a test may want to be another.
  struct OuterForm {
    var context: VersionVector
    var elementDots: [ReplicaID: UInt64]
    var signer: PublicKey?
  }

  /// A run as the IO thread hands it in, changed on the way.
  func incoming(_ run: LoggedRun, _ change: (inout OuterForm) -> Void = { _ in }) throws -> IncomingRun {
    let honest = try arrived(run.encoded, .full(run.context))
    var form = OuterForm(context: run.context, elementDots: honest.elementDots, signer: honest.signer)
    change(&form)
    return IncomingRun(
      replica: honest.replica, first: honest.first, hashBefore: honest.hashBefore,
      contextDigest: honest.contextDigest, context: .full(form.context), hashes: honest.hashes,
      facts: honest.facts, elementDots: form.elementDots, signer: form.signer, encoded: honest.encoded,
      documents: honest.documents)
  }

  private func arrived(_ encoded: ArraySlice<UInt8>, _ context: ContextForm) throws -> IncomingRun {
    let decoder = FrameDecoder(fleet: bench.fleet.id, mesh.cryptography)
    return try decoder.arrived(decode(encoded), context: context, in: bench.name, under: mesh.authority).incoming
  }

  func decode(_ encoded: ArraySlice<UInt8>) throws -> DecodedRun {
    try RunCodec.decode(encoded, fleet: bench.fleet.id, partition: bench.partition, hash: FakeCryptography.hash)
  }

  private func perform(_ directive: Mesh.Directive) {
    switch directive {
    case .send(let id, let message): bench.post(message, from: slot, on: id)
    case .close(let id, _): bench.close(id, from: slot)
    case .apply(_, let source, let runs):
      waiting.append((source, runs))
      applied += runs
      if !holdsCommits { commit() }
    case .load(let id, _, let have, let byteLimit):
      loads.append((id, have))
      loadLimits.append(byteLimit)
    case .tellWhenSaid(let id) where holdsSaid: awaitingRoom.append(id)
    case .tellWhenSaid(let id): deliver(.said(id))
    case .loadChain(let partition, let replica, let first, let purpose):
      deliver(.chainLoaded(partition, replica, summaries(of: replica, from: first), purpose))
    case .loadEvidence(let id, let partition, let replica, let above, let isRest):
      let runs = logged(of: replica).filter { $0.last > above }
      deliver(.evidenceLoaded(id, partition, replica, runs, hasMore: false, isRest: isRest))
    case .stage(_, _, let piece): pieces.append(piece)
    case .renewReplica: hasToRenew = true
    case .damaged(_, let replica): damaged.append(replica)
    case .note(_, .ruleBroken(let rule)):
      brokenRules.append(rule)
      notes.append(.peerRefused(rule.reason))
    case .note(_, let note): notes.append(note)
    case .authenticated(let id, _, _): authenticated.append(id)
    case .admitted(let id): admitted.append(id)
    case .linked(let id, let count): links[id, default: []].append(count)
    case .redeem(_, let request, _): redeemed.append(request)
    case .rebuild(_, let change): rebuilt.append(change)
    case .store(let statements): stored += statements
    case .discard(let displaced): discarded += displaced
    case .keep(let signed, let source):
      deliver(.holdingsKept([(KeptHoldings(signed, heard: wallMilliseconds), source)]))
    }
  }

  /// What was said is handed over, and goes on to be, or not what is said upon that.
  func handOver(goesOn: Bool = true) {
    holdsSaid = !goesOn
    let waiting = awaitingRoom
    awaitingRoom = []
    for id in waiting { deliver(.said(id)) }
  }

  /// What came is on the disk now.
  func commit() {
    let applied = waiting
    waiting = []
    let commits = applied.map { Mesh.Commit(bench.partition, source: $0.source, $0.runs.map { whole($0.logged) }) }
    for commit in commits { log += commit.runs }
    deliver(.committed(commits))
  }

  /// With the payload that came ahead of it.
  private func whole(_ run: LoggedRun) -> LoggedRun {
    guard let hash = (try? decode(run.encoded))?.changes.first?.header.payloadHash else { return run }
    let own = pieces.filter { $0.hash == hash }.sorted { $0.offset < $1.offset }
    guard let total = own.first?.total, own.reduce(0, { $0 + UInt64($1.bytes.count) }) == total else { return run }
    return LoggedRun(
      replica: run.replica, first: run.first, last: run.last, hashBefore: run.hashBefore, hashAtLast: run.hashAtLast,
      context: run.context, encoded: run.encoded,
      apart: ApartPayload(hash: hash, bytes: ArraySlice(own.map(\.bytes).joined())))
  }

  private func logged(of replica: ReplicaID) -> [LoggedRun] {
    hasLostLog ? [] : log.filter { $0.replica == replica }.sorted { $0.last < $1.last }
  }

  private func summaries(of replica: ReplicaID, from first: UInt64) -> [RunSummary] {
    logged(of: replica).filter { $0.last >= first }.compactMap { logged in
      guard let run = try? decode(logged.encoded), let signer = mesh.authority.signer(of: replica) else { return nil }
      return RunSummary(
        partition: bench.name, replica: replica, first: run.first, hashBefore: run.hashBefore, hashes: run.hashes,
        context: logged.context, signer: signer, facts: run.facts(in: bench.name, .all))
    }
  }
}
