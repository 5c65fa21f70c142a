import Replication
import Testing
import Wire

@testable import Engine
@testable import Storage

/// A payload that travelled apart from its run is not as it was written.
@Suite struct DamagedPayloadTests {
  private let room: PartitionName
  private let bench: EngineBench
  private var node: BenchNode { bench.nodes[1] }
  private static let byteCount = 100_000

  /// Nodes 0 and 1 have a large document between small ones, and one of node 1.
  init() throws {
    room = try PartitionName("room=1")
    bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("before"))
    try bench.nodes[0].write(room, Put("large", byteCount: DamagedPayloadTests.byteCount))
    try bench.nodes[0].write(room, Put("behind"))
    try node.write(room, Put("own"))
    bench.cut(bench.meet(1, 0))
    try #require(try node.count("large_payloads") == 1)
  }

  private func damage(_ node: BenchNode) throws {
    try node.store.store.database.execute("UPDATE large_payloads SET bytes=zeroblob(length(bytes))")
  }

  private func late() throws -> Int {
    let late = try bench.addMember()
    try bench.nodes[late].subscribe("room=*")
    return late
  }

  private func payload(at node: BenchNode) throws -> String? {
    try node.store.store.database.string("SELECT hex(bytes) FROM large_payloads")
  }

  private func expectWhole(_ node: BenchNode) throws {
    #expect(try payload(at: node) == payload(at: bench.nodes[0]))
    #expect(node.state.damagedRuns.isEmpty && node.state.quarantine.count == 0)
    #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
    #expect(try node.count("staged_pieces") == 0 && node.count("staged_shares") == 0)
    for id in ["before", "large", "behind", "own"] as [Text] { #expect(try node.shown(room, id) != nil, "\(id)") }
  }

  @Test("what does not stand on it goes out, and the rest once it has come anew")
  func sending() throws {
    try damage(node)
    let late = try late()
    bench.meet(late, 1)
    bench.catchUp(40)
    let other = bench.nodes[late]
    #expect(try other.shown(room, "before") != nil && other.shown(room, "large") == nil)
    #expect(node.state.damagedRuns.count == 1)
    bench.meet(1, 0)
    bench.catchUp(200)
    for node in [node, other] { try expectWhole(node) }
    let rows = try bench.nodes[0].count("runs")
    #expect(try node.count("runs") == rows && other.count("runs") == rows)
  }

  @Test("what others wrote without having seen it goes out as well, from many chains as from few", arguments: [1, 20])
  func others(count: Int) throws {
    try damage(node)
    for index in 0..<count {
      let other = try late()
      try bench.nodes[other].write(room, Put(Text("other \(index)")))
      bench.cut(bench.meet(other, 1))
    }
    let late = try late()
    bench.meet(late, 1)
    bench.catchUp(40)
    for index in 0..<count { #expect(try bench.nodes[late].shown(room, Text("other \(index)")) != nil) }
    #expect(try bench.nodes[late].shown(room, "before") != nil && bench.nodes[late].shown(room, "large") == nil)
  }

  @Test(
    "a start finds that it is damaged, or not there at all, and it comes anew",
    arguments: ["UPDATE large_payloads SET bytes=zeroblob(length(bytes))", "DELETE FROM large_payloads"])
  func start(damage: String) throws {
    try node.store.store.database.execute(damage)
    try bench.restart(1)
    bench.advance(500)
    #expect(node.state.damagedRuns.count == 1)
    bench.meet(1, 0)
    bench.catchUp(200)
    try expectWhole(node)
  }

  @Test("its author gets it back as well")
  func own() throws {
    let whole = try payload(at: node)
    try damage(bench.nodes[0])
    try bench.restart(0)
    bench.advance(500)
    #expect(bench.nodes[0].state.damagedRuns.count == 1)
    bench.meet(1, 0)
    bench.catchUp(200)
    #expect(try payload(at: bench.nodes[0]) == whole)
    try expectWhole(bench.nodes[0])
  }

  @Test("another change with the same bytes is taken, and puts it right")
  func sameBytes() throws {
    try damage(node)
    let other = try late()
    try bench.nodes[other].write(room, Put("large", byteCount: DamagedPayloadTests.byteCount))
    bench.meet(other, 1)
    bench.catchUp(40)
    #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
    #expect(try payload(at: node) == payload(at: bench.nodes[0]))
  }

  @Test("of a change that is held it comes anew as well")
  func held() throws {
    let chain = try #require(bench.nodes[0].state.own.replica).id
    try bench.say(try bench.grant(.read, ends: try bench.ends([room: [chain: 1]])), to: 1)
    bench.cut(bench.meet(1, 0))
    #expect(try node.shown(room, "large") == nil)
    try damage(node)
    try bench.restart(1)
    bench.advance(500)
    #expect(node.state.damagedRuns.count == 1)
    bench.meet(1, 0)
    bench.catchUp(200)
    #expect(try node.state.damagedRuns.isEmpty && payload(at: node) == payload(at: bench.nodes[0]))
    #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
  }

  @Test("work that comes to count again does so without its document alone, which comes back with it")
  func rebuild() throws {
    let chain = try #require(bench.nodes[0].state.own.replica).id
    try bench.nodes[0].write(room, Put("large"))
    bench.cut(bench.meet(1, 0))
    let statements = [try bench.grant(.read, ends: try bench.ends([room: [chain: 2]])), try bench.grant(.write)]
    node.engine.turn([.call { $0.add([statements[0]]) }])
    try damage(node)
    node.engine.turn([.call { $0.add([statements[1]]) }])
    #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
    #expect(node.state.quarantine.count == 1 && node.state.damagedRuns.count == 1)
    for id in ["before", "behind", "own"] as [Text] { #expect(try node.shown(room, id) != nil, "\(id)") }
    bench.meet(1, 0)
    bench.catchUp(200)
    try expectWhole(node)
  }

  @Test("documents whose rows do not read either are made anew but for the one that the payload wrote")
  func documents() throws {
    try damage(node)
    let ids = ["before", "large", "behind"] as [Text]
    let keys = Set(ids.map { DocumentKey(collection: Put.collection, id: .string($0)) })
    for id in ids { try node.overwrite(id, with: [1]) }
    node.engine.turn([.call { [room] in $0.mend(keys, in: $0.state.identity.id(of: room)) }])
    #expect(node.state.quarantine.count == 1)
    for id in ["before", "behind"] as [Text] { #expect(try node.shown(room, id) != nil, "\(id)") }
    bench.meet(1, 0)
    bench.catchUp(200)
    try expectWhole(node)
  }

  @Test(
    "what a start owes because of it is owed until the whole log was read over, and done also where the disk gives it again",
    arguments: [false, true])
  func owed(comesAnew: Bool) throws {
    let whole = try #require(try payload(at: node))
    let chain = try #require(bench.nodes[0].state.own.replica).id
    let statement = try bench.grant(.read, ends: try bench.ends([room: [chain: 1]]))
    try damage(node)
    node.engine.turn([.call { $0.add([statement]) }])
    #expect(node.state.owesDocuments)
    try bench.restart(1)
    node.store.scrubFailure = DamagedLog("test")
    for _ in 0..<10 { bench.advance(500) }
    #expect(node.state.owesDocuments && node.state.damagedRuns.isEmpty)
    node.store.scrubFailure = nil
    bench.advance(LogScrub.retryMilliseconds)
    #expect(try node.state.damagedRuns.count == 1 && node.shown(room, "large") != nil)
    if comesAnew {
      bench.meet(1, 0)
      bench.catchUp(200)
    } else {
      try node.store.store.database.execute("UPDATE large_payloads SET bytes=x'\(whole)'")
      bench.advance(LogScrub.passMilliseconds)
      bench.advance(500)
    }
    #expect(try node.shown(room, "large") == nil && node.shown(room, "before") != nil && !node.state.owesDocuments)
    #expect(try payload(at: node) == payload(at: bench.nodes[0]))
  }

  @Test("neighbouring runs with large payloads come anew together")
  func neighbours() throws {
    for number in 1...3 { try bench.nodes[0].write(room, Put(Text("large \(number)"), byteCount: 2_500_000)) }
    let session = bench.meet(1, 0)
    bench.catchUp(20)
    bench.cut(session)
    try #require(try node.count("large_payloads") == 4 && node.count("runs") == 7)
    let chain = try #require(bench.nodes[0].state.own.replica).id
    for run in try node.rows(room, chain).suffix(3) {
      try node.store.store.database.execute("UPDATE runs SET sum=sum+1 WHERE arrival=\(run.arrival)")
    }
    try bench.restart(1)
    bench.advance(500)
    #expect(node.state.damagedRuns.count == 3)
    bench.meet(1, 0)
    bench.catchUp(40)
    #expect(node.state.damagedRuns.isEmpty && node.engine.storeFailure == nil)
  }
}
