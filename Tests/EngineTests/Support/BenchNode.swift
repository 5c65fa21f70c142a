import Foundation
import Identity
import Replication
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Engine
@testable import Storage

/// One engine with a real store in a directory of its own; everything else around it is the test's.
final class BenchNode {
  let directory: String
  let key: SigningKey
  let trace = TraceBook()
  let links: BenchLinks
  let journal = BenchJournal()
  let feed: BenchFeed
  let mark: BenchMark
  let store: TracedStore
  let engine: NodeEngine
  let root = RootPlace()
  private let directories: BenchDirectories

  /// Whether the fleet's root key lies with this device.
  final class RootPlace: Sendable {
    private let held = Mutex(false)
    var isHere: Bool {
      get { held.withLock { $0 } }
      set { held.withLock { $0 = newValue } }
    }
  }

  /// - Parameter statements: put into the store before the engine looks at it.
  init(
    _ bench: EngineBench, directory: String, key: SigningKey, mark: BenchMark, statements: [Statement],
    formats: KnownFormats = .all, _ change: (inout EngineOptions) -> Void = { _ in }
  ) throws {
    (self.directory, self.key, self.mark) = (directory, key, mark)
    directories = bench.directories
    (links, feed) = (BenchLinks(trace), BenchFeed(trace))
    let fleet = bench.founding.fleet
    let opened = try Store.open(directory: directory, fleet: fleet, device: DeviceID(key.publicKey))
    try opened.transact(isBacklog: false) { transaction in
      for statement in statements { try transaction.add(statement) }
    }
    store = TracedStore(opened, trace)
    let verifier = StatementVerifier(fleet: fleet)
    let cryptography = Cryptography(
      hash: SHA256.hash, verify: Ed25519.verify, sign: key.sign, authenticationCode: HMAC.sha256,
      statement: verifier.read, holdingsBytes: HoldingsCodec.signedBytes, formats: formats)
    let rootKey = bench.founding.rootKey
    let identity = EngineIdentity(fleet: fleet, device: key.publicKey, cryptography: cryptography) { [root] in
      root.isHere ? RootSigner(key: rootKey.publicKey, sign: rootKey.sign) : nil
    }
    var options = EngineOptions(instance: UUIDValue(high: bench.random.next(), low: bench.random.next()))
    change(&options)
    let ports = EnginePorts(
      store: store, mark: mark, clock: bench.clock, links: links, journal: journal, feed: feed,
      // A stream of its own: what comes next on the bench's is drawn by the next node.
      random: SplitMix64(seed: bench.random.next()))
    engine = try NodeEngine(identity, options, ports)
  }

  var state: EngineState { engine.state }
  func id(of partition: PartitionName) -> PartitionID { state.identity.id(of: partition) }

  // MARK: Using it

  /// What came of a request; nil while there is no answer.
  final class Answer<Value: Sendable>: Sendable {
    private let answers = Mutex<[Result<Value, any Error>]>([])
    func take(_ answer: Result<Value, any Error>) { answers.withLock { $0.append(answer) } }
    var count: Int { answers.withLock { $0.count } }
    func get() throws -> Value {
      #expect(count == 1, "each request is answered once")
      return try #require(answers.withLock { $0.first }).get()
    }
  }

  func job(_ partition: PartitionName, _ edits: [any DocumentEdit]) -> (LocalWriteJob, Answer<ChangeReceipt>) {
    let answer = Answer<ChangeReceipt>()
    return (LocalWriteJob(partition: partition, edits: edits) { answer.take($0) }, answer)
  }

  /// Each of the edits in one change.
  @discardableResult
  func write(_ partition: PartitionName, _ edits: any DocumentEdit...) throws -> ChangeReceipt {
    let (job, answer) = job(partition, edits)
    engine.turn([.write(job)])
    return try answer.get()
  }

  func subscribe(_ pattern: Text, isWanted: Bool = true) throws {
    let answer = Answer<Void>()
    engine.turn([.subscription(SubscriptionJob(pattern: pattern, isWanted: isWanted) { answer.take($0) })])
    try answer.get()
  }

  /// Runs of another node's chain, and nothing that they had seen, as a ledger would bring them.
  func take(runsOf replica: ReplicaID, of other: BenchNode, in partition: PartitionName) throws {
    let decoder = FrameDecoder(fleet: state.identity.fleet, state.identity.cryptography)
    let chain = ChainIdentity(fleet: state.identity.fleet, partition: id(of: partition), replica: replica)
    for run in try other.store.runs(of: chain, after: 0, byteLimit: .max) {
      let inspected = try decoder.inspect(
        run.body, context: run.context, in: partition, under: state.mesh.authority
      ) { _ in [] }
      engine.turn([.ledgerRun(partition, inspected.delivered)])
    }
  }

  // MARK: Looking at it

  /// What the document shows; nil where there is none.
  func shown(_ partition: PartitionName, _ id: Text) throws -> ValueMap? {
    let key = DocumentKey(collection: Put.collection, id: .string(id))
    return try store.document(key, in: self.id(of: partition)).flatMap { try DocumentState(encoded: $0.state).shown() }
  }

  func accepted(_ partition: PartitionName) -> VersionVector {
    state.mesh.partitions[id(of: partition)]?.log.accepted ?? VersionVector()
  }

  func received(_ partition: PartitionName) -> VersionVector {
    state.mesh.partitions[id(of: partition)]?.log.received ?? VersionVector()
  }

  func count(_ table: String) throws -> Int64 { try store.store.database.integer("SELECT count(*) FROM \(table)") ?? 0 }

  /// From now on such a statement fails with what is no fault of the disk.
  func refuse(_ event: String, on table: String, when condition: String = "1") throws {
    try store.store.database.execute(
      "CREATE TEMP TRIGGER refuse_\(table) BEFORE \(event) ON \(table) WHEN \(condition) BEGIN SELECT RAISE(ABORT, 'no room'); END"
    )
  }

  /// The document's stored state from now on.
  func overwrite(_ id: Text, with state: [UInt8]) throws {
    let hex = { (bytes: [UInt8]) in bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
    let key = Value.string(id).canonicalBytes
    try store.store.database.execute("UPDATE documents SET state=x'\(hex(state))' WHERE key=x'\(hex(key))'")
  }

  func stored(_ partition: PartitionName, _ id: Text) throws -> [UInt8]? {
    try store.document(DocumentKey(collection: Put.collection, id: .string(id)), in: self.id(of: partition))?.state
  }

  func allow(_ table: String) throws { try store.store.database.execute("DROP TRIGGER refuse_\(table)") }
}

// MARK: Edits

/// Makes the document what it says.
struct Put: DocumentEdit {
  static let collection: Text = "c"
  let id: Value
  let content: ValueMap
  var collection: Text { Put.collection }

  init(_ id: Text, _ n: Int64 = 1) { (self.id, content) = (.string(id), map(["n": .int(n)])) }

  /// So large that it travels apart from its run where it is above 16 KiB.
  init(_ id: Text, byteCount: Int, of byte: UInt8 = 7) {
    self.id = .string(id)
    content = map(["n": .bytes([UInt8](repeating: byte, count: byteCount))])
  }

  var isWhole: Bool { true }
  func outcome(on present: PresentDocument) -> DocumentOutcome { .body(content, hints: .none) }
}

struct Erase: DocumentEdit {
  let id: Value
  var collection: Text { Put.collection }
  init(_ id: Text) { self.id = .string(id) }
  func outcome(on present: PresentDocument) -> DocumentOutcome { .deleted }
}

/// Wants the document to be of a version that it is not.
struct Refuse: DocumentEdit {
  struct Refusal: Error {}
  let id: Value
  var collection: Text { "never" }
  init(_ id: Text) { self.id = .string(id) }
  func outcome(on present: PresentDocument) throws -> DocumentOutcome { throw Refusal() }
}

func map(_ entries: KeyValuePairs<Text, Value>) -> ValueMap {
  ValueMap(entries.map { ValueMap.Entry(key: $0.key, value: $0.value) }) ?? ValueMap()
}
