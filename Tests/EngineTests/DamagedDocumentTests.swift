import Replication
import Testing

@testable import Engine
@testable import Storage

/// A document whose row does not read: the log beside it gives it again, and nothing else is concerned.
@Suite struct DamagedDocumentTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  /// Raises a number, and so needs the document that is there.
  private struct Raise: DocumentEdit {
    let id: Value
    var collection: Text { Put.collection }
    init(_ id: Text) { self.id = .string(id) }
    func outcome(on present: PresentDocument) -> DocumentOutcome {
      guard case .int(let n)? = present.body?["n"] else { return .deleted }
      return .body(map(["n": .int(n + 1)]), hints: .none)
    }
  }

  private func key(_ id: Text) -> DocumentKey { DocumentKey(collection: Put.collection, id: .string(id)) }

  private func breakLog(_ node: BenchNode) throws {
    try node.store.store.database.execute("UPDATE runs SET body=x'ff'")
  }

  @Test("any flipped bit of a state is noticed and mended from the log, byte for byte")
  func anyBit() throws {
    let node = try EngineBench().nodes[0]
    try node.write(room, Put("a", 70_000))
    try node.write(room, Put("b"))
    let whole = try #require(try node.stored(room, "a"))
    for bit in 0..<whole.count * 8 {
      var bytes = whole
      bytes[bit / 8] ^= 1 << (bit % 8)
      try node.overwrite("a", with: bytes)
      #expect(node.engine.mend([key("a")], in: node.id(of: room)))
      #expect(try node.stored(room, "a") == whole, "bit \(bit)")
    }
    #expect(node.state.quarantine.mendedCount == whole.count * 8 && node.engine.failure == nil)
  }

  @Test("the run that keeps a document from being made anew is named, also in a row without a sum")
  func namedRun() throws {
    let node = try EngineBench().nodes[0]
    for id in ["a", "b"] as [Text] { try node.write(room, Put(id)) }
    let replica = try #require(node.state.own.replica).id
    try node.overwrite("b", with: [0xff])
    try node.cutShort(room, replica) { $0.last == 2 }
    #expect(!node.engine.mend([key("b")], in: node.id(of: room)))
    #expect(node.state.damagedRuns.count == 1 && node.state.quarantine.holds(key("b"), in: node.id(of: room)))
  }

  @Test("an own edit of a damaged document goes on from what the log has of it")
  func ownEdit() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    let node = bench.nodes[0]
    try node.write(room, Put("a", 4))
    bench.meet(0, 1)
    let replica = node.state.own.replica
    try node.overwrite("a", with: [0xff])
    try node.write(room, Raise("a"))
    for _ in 0..<4 { bench.advance(100) }
    for node in bench.nodes { #expect(try node.shown(room, "a") == map(["n": .int(5)])) }
    #expect(node.state.own.replica == replica && node.engine.failure == nil)
  }

  @Test("runs from peers that write a damaged document are taken as any, and the document is made anew with them")
  func remoteEdit() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    let node = bench.nodes[1]
    try node.overwrite("first", with: [0xff])
    let told = node.feed.records.count
    try bench.nodes[0].write(room, Raise("first"), Put("other"))
    for _ in 0..<4 { bench.advance(100) }
    #expect(node.state.mesh.sessions[session] != nil, "the session goes on")
    #expect(try node.shown(room, "first") == map(["n": .int(2)]) && node.shown(room, "other") != nil)
    #expect(node.feed.records.dropFirst(told).contains { $0.documents.contains { $0.count > 0 } })
  }

  @Test("where the log is damaged, too, all else is written and taken, and the document can be written whole for all")
  func damagedForGood() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    let (other, node) = (bench.nodes[0], bench.nodes[1])
    try node.write(room, Put("own"))
    for _ in 0..<4 { bench.advance(100) }
    try node.overwrite("first", with: [0xff])
    try breakLog(node)
    #expect(throws: DamagedDocument.self) { try node.write(room, Raise("first")) }
    #expect(node.state.quarantine.holds(key("first"), in: node.id(of: room)))
    #expect(!node.engine.mend([key("first")], in: node.id(of: room)))
    try node.write(room, Raise("own"))
    try other.write(room, Raise("first"), Put("news"))
    for _ in 0..<4 { bench.advance(100) }
    #expect(node.state.mesh.sessions[session] != nil && node.engine.failure == nil)
    #expect(try node.shown(room, "news") != nil && other.shown(room, "own") == map(["n": .int(2)]))
    #expect(node.accepted(room) == other.accepted(room))
    let receipt = try node.write(room, Put("first", 9))
    #expect(receipt.created == [false])
    #expect(!node.state.quarantine.holds(key("first"), in: node.id(of: room)))
    for _ in 0..<4 { bench.advance(100) }
    for node in bench.nodes { #expect(try node.shown(room, "first") == map(["n": .int(9)])) }
    #expect(try node.stored(room, "first") == other.stored(room, "first"), "the same entries everywhere")
  }

  private struct EraseWhole: DocumentEdit {
    let id: Value
    var collection: Text { Put.collection }
    var isWhole: Bool { true }
    func outcome(on present: PresentDocument) -> DocumentOutcome { .deleted }
  }

  @Test("written whole and then lost again, it can be deleted whole for all", arguments: [false, true])
  func lostTwice(isSetAside: Bool) throws {
    let (bench, session) = try EngineBench.pair(in: room)
    let (other, node) = (bench.nodes[0], bench.nodes[1])
    try breakLog(node)
    func lose(_ state: [UInt8]) throws {
      guard isSetAside else { return try node.overwrite("first", with: state) }
      try node.store.transact(isBacklog: false) { _ = try $0.setAside(key("first"), in: node.id(of: room)) }
      #expect(try node.store.documentsSetAside(limit: 9).map(\.key) == [key("first")])
    }
    try node.overwrite("first", with: [0xff])
    try lose([0xff])
    try node.write(room, Put("first", 9))
    for _ in 0..<4 { bench.advance(100) }
    #expect(try other.shown(room, "first") == map(["n": .int(9)]))
    // Nobody gives the log anew what it lacks.
    bench.cut(session)
    try breakLog(node)
    try lose(Array(try #require(try node.stored(room, "first")).dropLast()))
    #expect(throws: (any Error).self) { try node.shown(room, "first") }
    try node.write(room, EraseWhole(id: .string("first")))
    bench.meet(0, 1)
    for _ in 0..<400 { bench.advance(500) }
    for node in bench.nodes { #expect(try node.shown(room, "first") == nil) }
    #expect(try node.stored(room, "first") == other.stored(room, "first"), "the same entries everywhere")
  }

  @Test("the log is asked for the same document once in a minute, and mends it as soon as it reads again")
  func retries() throws {
    let bench = try EngineBench()
    let node = bench.nodes[0]
    try node.write(room, Put("a"))
    let (whole, partition) = (try #require(try node.stored(room, "a")), node.id(of: room))
    try node.overwrite("a", with: [0xff])
    try node.store.store.database.execute(
      "CREATE TEMP TABLE kept AS SELECT arrival, body FROM runs; UPDATE runs SET body=x'ff'")
    #expect(!node.engine.mend([key("a")], in: partition))
    try node.store.store.database.execute(
      "UPDATE runs SET body=(SELECT body FROM kept WHERE kept.arrival=runs.arrival)")
    #expect(!node.engine.mend([key("a")], in: partition))
    bench.clock.advance(Quarantine.retryMilliseconds)
    #expect(node.engine.mend([key("a")], in: partition))
    #expect(try node.stored(room, "a") == whole && node.state.quarantine.count == 0)
  }

  @Test(
    "one that a failed transaction made anew or replaced stays in quarantine, and the log is not asked for it at once")
  func fullDisk() throws {
    let bench = try EngineBench()
    let node = bench.nodes[0]
    try node.write(room, Put("a"))
    let (whole, partition) = (try #require(try node.stored(room, "a")), node.id(of: room))
    try node.overwrite("a", with: [0xff])
    node.store.commitFailure = StoreError.diskFull("test")
    #expect(!node.engine.mend([key("a")], in: partition))
    #expect(node.state.quarantine.holds(key("a"), in: partition) && node.state.quarantine.mendedCount == 0)
    #expect(throws: StoreError.self) { try node.write(room, Put("a", 9)) }
    #expect(node.state.quarantine.holds(key("a"), in: partition))
    node.store.commitFailure = nil
    #expect(!node.engine.mend([key("a")], in: partition))
    bench.clock.advance(Quarantine.retryMilliseconds)
    #expect(node.engine.mend([key("a")], in: partition))
    #expect(try node.stored(room, "a") == whole && node.state.quarantine.count == 0)
    #expect(node.state.quarantine.mendedCount == 1 && node.engine.failure == nil)
  }
}
