import Identity
import Replication
import Testing
import Wire
import TestSupport

@testable import Storage

/// A random history of a partition that three replicas write concurrently, in an order in which it can be delivered.
struct History {
  let fleet = testFleet
  let partition = partitionID(77)
  let replicas = [replica(1), replica(2), replica(3)]
  private(set) var changes: [HistoryChange] = []

  private struct Author {
    var seen = VersionVector()
    /// Generation of each document, as far as the author has seen.
    var generations: [DocumentKey: UInt64] = [:]
  }

  /// `padding`: bytes of an additional value in each change.
  init(seed: UInt64, changes count: Int, padding: Int = 0) {
    var random = SplitMix64(seed: seed &+ 1_000)
    var authors = replicas.map { _ in Author() }
    var clock: UInt64 = 1_000
    for _ in 0..<count {
      let index = Int.random(in: 0..<replicas.count, using: &random)
      if Int.random(in: 0..<4, using: &random) == 0 {
        catchUp(&authors[index], replicas[index])
      }
      clock += UInt64.random(in: 0...2, using: &random)
      let dot = Dot(replica: replicas[index], sequence: authors[index].seen.sequence(of: replicas[index]) + 1)
      let writes = History.writes(&authors[index].generations, padding: padding, &random)
      var context = authors[index].seen
      context[replicas[index]] = nil
      let timestamp = HybridTimestamp(milliseconds: clock, counter: 0)
      changes.append(
        HistoryChange(context: WriteContext(dot: dot, timestamp: timestamp, context: context), writes: writes))
      authors[index].seen[replicas[index]] = ChainPosition(sequence: dot.sequence, tip: .zero)
    }
  }

  init(changes: [HistoryChange]) { self.changes = changes }

  /// What is left when a chain counts only up to `sequence`: changes that saw more of it stay, as in the design.
  func without(_ replica: ReplicaID, above sequence: UInt64) -> History {
    History(changes: changes.filter { $0.dot.replica != replica || $0.dot.sequence <= sequence })
  }

  func log(_ number: PartitionNumber) -> DocumentFold.Log {
    DocumentFold.Log(fleet: fleet, partition: partition, number: number, hash: SHA256.hash)
  }

  private func catchUp(_ author: inout Author, _ own: ReplicaID) {
    for change in changes where !author.seen.covers(change.dot) {
      author.seen[change.dot.replica] = ChainPosition(sequence: change.dot.sequence, tip: .zero)
      for write in change.writes {
        let key = DocumentKey(collection: write.collection, id: write.id)
        author.generations[key] = max(author.generations[key] ?? 0, write.generation)
      }
    }
  }

  private static func writes(
    _ generations: inout [DocumentKey: UInt64], padding: Int, _ random: inout SplitMix64
  ) -> [DocumentWrite] {
    let ids = Set((0..<Int.random(in: 1...3, using: &random)).map { _ in Int64.random(in: 0..<8, using: &random) })
    return ids.sorted().map { id in
      let collection: Text = id % 2 == 0 ? "boats" : "reports"
      let key = DocumentKey(collection: collection, id: .int(id))
      let generation = generations[key] ?? 0
      let kind = kind(generation, &random)
      let next = kind == .edit ? generation : generation + (kind == .delete && generation % 2 == 0 ? 0 : 1)
      generations[key] = next
      return DocumentWrite(
        collection: collection, id: .int(id), kind: kind, generation: next,
        operations: kind == .delete ? [] : operations(padding, &random))
    }
  }

  private static func kind(_ generation: UInt64, _ random: inout SplitMix64) -> DocumentWrite.Kind {
    guard generation % 2 == 1 else { return .create }
    return Int.random(in: 0..<5, using: &random) == 0 ? .delete : .edit
  }

  private static func operations(_ padding: Int, _ random: inout SplitMix64) -> [Operation] {
    var operations = [Operation(.set, [.key("name")], value: .int(Int64.random(in: 0..<100, using: &random)))]
    if padding > 0 {
      operations.append(Operation(.set, [.key("padding")], value: .bytes([UInt8](repeating: 1, count: padding))))
    }
    switch Int.random(in: 0..<5, using: &random) {
    case 0: operations.append(Operation(.increment, [.key("count")], value: .int(3)))
    case 1: operations.append(Operation(.remove, [.key("gone")]))
    case 2: operations.append(Operation(.setAdd, [.key("tags")], value: .int(Int64.random(in: 0..<4, using: &random))))
    case 3: operations.append(Operation(.setRemove, [.key("tags")], value: .int(1)))
    default: operations.append(Operation(.listInsert, [.key("list")], value: .bool(true), position: [0x40]))
    }
    return operations
  }
}

struct HistoryChange {
  let context: WriteContext
  let writes: [DocumentWrite]
  var dot: Dot { context.dot }
  private var payload: [UInt8] { PayloadEncoder.encode(writes, dot: dot) }

  func accepted(in partition: PartitionNumber) throws -> AcceptedChange {
    var scanner = PayloadScanner()
    let payload = payload
    return AcceptedChange(
      partition: partition, context: context, payload: payload[...],
      documents: try scanner.scan(payload[...], dot: dot).documents)
  }

  /// Puts the change into the log, as a run of its own.
  func append(to transaction: borrowing Transaction, _ partition: PartitionNumber, _ history: History) throws {
    let chain = ChainIdentity(fleet: history.fleet, partition: history.partition, replica: dot.replica)
    let header = ChangeHeader(
      sequence: dot.sequence, timestamp: context.timestamp, wall: WallTime(milliseconds: 1), payloadByteCount: 0,
      payloadHash: .zero, keyHashes: [])
    let (change, _) = try Change.plain(header, payload: payload, chain: chain, SHA256.hash)
    let digest = RunRecord.digest(of: context.context, SHA256.hash)
    let zero = try #require(Signature([UInt8](repeating: 0, count: 64)))
    let hash = change.header.chainHash(chain: chain, previous: .zero, contextDigest: digest, SHA256.hash)
    let record = RunRecord(
      chain: chain, first: dot.sequence, last: dot.sequence, hashBefore: .zero, context: context.context,
      contextDigest: digest, hashAtLast: hash, signature: zero)
    let number = try transaction.number(of: dot.replica, in: partition, genesis: .zero)
    try transaction.appendRun(
      number, first: dot.sequence, last: dot.sequence, context: context.context,
      body: RunCodec.encode(Run(record: record, changes: [change], hashes: [hash]))[...])
    if change.header.isApart {
      try transaction.addLargePayload(change.header.payloadHash, bytes: change.payload)
    }
  }
}
