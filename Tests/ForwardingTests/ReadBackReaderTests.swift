import Foundation
import Identity
import Replication
import Storage
import Synchronization
import Testing
import Wire

@testable import Engine
@testable import Forwarding

/// What a relay tells its node that the ledger has, of chains of which not all counts.
@Suite("What was read back")
struct ReadBackReaderTests {
  @Test("a chain of which more is held than counts is in the backend as far as it is there", arguments: 0...3)
  func heldAboveWhatCounts(counting: Int) throws {
    let log = try HeldLog(changes: 3, counting: counting)
    let reader = ReadBackReader(source: log, backend: log.ledger, limits: ForwarderLimits())
    _ = try reader.read(.everything)
    #expect(log.told == [3])
    log.ledger.hashes.removeLast()
    _ = try reader.read(.everything)
    #expect(log.told == [2])
  }

  @Test("marks and what a relay knows beside them are of one state of its store", arguments: 0...3)
  func marksOfOneState(counting: Int) throws {
    let log = try HeldLog(changes: 3, counting: counting)
    // As it was two commits ago.
    let older = VersionVector([ReplicaID(high: 1, low: 2): ChainPosition(sequence: 1, tip: .zero)])
    let request = Forwarder.LoadRequest(
      view: LedgerView(), statementsAfter: 0, runsAfter: 0, unmarked: [log.partition: older], bytes: 1_000_000,
      changes: 100, marks: 100)
    let reader = PageReader(fleet: log.fleet, hash: log.hash)
    let page = try log.read { store in try store.snapshot { try reader.page(request, from: $0) } }
    #expect(page.batch.marks.map(\.position.sequence) == [UInt64(counting)])
    #expect(page.batch.heads.map(\.highest) == [3])
  }

  @Test("a forked chain is marked where what counts is of the state that is read, and otherwise later")
  func marksOfForkedChains() throws {
    let log = try HeldLog(changes: 3, counting: 1, isForked: true)
    let chosen = VersionVector([ReplicaID(high: 1, low: 2): ChainPosition(sequence: 2, tip: .zero)])
    let reader = PageReader(fleet: log.fleet, hash: log.hash)
    let end = try log.read { try $0.logEnd().text }
    for position in [end, "", "0.2.0"] {
      let request = Forwarder.LoadRequest(
        view: LedgerView(), statementsAfter: 0, runsAfter: 0, unmarked: [log.partition: chosen], unmarkedAt: position,
        bytes: 1_000_000, changes: 100, marks: 100)
      let page = try log.read { store in try store.snapshot { try reader.page(request, from: $0) } }
      #expect(page.batch.marks.map(\.position.sequence) == (position == end ? [2] : []))
      #expect(page.marked.keys.map { $0 } == (position == end ? [log.partition] : []))
    }
  }

  @Test("a ledger that has less of a chain than is known leaves a gap, and only where it is asked about")
  func check() throws {
    let ledger = HashLedger((0..<3).map { Digest(words: ($0, 0, 0, 0)) })
    let (chain, other) = (ForwarderModel.chain(1), PartitionID(Digest(words: (9, 9, 9, 9))))
    var known = LedgerView()
    known.highest[chain] = 3
    let check = LedgerCheck(ledger, ForwarderLimits())
    try check.holds(known, of: [chain.partition])
    ledger.hashes.removeLast()
    try check.holds(known, of: [other])
    #expect(throws: BackendProblem(.gap, "the ledger lacks changes that it had")) {
      try check.holds(known, of: [chain.partition])
    }
  }
}

/// A store with one chain, of which the first changes count, and a ledger that has all of it.
private final class HeldLog: ForwardingSource, @unchecked Sendable {
  let fleet = FleetID(Digest(words: (1, 2, 3, 4)))
  let hash: HashFunction = SHA256.hash
  let ledger: HashLedger
  private let directory: String
  private let store: Store
  private let backendVectors = Mutex<[VersionVector]>([])
  private let name: PartitionName

  init(changes: Int, counting: Int, isForked: Bool = false) throws {
    name = try PartitionName("room=1")
    directory = NSTemporaryDirectory() + "seamesh-held-" + String(UUID().uuidString.prefix(8))
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let key = SigningKey()
    store = try Store.open(directory: directory, fleet: fleet, device: DeviceID(key.publicKey))
    let partition = name.id(fleet: fleet, hash: SHA256.hash)
    let chain = ChainIdentity(fleet: fleet, partition: partition, replica: ReplicaID(high: 1, low: 2))
    let genesis = chain.genesis(SHA256.hash)
    var hashes = [genesis]
    var runs: [Run] = []
    for index in 0..<changes {
      var builder = RunBuilder(
        chain: chain, after: UInt64(index), hashBefore: hashes[index], context: VersionVector(), hash: SHA256.hash)
      let write = DocumentWrite(
        collection: "c", id: .int(Int64(index)), kind: .create, generation: 1,
        operations: [Operation(.set, [.key("n")], value: .int(1))])
      let payload = PayloadEncoder.encode([write], dot: builder.nextDot)
      let change = try ComposedChange(
        WriteContext(dot: builder.nextDot, timestamp: .zero, context: builder.context),
        wall: WallTime(milliseconds: 0), payload: payload, in: chain, SHA256.hash)
      builder.append(payload: payload, keyHashes: change.keyHashes, timestamp: .zero, wall: change.wall)
      let run = builder.close(sign: key.sign)
      let encoded = RunCodec.encode(run)
      hashes.append(
        try RunCodec.decode(encoded[...], fleet: fleet, partition: partition, hash: SHA256.hash).hashAtLast)
      runs.append(run)
    }
    ledger = HashLedger(Array(hashes.dropFirst()))
    try store.transact(isBacklog: false) { [name] transaction in
      try transaction.addPartition(partition, name)
      for (index, run) in runs.enumerated() {
        let sequence = UInt64(index + 1)
        let appended = AppendedRun(
          first: sequence, last: sequence, context: VersionVector(), body: RunCodec.encode(run)[...])
        _ = try transaction.append(appended, to: chain, genesis: genesis)
      }
      // As the engine writes them: the chain hash of what counts beside both numbers.
      let counted = hashes[counting]
      try transaction.setMarks(
        ChainMarks(
          received: Engine.ChainMark(sequence: UInt64(changes), hash: counted),
          accepted: Engine.ChainMark(sequence: UInt64(counting), hash: counted), isForked: isForked), of: chain)
    }
  }

  var partition: PartitionID { name.id(fleet: fleet, hash: hash) }

  deinit { try? FileManager.default.removeItem(atPath: directory) }

  /// How far each chain was said to be in the backend at the last reading.
  var told: [UInt64] { backendVectors.withLock { $0.last }.map { $0.entries.values.map(\.sequence) } ?? [] }

  func read<Result>(_ body: (StoreReader) throws -> Result) throws -> Result { try store.readers.read(body) }
  func backendHas(_ vectors: [(PartitionName, VersionVector)]) {
    backendVectors.withLock { $0 += vectors.map(\.1) }
  }
  func accepted() throws -> (vectors: [PartitionID: VersionVector], position: String) { ([:], "") }
  func news(timeoutMilliseconds: UInt64) -> ForwardingNews { .nothing }
  func wake() {}
  func remembered() -> String? { nil }
  func remember(_ text: String) {}
  var wallMilliseconds: Int64 { 0 }
}

/// One chain's hashes, from the first on.
private final class HashLedger: Backend, @unchecked Sendable {
  var hashes: [Digest]
  init(_ hashes: [Digest]) { self.hashes = hashes }

  var name: String { "hashes" }
  var ledgerID: String { "one" }
  func connect() {}
  func disconnect() {}
  func statementIDs() -> Set<Digest> { [] }
  func documentStart(of process: String) -> DocumentStart { DocumentStart() }
  func documentNews(of process: String) -> DocumentNews { DocumentNews() }
  func append(_ batch: LedgerBatch) -> AppendOutcome { AppendOutcome() }
  func interrupt() {}

  func answers(to questions: [ChainQuestion]) -> [ChainAnswer] {
    questions.map { question in
      var answer = ChainAnswer()
      answer.highest = UInt64(hashes.count)
      answer.hashes = hashes.suffix(1)
      answer.hasChange =
        (1...answer.highest).contains(question.sequence) && hashes[Int(question.sequence) - 1] == question.hash
      return answer
    }
  }
}
