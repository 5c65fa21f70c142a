import Foundation
import Identity
import Replication
import Synchronization
import Wire

@testable import Engine
@testable import Forwarding
@testable import Storage

/// A store with one chain, of which the first changes count, and a ledger that has all of it.
final class HeldLog: ForwardingSource, @unchecked Sendable {
  let fleet = FleetID(Digest(words: (1, 2, 3, 4)))
  let hash: HashFunction = SHA256.hash
  let ledger: HashLedger
  private let directory: String
  private let store: Store
  private let backendVectors = Mutex<[VersionVector]>([])
  private let name: PartitionName
  private let chain: ChainIdentity
  /// Of the chain, from its beginning on.
  private let hashes: [Digest]
  private let isForked: Bool
  private let counted = Mutex(0)
  /// What a forwarder is told when it waits.
  let nextNews = Mutex<@Sendable () -> ForwardingNews>({ .nothing })

  /// - Parameter arrived: when its runs came.
  init(changes: Int, counting: Int, isForked: Bool = false, arrived: Int64 = 0) throws {
    name = try PartitionName("room=1")
    directory = NSTemporaryDirectory() + "seamesh-held-" + String(UUID().uuidString.prefix(8))
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let key = SigningKey()
    store = try Store.open(directory: directory, fleet: fleet, device: DeviceID(key.publicKey))
    let partition = name.id(fleet: fleet, hash: SHA256.hash)
    let chain = ChainIdentity(fleet: fleet, partition: partition, replica: ReplicaID(high: 1, low: 2))
    (self.chain, self.isForked) = (chain, isForked)
    let genesis = chain.genesis(SHA256.hash)
    var hashes = [genesis]
    var runs: [Run] = []
    for index in 0..<changes {
      let run = try oneChangeRun(chain, after: UInt64(index), hashes[index], id: Int64(index), key)
      let encoded = RunCodec.encode(run)
      hashes.append(
        try RunCodec.decode(encoded[...], fleet: fleet, partition: partition, hash: SHA256.hash).hashAtLast)
      runs.append(run)
    }
    ledger = HashLedger(Array(hashes.dropFirst()))
    self.hashes = hashes
    try store.transact(isBacklog: false) { [name] transaction in
      try transaction.addPartition(partition, name)
      for (index, run) in runs.enumerated() {
        let sequence = UInt64(index + 1)
        let appended = AppendedRun(
          first: sequence, last: sequence, context: VersionVector(), body: RunCodec.encode(run)[...],
          arrived: arrived)
        _ = try transaction.append(appended, to: chain, genesis: genesis)
      }
    }
    try count(counting)
  }

  /// Lets so many changes count. As the engine writes it: the chain hash of what counts beside both numbers.
  func count(_ counting: Int) throws {
    try store.transact(isBacklog: false) { transaction in
      let received = Engine.ChainMark(sequence: UInt64(hashes.count - 1), hash: hashes[counting])
      let accepted = Engine.ChainMark(sequence: UInt64(counting), hash: hashes[counting])
      try transaction.setMarks(ChainMarks(received: received, accepted: accepted, isForked: isForked), of: chain)
    }
    counted.withLock { $0 = counting }
  }

  /// The runs with these changes do not read any more.
  func damage(_ changes: ClosedRange<UInt64>) throws {
    let (first, last) = (changes.lowerBound, changes.upperBound)
    try store.database.execute("UPDATE runs SET sum=sum+1 WHERE last BETWEEN \(first) AND \(last)")
  }

  func readIfFree<Result>(_ body: (StoreReader) throws -> Result) throws -> Result? { try read(body) }
  var held: LogAmount? { LogAmount(changes: store.totals.changes, bytes: store.totals.logBytes) }

  /// What counts, and where the log is.
  func accepted() throws -> (vectors: [PartitionID: VersionVector], position: String) {
    let counting = counted.withLock { $0 }
    let position = ChainPosition(sequence: UInt64(counting), tip: hashes[counting].tip)
    let vector = VersionVector(counting > 0 ? [chain.replica: position] : [:])
    return ([partition: vector], try read { try $0.logEnd().text })
  }

  /// Everything that is not here might come.
  func leavesOut(_ places: [StatementPlace]) -> Set<Digest> { [] }

  var partition: PartitionID { name.id(fleet: fleet, hash: hash) }
  var key: ChainKey { ChainKey(partition: partition, replica: chain.replica) }

  deinit { try? FileManager.default.removeItem(atPath: directory) }

  /// How far each chain was said to be in the backend at the last reading.
  var told: [UInt64] { backendVectors.withLock { $0.last }.map { $0.entries.values.map(\.sequence) } ?? [] }

  /// How often it was told.
  var toldCount: Int { backendVectors.withLock { $0.count } }

  func read<Result>(_ body: (StoreReader) throws -> Result) throws -> Result { try store.readers.read(body) }
  func backendHas(_ vectors: [(PartitionName, VersionVector)]) {
    backendVectors.withLock { $0 += vectors.map(\.1) }
  }
  func news(timeoutMilliseconds: UInt64) -> ForwardingNews { nextNews.withLock { $0 }() }
  func wake() {}
  func remembered() -> String? { nil }
  func remember(_ text: String) {}
  var wallMilliseconds: Int64 { 0 }
}

/// Hands out a log that is held, in its own way; nothing comes to it, and nothing is remembered.
protocol HeldLogSource: ForwardingSource {
  var log: HeldLog { get }
}

extension HeldLogSource {
  var fleet: FleetID { log.fleet }
  var hash: HashFunction { log.hash }
  var held: LogAmount? { log.held }
  func accepted() throws -> (vectors: [PartitionID: VersionVector], position: String) { try log.accepted() }
  func leavesOut(_ places: [StatementPlace]) -> Set<Digest> { log.leavesOut(places) }
  func news(timeoutMilliseconds: UInt64) -> ForwardingNews { .nothing }
  func wake() {}
  func backendHas(_ vectors: [(PartitionName, VersionVector)]) {}
  func remembered() -> String? { nil }
  func remember(_ text: String) {}
}

/// One chain's hashes, from the first on, and its mark.
final class HashLedger: Backend, @unchecked Sendable {
  var hashes: [Digest]
  let mark = Mutex<ChainPosition?>(nil)
  private let news = Mutex(DocumentNews())
  /// As they were signed.
  let statements = Mutex<[Digest: [UInt8]]>([:])
  /// Of these it was asked where they stand.
  let askedHeads = Mutex<[Digest]>([])
  /// Nothing of documents is told to whoever asks, as to a copy of the relay that forwards.
  let isHeldByCopy = Mutex(false)
  init(_ hashes: [Digest]) { self.hashes = hashes }

  var name: String { "hashes" }
  var ledgerID: String { "one" }
  func connect() {}
  func disconnect() {}
  func statementIDs() -> Set<Digest> { Set(statements.withLock { Array($0.keys) }) }
  func statementHeads(of ids: [Digest]) -> [(id: Digest, head: [UInt8])] {
    askedHeads.withLock { $0 += ids }
    return ids.compactMap { id in statements.withLock { $0[id] }.map { (id, $0) } }
  }
  func documentStart(of process: String) throws(BackendProblem) -> DocumentStart {
    try refuseCopy()
    var start = DocumentStart()
    start.step = news.withLock { $0.step }
    return start
  }
  private func refuseCopy() throws(BackendProblem) {
    guard isHeldByCopy.withLock({ $0 }) else { return }
    throw BackendProblem(.refused, "a copy of this device forwards")
  }

  func documentNews(of process: String) throws(BackendProblem) -> DocumentNews {
    try refuseCopy()
    var news = news.withLock { $0 }
    news.ledger.statements = StatementSum.of(statementIDs(), SHA256.hash)
    return news
  }

  func append(_ batch: LedgerBatch) -> AppendOutcome {
    if let written = batch.marks.last { mark.withLock { $0 = written.position } }
    news.withLock { news in
      news.step = batch.step?.number ?? news.step
      if !batch.documentPosition.isEmpty { news.position = batch.documentPosition }
    }
    return AppendOutcome()
  }

  func interrupt() {}

  func answers(to questions: [ChainQuestion]) -> [ChainAnswer] {
    questions.map { question in
      var answer = ChainAnswer()
      answer.highest = UInt64(hashes.count)
      answer.hashes = hashes.suffix(1)
      answer.mark = mark.withLock { $0 }
      answer.hasChange =
        hashes.indices.contains(Int(question.sequence) - 1) && hashes[Int(question.sequence) - 1] == question.hash
      return answer
    }
  }
}
