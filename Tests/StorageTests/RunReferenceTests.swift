import Replication
import Testing
import TestSupport
import Wire

@testable import Storage

/// What one change has written lies in its run alone, and reads as if it lay beside the document.
@Suite struct RunReferenceTests {
  private let directory: TemporaryDirectory
  private let store: Store
  private let operations = [
    Operation(.set, [.key("name")], value: .string(Text(String(repeating: "Orca ", count: 40)))),
    Operation(.set, [.key("draught")], value: .int(4)),
  ]

  init() throws {
    directory = try TemporaryDirectory()
    store = try directory.open()
  }

  private var wholeState: [UInt8] { state(operations, id: 1).storedBytes }

  private func write(_ operations: [Operation], id: Int64) -> DocumentWrite {
    DocumentWrite(collection: "boats", id: .int(id), kind: .create, generation: 1, operations: operations)
  }

  private func context(_ id: Int64) -> WriteContext {
    WriteContext(
      dot: Dot(replica: replica(1), sequence: UInt64(id)), timestamp: HybridTimestamp(rawValue: 7), context: vector([:])
    )
  }

  private func state(_ operations: [Operation], id: Int64) -> DocumentState {
    DocumentState.merged(of: [AcceptedWrite(context(id), write(operations, id: id))])
  }

  /// A run whose body has something before and behind the payload, and lies in the midst of a frame.
  private func take(_ operations: [Operation], id: Int64) throws {
    let dot = context(id).dot
    let payload = PayloadEncoder.encode([write(operations, id: id)], dot: dot)
    let frame = [9, 9, 9] + [UInt8](repeating: 5, count: 11) + payload + [6, 6]
    var scanner = PayloadScanner()
    let scan = try scanner.scan(frame[14..<14 + payload.count], dot: dot)
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      let arrival = try transaction.appendRun(
        place.chain, first: dot.sequence, last: dot.sequence, context: vector([:]), body: frame[3...])
      var batch = AcceptedBatch()
      batch.append(
        scan.documents.map { PlacedWrite(sequence: dot.sequence, timestamp: context(id).timestamp, view: $0) },
        of: dot.replica, in: place.partition, context: vector([:]), sight: .plain, buffer: frame[3...],
        arrival: arrival)
      _ = try DocumentFold.fold(batch, in: transaction)
    }
  }

  private func row(_ id: Int64) throws -> DocumentRow {
    let partition = try #require(try store.partitions().first?.number)
    let collection = try #require(try store.collectionNumber("boats"))
    let key = DocumentKey(collection: "boats", id: .int(id)).id
    let row = try #require(try store.document(partition, collection, key: key))
    let listed = try store.documents(partition, collection, limit: 100)
    #expect(listed.contains(row))
    return row
  }

  private func stored(_ column: String, _ id: Int64) throws -> Int64? {
    try store.database.integer("SELECT \(column) FROM documents ORDER BY id LIMIT 1 OFFSET \(id - 1)")
  }

  @Test("its operations lie in the run alone, and it reads as it was written")
  func reads() throws {
    try take(operations, id: 1)
    #expect(try row(1).state == wholeState)
    #expect(try row(1).isIntact)
    #expect(try stored("length(state)", 1) ?? .max < 64)
    #expect(try stored("run", 1) == 1)
  }

  @Test("few operations lie beside it")
  func short() throws {
    try take([Operation(.set, [.key("n")], value: .int(1))], id: 1)
    #expect(try store.database.integer("SELECT count(*) FROM documents WHERE run IS NULL") == 1)
    #expect(try row(1).isIntact)
  }

  @Test("with another state it has all of it in its row")
  func replaced() throws {
    try take(operations, id: 1)
    let before = try row(1)
    let collection = try #require(try store.collectionNumber("boats"))
    try store.write(.full) {
      try $0.replace(before, in: PartitionNumber(rawValue: 1), collection, isAlive: true, state: before.state)
    }
    #expect(try row(1) == before)
    #expect(try store.database.integer("SELECT count(*) FROM documents WHERE run IS NULL AND length IS NULL") == 1)
  }

  @Test("documents of several runs, and by turns, each read their own")
  func several() throws {
    for id in 1...5 as ClosedRange<Int64> {
      try take(operations + [Operation(.set, [.key("number")], value: .int(id))], id: id)
    }
    for id in [3, 1, 5, 5, 2, 4, 1] as [Int64] {
      let expected = state(operations + [Operation(.set, [.key("number")], value: .int(id))], id: id)
      #expect(try DocumentState(stored: try row(id)) == expected)
    }
  }

  @Test(
    "one whose run is not as it was written, or does not reach so far, or is gone is not as it was written",
    arguments: [
      "UPDATE runs SET body=zeroblob(length(body))", "UPDATE runs SET body=x'05'",
      "DELETE FROM runs", "UPDATE documents SET start=start+1", "UPDATE documents SET start=-1",
      "UPDATE documents SET length=9223372036854775807", "UPDATE documents SET length=-1",
      "UPDATE documents SET run=99",
    ])
  func damaged(sql: String) throws {
    try take(operations, id: 1)
    try take(operations, id: 2)
    try store.database.execute(sql)
    store.numbers.removeAll()
    #expect(try !row(1).isIntact)
  }

  @Test("a run that comes anew is read anew")
  func mended() throws {
    try take(operations, id: 1)
    let chain = try #require(try store.chains().first)
    let run = try #require(try store.lastRun(of: chain.number))
    try store.database.execute("UPDATE runs SET body=zeroblob(length(body))")
    store.numbers.removeAll()
    #expect(try !row(1).isIntact)
    try store.write(.full) {
      try $0.replaceRun(at: 1, of: chain.number, first: 1, last: 1, context: vector([:]), body: run.body[...])
    }
    #expect(try row(1).isIntact)
  }

  @Test("a store of format 4 is taken on, with whole states")
  func migration() throws {
    let older = try TemporaryDirectory()
    try {
      let store = try older.open { $0.migrations = [.first, .holdings, .sums] }
      try store.database.execute(
        """
        INSERT INTO partitions (id, hash, name) VALUES (1, zeroblob(32), 'p=1');
        INSERT INTO collections (id, name) VALUES (1, 'c');
        INSERT INTO documents (partition, collection, key, alive, state) VALUES (1, 1, x'01', 1, x'02');
        """)
    }()
    let store = try older.open()
    let row = try store.document(PartitionNumber(rawValue: 1), CollectionNumber(rawValue: 1), key: [1])
    #expect(row?.state == [2])
    #expect(row?.isIntact == true)
  }
}
