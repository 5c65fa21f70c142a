import Replication
import Testing

@testable import Storage

/// All that a store holds, for comparing two states of it.
struct StorePicture: Equatable {
  var partitions: [StoredPartition]
  var chains: [StoredChain]
  /// In order of arrival. The places themselves may have gaps where a transaction failed.
  var runs: [Run]
  var documents: [DocumentRow]
  var statements: [StoredStatement]
  var subscriptions: [Text]
  var holdings: [KeptHoldings]
  var reissues: Set<Reissue> = []
  var meta: [MetaKey: [UInt8]] = [:]
  var pieces: [StagedShare]
  var largePayloads: Int64?

  struct Run: Equatable {
    let chain: ChainNumber
    let first: UInt64
    let last: UInt64
    let context: VersionVector
    let body: [UInt8]
  }

  init(_ store: Store) throws {
    partitions = try store.partitions()
    chains = try store.chains()
    let all = try store.chains().flatMap { try store.runs(of: $0.number, after: 0, byteLimit: .max) }
    runs = all.sorted { $0.arrival < $1.arrival }.map {
      Run(chain: $0.chain, first: $0.first, last: $0.last, context: $0.context, body: $0.body)
    }
    documents = []
    for partition in partitions {
      for collection in try store.collections(of: partition.number) {
        documents += try store.documents(partition.number, collection.number, limit: 1_000)
      }
      reissues.formUnion(try store.reissues(in: partition.number))
    }
    statements = try store.statements()
    subscriptions = try store.subscriptions()
    holdings = try store.holdings()
    for key in MetaKey.allCases where key != .syncs { meta[key] = try store.meta(key) }
    pieces = try store.stagedShares()
    largePayloads = try store.database.integer("SELECT count(*) || total(length(bytes)) FROM large_payloads")
  }
}

/// What must hold in every store, whatever happened to its disk.
func expectSound(_ store: Store, _ history: History) throws {
  #expect(try store.database.string("PRAGMA integrity_check") == "ok")
  let alive = try store.database.integer("SELECT count(*) FROM documents WHERE alive=1")
  #expect(store.counters.documents == alive)
  for chain in try store.chains() {
    let runs = try store.runs(of: chain.number, after: 0, byteLimit: .max)
    #expect(runs.map(\.first) == (0..<runs.count).map { UInt64($0 + 1) }, "a number is used twice, or missing")
    #expect(runs.last?.last ?? 0 == chain.received.sequence && chain.accepted.sequence <= chain.received.sequence)
  }
  for partition in try store.partitions() {
    let chains = try store.chains(of: partition.number)
    #expect(partition.counters.changes == chains.reduce(0) { $0 + Int64($1.received.sequence) })
  }
  try expectFolded(store, history)
}

/// Folds every document anew from the log, in a transaction that is given up again.
private func expectFolded(_ store: Store, _ history: History) throws {
  struct GivenUp: Error {}
  guard let partition = try store.partition(history.partition)?.number else { return }
  var (keys, accepted) = (Set<DocumentKey>(), VersionVector())
  for collection in try store.collections(of: partition) {
    let name = try store.collectionName(collection.number)
    for row in try store.documents(partition, collection.number, limit: 1_000) {
      keys.insert(DocumentKey(collection: name, id: row.key))
    }
  }
  for chain in try store.chains(of: partition) { accepted[chain.replica] = chain.accepted.position }
  let before = try StorePicture(store)
  #expect(throws: GivenUp.self) {
    try store.write(.full) { transaction in
      _ = try DocumentFold.rebuild(keys, of: history.log(partition), in: transaction, accepted: accepted) {
        replica, header, _, context in
        WriteContext(
          dot: Dot(replica: replica, sequence: header.sequence), timestamp: header.timestamp, context: context)
      }
      // The connection sees its own writes: the same questions, asked inside the transaction.
      #expect(try StorePicture(store).documents == before.documents)
      throw GivenUp()
    }
  }
}
