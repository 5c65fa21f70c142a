import Replication
import Testing

@testable import Engine
@testable import Storage

/// A document whose row is a reference into the run that made it, where the disk gives that run otherwise than it was
/// written.
@Suite struct DamagedReferenceTests {
  private let room: PartitionName
  private let bench: EngineBench
  private let chain: ReplicaID
  private let run: LogRun
  private let key = DocumentKey(collection: Put.collection, id: .string("a"))
  private var author: BenchNode { bench.nodes[0] }
  private var node: BenchNode { bench.nodes[1] }

  /// So long that its operations lie in its run alone.
  private struct Report: DocumentEdit {
    let id: Value = .string("a")
    let n: Int64
    var collection: Text { Put.collection }
    var isWhole: Bool { true }
    func outcome(on present: PresentDocument) -> DocumentOutcome {
      .body(map(["n": .int(n), "text": .string(Text(String(repeating: "x", count: 80)))]), hints: .none)
    }
  }

  /// Node 1 has the document from node 0, and the two have parted.
  init() throws {
    room = try PartitionName("room=1")
    bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Report(n: BenchNode.number))
    bench.cut(bench.meet(1, 0))
    chain = try #require(bench.nodes[0].state.own.replica).id
    run = try #require(try bench.nodes[1].rows(room, chain).first)
    try #require(
      try bench.nodes[1].store.store.database.integer("SELECT count(*) FROM documents WHERE run IS NOT NULL") == 1)
  }

  private func flip() throws { try node.flip(room, chain) { $0.arrival == run.arrival } }

  /// Runs that came since alone, and no time to ask for others.
  private func bringNews() throws {
    let session = bench.connect(1, 0)
    bench.run()
    bench.cut(session)
    try #require(node.accepted(room) == author.accepted(room) && node.state.damagedRuns.count == 1)
  }

  enum Return: CaseIterable { case fromPeer, fromPeerAfterRestart, fromDisk, fromDiskAfterRestart }

  private func giveBack(_ way: Return) throws {
    if way == .fromDiskAfterRestart { try node.overwrite(run) }
    if way == .fromPeerAfterRestart || way == .fromDiskAfterRestart {
      try bench.restart(1)
      bench.catchUp(2)
    }
    switch way {
    case .fromPeer, .fromPeerAfterRestart: bench.meet(1, 0)
    case .fromDisk:
      try node.overwrite(run)
      bench.advance(LogScrub.passMilliseconds)
    case .fromDiskAfterRestart: break
    }
    bench.catchUp(40)
  }

  private func expectAlike(_ n: Int64?) throws {
    #expect(try node.stored(room, "a") == author.stored(room, "a"))
    #expect(try node.shown(room, "a")?["n"] == n.map { .int($0) })
    #expect(node.state.damagedRuns.isEmpty && node.state.quarantine.count == 0 && !node.state.owesDocuments)
    #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
    #expect(try node.store.ownFacts().understanding == node.state.identity.cryptography.formats.understanding)
  }

  @Test("what others write to it meanwhile is there when the run is", arguments: [nil, 5], Return.allCases)
  func writtenMeanwhile(n: Int64?, way: Return) throws {
    try flip()
    if let n { try author.write(room, Report(n: n)) } else { try author.write(room, Erase("a")) }
    try bringNews()
    #expect(throws: (any Error).self, "nothing that is older is shown") { try node.shown(room, "a") }
    try giveBack(way)
    try expectAlike(n)
  }

  @Test("so it is where the log was asked for it just before", arguments: Return.allCases)
  func metBefore(way: Return) throws {
    try flip()
    #expect(!node.engine.mend([key], in: node.id(of: room)))
    try author.write(room, Erase("a"))
    try bringNews()
    try giveBack(way)
    try expectAlike(nil)
  }

  @Test("on a full disk what is owed stays owed, a turn ends, and all of it is there once there is room")
  func fullDisk() throws {
    try flip()
    try author.write(room, Report(n: 5))
    try bringNews()
    try node.overwrite(run)
    try bench.restart(1)
    node.store.commitFailure = StoreError.diskFull("test")
    bench.catchUp(2)
    #expect(node.state.owesDocuments && node.state.quarantine.holds(key, in: node.id(of: room)))
    #expect(node.state.scrub.wholePassCount > 0 && node.state.damagedRuns.isEmpty && node.engine.failure == nil)
    #expect(node.state.quarantine.mendedCount == 0)
    node.store.commitFailure = nil
    bench.meet(1, 0)
    bench.catchUp(70)
    try expectAlike(5)
  }

  @Test("what a fold passed over is made anew from the log also where the row reads by then")
  func readsBehindTheFold() throws {
    let early = try #require(try node.stored(room, "a"))
    try node.write(room, Report(n: 5))
    let whole = try node.stored(room, "a")
    try node.overwrite("a", with: early)
    try node.store.store.database.execute("UPDATE documents SET sum=NULL")
    let (node, key, id) = (node, key, node.id(of: room))
    try node.store.transact(isBacklog: false) { transaction in
      var writer = CommitWriter(node.state, transaction)
      try writer.makeUp(for: [key], passedOverIn: id)
    }
    #expect(try node.stored(room, "a") == whole && node.state.quarantine.count == 0)
  }

  @Test(
    "whoever follows documents is told of one that reads again with its run",
    arguments: [.fromPeer, .fromDisk] as [Return])
  func told(way: Return) throws {
    try flip()
    #expect(!node.engine.mend([key], in: node.id(of: room)))
    let count = node.feed.records.count
    try giveBack(way)
    var ids: [[UInt8]] = []
    for documents in node.feed.records.dropFirst(count).flatMap(\.documents) {
      documents.forEach { place, id in if place.collection == key.collection { ids.append(Array(id)) } }
    }
    #expect(ids == [key.id])
    try expectAlike(BenchNode.number)
  }
}
