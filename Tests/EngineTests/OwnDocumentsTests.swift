import Identity
import Replication
import Testing

@testable import Engine
@testable import Storage

/// Documents that own changes make lie in the runs of these alone (decision 50), and are what a merge would make of them.
@Suite struct OwnDocumentsTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  /// Adds a field, and so needs the document that is there.
  private struct Sign: DocumentEdit {
    let id: Value
    var collection: Text { Put.collection }
    init(_ id: Text) { self.id = .string(id) }
    func outcome(on present: PresentDocument) throws -> DocumentOutcome {
      guard let n = present.body?["n"] else { throw Refuse.Refusal() }
      return .body(map(["n": n, "signed": .bool(true)]), hints: .none)
    }
  }

  /// All in one transaction, each edit a change.
  private func write(_ node: BenchNode, _ edits: [any DocumentEdit]) throws -> [ChangeReceipt] {
    let jobs = edits.map { node.job(room, [$0]) }
    node.trace.clear()
    node.engine.turn(jobs.map { .write($0.0) })
    #expect(node.trace.commits == 1)
    return try jobs.map { try $0.1.get() }
  }

  private func lyingInRuns(_ node: BenchNode) throws -> Int64 { try node.count("documents WHERE run IS NOT NULL") }

  @Test("what a bulk of changes makes lies in their runs, reads as it was written, and is the same on another node")
  func bulk() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    let node = bench.nodes[0]
    let ids = (0..<100).map { Text("d\($0)") }
    let receipts = try write(node, ids.map { Put($0, byteCount: 400) })
    #expect(try node.count("runs") == 2, "64 changes, and the rest")
    #expect(try lyingInRuns(node) == 100)
    bench.meet(0, 1)
    for (id, receipt) in zip(ids, receipts) {
      let state = try #require(try node.stored(room, id))
      #expect(receipt.etags == [DocumentETag.of(state, SHA256.hash)] && receipt.created == [true])
      #expect(try DocumentState(encoded: state).encoded == state)
      #expect(try bench.nodes[1].stored(room, id) == state)
    }
    #expect(node.feed.records.flatMap(\.documents).reduce(0) { $0 + $1.count } == 100, "each is told once")
  }

  @Test("who changes or ends in the same transaction what it made finds it there")
  func changedAtOnce() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    let node = bench.nodes[0]
    let receipts = try write(
      node, [Put("a", byteCount: 400), Put("b", byteCount: 400), Sign("a"), Erase("b"), Put("b"), Sign("a")])
    #expect(receipts.map(\.created) == [[true], [true], [false], [false], [true], [false]])
    #expect(receipts.map { $0.dot?.sequence } == [1, 2, 3, 4, 5, nil])
    bench.meet(0, 1)
    for node in bench.nodes {
      #expect(try node.shown(room, "a")?["signed"] == .bool(true))
      #expect(try node.shown(room, "b") == map(["n": .int(1)]))
    }
    let state = try #require(try node.stored(room, "a"))
    #expect(receipts[5].etags == [DocumentETag.of(state, SHA256.hash)])
    #expect(try bench.nodes[1].stored(room, "a") == state)
  }

  @Test("a change that makes one document and edits another has both in their rows, and so has one that travels apart")
  func inRows() throws {
    let node = try EngineBench().nodes[0]
    try node.write(room, Put("a"))
    try node.write(room, Sign("a"), Put("b", byteCount: 400))
    try node.write(room, Put("c", byteCount: Run.inlinePayloadByteLimit + 1))
    #expect(try lyingInRuns(node) == 0)
    for id in ["a", "b", "c"] as [Text] { #expect(try node.shown(room, id) != nil) }
  }

  @Test("a deleted document that is made again has all of it in its row")
  func madeAgain() throws {
    let node = try EngineBench().nodes[0]
    try node.write(room, Put("a", byteCount: 400))
    #expect(try lyingInRuns(node) == 1)
    try node.write(room, Erase("a"))
    #expect(try node.write(room, Put("a", byteCount: 500)).created == [true])
    #expect(try lyingInRuns(node) == 0)
    #expect(try node.shown(room, "a") == map(["n": .bytes([UInt8](repeating: 7, count: 500))]))
  }

  @Test("where the transaction fails neither run nor documents are there, and the next write makes them")
  func failed() throws {
    let node = try EngineBench().nodes[0]
    try node.refuse("INSERT", on: "documents")
    #expect(throws: (any Error).self) { try node.write(room, Put("a", byteCount: 400)) }
    #expect(try node.count("runs") == 0 && node.count("documents") == 0)
    try node.allow("documents")
    #expect(try node.write(room, Put("a", byteCount: 400)).dot?.sequence == 1)
    #expect(try lyingInRuns(node) == 1)
  }
}
