import Identity
import Replication
import TestSupport
import Testing
import Wire

@testable import Engine
@testable import Storage

/// Bounds and counts of a store, as who uses it relies on them.
@Suite struct PromiseTests {
  private let directory: TemporaryDirectory
  private let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try directory.open()
  }

  private struct Refused: Error {}

  @Test("a transaction that asks for a partition's totals sees what it has written itself")
  func totalsWithin() throws {
    let name = try PartitionName("agency=Test")
    let chain = ChainIdentity(fleet: testFleet, partition: partitionID(1), replica: replica(1))
    let run = AppendedRun(first: 1, last: 3, context: vector([:]), body: [1, 2])
    try store.transact(isBacklog: false) { transaction in
      try transaction.addPartition(partitionID(1), name)
      _ = try transaction.append(run, to: chain, genesis: digest(0))
      #expect(try transaction.logPartitions().map(\.totals.changes) == [3])
    }
    #expect(try store.logPartitions().map(\.totals.changes) == [3])
  }

  @Test("a partition that was taken away and comes back takes what is written to it, and only then")
  func comesBack() throws {
    let name = try PartitionName("agency=Test")
    let key = DocumentKey(collection: "reports", id: .int(1))
    try store.transact(isBacklog: false) { try $0.addPartition(partitionID(1), name) }
    try store.transact(isBacklog: false) { transaction in
      try transaction.removePartition(partitionID(1))
      try transaction.addPartition(partitionID(2), PartitionName("agency=Other"))
      try transaction.addPartition(partitionID(1), name)
      try transaction.store(LogDocument(isAlive: true, state: [1]), over: nil, as: key, in: partitionID(1))
    }
    #expect(try store.document(key, in: partitionID(1))?.state == [1])
    #expect(try store.document(key, in: partitionID(2)) == nil)
    #expect(Set(try store.logPartitions().map(\.name.text)) == ["agency=Test", "agency=Other"])
    #expect(try store.partition(partitionID(1))?.counters.documents == 1)
  }

  @Test("a partition's name is stored though the first attempt was undone, and though the partition was away meanwhile")
  func nameIsGivenAgain() throws {
    let name = try PartitionName("agency=Test")
    func names() throws -> [Text?] { try store.partitions().map { $0.name?.text } }
    try store.write(.full) { _ = try $0.number(of: partitionID(1)) }
    #expect(throws: Refused.self) {
      try store.write(.full) { transaction -> Void in
        _ = try transaction.number(of: partitionID(1), name: name)
        throw Refused()
      }
    }
    #expect(try names() == [nil])
    try store.write(.full) { _ = try $0.number(of: partitionID(1), name: name) }
    #expect(try names() == ["agency=Test"])
    try store.write(.full) { try $0.removeEmptyPartition(partitionID(1)) }
    try store.write(.full) { _ = try $0.number(of: partitionID(1)) }
    #expect(try names() == [nil])
    try store.write(.full) { _ = try $0.number(of: partitionID(1), name: name) }
    #expect(try names() == ["agency=Test"])
  }

  @Test("a reader that knew a partition before it was taken away finds what lies in it once it is back")
  func readerFollows() throws {
    let name = try PartitionName("agency=Test")
    let key = DocumentKey(collection: "reports", id: .int(1))
    func found() throws -> PartitionNumber? {
      try store.readers.read { reader throws(StoreError) in try reader.partitionNumber(partitionID(1)) }
    }
    try store.transact(isBacklog: false) { try $0.addPartition(partitionID(1), name) }
    let before = try #require(try found())
    try store.transact(isBacklog: false) { try $0.removePartition(partitionID(1)) }
    #expect(try found() == nil)
    try store.transact(isBacklog: false) { transaction in
      try transaction.addPartition(partitionID(1), name)
      try transaction.store(LogDocument(isAlive: true, state: [1]), over: nil, as: key, in: partitionID(1))
    }
    let number = try #require(try found())
    #expect(number != before)
    #expect(try store.partitionNumber(partitionID(1)) == number)
  }

  @Test("statements are kept up to their limit, and one more is refused with all of its transaction")
  func statementLimit() throws {
    try store.write(.full) { transaction in
      for number in 0..<UInt64(Statement.countLimit) {
        try transaction.addStatement(id: digest(number), encoded: [1])
      }
    }
    #expect(throws: StoreError.limitReached(what: "statements", limit: Statement.countLimit)) {
      try store.write(.full) { transaction in
        try transaction.subscribe("with it")
        try transaction.addStatement(id: digest(.max), encoded: [1])
      }
    }
    #expect(try store.statements().count == Statement.countLimit)
    #expect(try store.subscriptions().isEmpty)
  }

  @Test("peers are remembered up to a number; who is forgotten leaves no address, and a late note changes no order")
  func peerLimit() throws {
    try store.database.execute(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT \(StoredPeer.countLimit))
      INSERT INTO peers (device, last_contact) SELECT randomblob(32), i FROM n;
      INSERT INTO peer_addresses (device, address, last_used) SELECT device, '10.0.0.1:1', last_contact FROM peers;
      """)
    let (near, far) = (DeviceID(digest(1)), DeviceID(digest(2)))
    try store.write(.full) { transaction in
      try transaction.noteContact(far, address: "10.0.0.2:1", time: 10_000)
      try transaction.noteContact(near, address: "10.0.0.3:1", time: 20_000)
      // An older sighting of the last one that was met.
      try transaction.noteContact(near, address: nil, time: 1)
    }
    let peers = try store.peers()
    #expect(peers.count == StoredPeer.countLimit)
    #expect(peers.prefix(2).map(\.device) == [near, far])
    #expect(peers.last?.lastContact == 3)
    #expect(try store.database.integer("SELECT count(*) FROM peer_addresses") == Int64(StoredPeer.countLimit))
  }

  @Test("a page holds what its bytes allow, and a document larger than all of them comes alone")
  func pageBytes() throws {
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      for (key, size) in [(1, 100), (2, 5_000), (3, 100), (4, 100)] as [(UInt8, Int)] {
        let state = [UInt8](repeating: key, count: size)
        #expect(try transaction.insertNew(place.partition, place.collection, key: [key], state: state))
      }
    }
    let partition = try #require(try store.partitionNumber(partitionID(1)))
    let collection = try #require(try store.collectionNumber("reports"))
    var pages: [[[UInt8]]] = []
    while let page = Optional(
      try store.documents(partition, collection, after: pages.last?.last, limit: 10, byteLimit: 1_000)), !page.isEmpty
    {
      pages.append(page.map(\.key))
    }
    #expect(pages == [[[1]], [[2]], [[3], [4]]])
  }

  @Test(
    "one batch for several partitions and collections, with the same ids everywhere, keeps all of them apart",
    arguments: [1, 3])
  func foldApart(count: Int64) throws {
    let places = [(1, "boats"), (2, "boats"), (2, "reports"), (1, "reports")] as [(UInt64, Text)]
    let report = try store.write(.full) { transaction in
      var batch = AcceptedBatch()
      for (index, (number, collection)) in places.enumerated() {
        let partition = try transaction.number(of: partitionID(number))
        for id in 0..<count {
          let dot = Dot(replica: replica(UInt64(index) + 1), sequence: UInt64(id) + 1)
          // The last place edits its documents in the same batch, in the order of delivery.
          for (step, kind) in [DocumentWrite.Kind.create, .edit].prefix(index == 3 ? 2 : 1).enumerated() {
            let write = DocumentWrite(
              collection: collection, id: .int(id), kind: kind, generation: 1,
              operations: [Operation(.set, [.key("n")], value: .int(Int64(10 * index + step)))])
            let own = Dot(replica: dot.replica, sequence: dot.sequence * 2 + UInt64(step))
            let context = WriteContext(
              dot: own, timestamp: HybridTimestamp(rawValue: own.sequence), context: vector([:]))
            let payload = PayloadEncoder.encode([write], dot: own)
            var scanner = PayloadScanner()
            let scan = try scanner.scan(payload[...], dot: own)
            batch.append(
              AcceptedChange(partition: partition, context: context, payload: payload[...], documents: scan.documents))
          }
        }
      }
      return try DocumentFold.fold(batch, in: transaction)
    }
    #expect(report.count == 4 * Int(count) && report.aliveDelta == 4 * Int(count))
    #expect(try store.partitions().map(\.counters.documents) == [2 * count, 2 * count])
    for (index, (number, collection)) in places.enumerated() {
      for id in 0..<count {
        let key = DocumentKey(collection: collection, id: .int(id))
        let stored = try #require(try store.document(key, in: partitionID(number)))
        let shown = try DocumentState(encoded: stored.state).shown()
        #expect(shown?["n"] == .int(Int64(10 * index + (index == 3 ? 1 : 0))))
      }
    }
  }

  @Test("a document that comes deleted, is made, deleted and taken away is counted while it lives")
  func countedWhileAlive() throws {
    func documents() throws -> Int64? { try store.partition(partitionID(1))?.counters.documents }
    let key: [UInt8] = [6, 1]
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      #expect(try transaction.insertNew(place.partition, place.collection, key: key, isAlive: false, state: [1]))
    }
    #expect(try documents() == 0)
    for isAlive in [true, true, false, true] {
      try store.write(.full) { transaction in
        let place = try Place(transaction)
        let row = try #require(try transaction.document(place.partition, place.collection, key: key))
        try transaction.replace(row, in: place.partition, place.collection, isAlive: isAlive, state: [2])
      }
      #expect(try documents() == (isAlive ? 1 : 0))
    }
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      try transaction.remove(
        try #require(try transaction.document(place.partition, place.collection, key: key)), in: place.partition)
    }
    #expect(try documents() == 0 && store.counters.documents == 0)
  }

  @Test("a question that takes longer than it may ends by itself")
  func timeLimit() throws {
    #expect(throws: StoreError.interrupted) {
      try store.readers.read(within: 0) { reader in
        _ = try reader.database.integer(
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 3000000) SELECT max(i) FROM n")
      }
    }
  }

  @Test("contexts that differ in a branch alone come back as they were, and one in so many is written out in full")
  func contextBranches() throws {
    let tips = (0..<100 as Range<UInt64>).map { TipHash(high: $0 % 2, low: 5) }
    func context(_ tip: TipHash) -> VersionVector {
      var context = vector([2: 4, 3: 4, 4: 4, 5: 4])
      context[replica(2)] = ChainPosition(sequence: 4, tip: tip)
      return context
    }
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      for (index, tip) in tips.enumerated() {
        let sequence = UInt64(index) + 1
        try transaction.appendRun(place.chain, first: sequence, last: sequence, context: context(tip), body: [1])
      }
    }
    let chain = try #require(try store.chains().first).number
    #expect(try store.runs(of: chain, after: 0, byteLimit: .max).map(\.context) == tips.map(context))
    let full = try #require(try store.database.integer("SELECT count(*) FROM runs WHERE context_base IS NULL"))
    #expect(full >= 100 / Int64(StoredContext.fullInterval) && full < 50)
  }
}
