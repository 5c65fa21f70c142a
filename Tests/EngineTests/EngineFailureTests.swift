import Identity
import Replication
import Testing
import Wire

@testable import Engine
@testable import Storage

/// What is left standing when the disk refuses, or fails for good.
@Suite struct EngineFailureTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  @Test("after a store has failed for good nothing is acknowledged, sent or taken in, and the mark is gone")
  func failedForGood() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("a"))
    let session = bench.meet(0, 1)
    do {
      let node = bench.nodes[0]
      node.store.store.giveUp(after: .damaged("a page"))
      let before = node.accepted(room)
      node.trace.clear()
      #expect(throws: (any Error).self) { try node.write(room, Put("b")) }
      #expect(node.engine.failure != nil)
      #expect(node.mark.saved == nil && node.mark.discards == 1)
      #expect(node.trace.entries.contains(.closed(session)))
      #expect(!node.trace.entries.contains(.sent(session, "runs")))
      #expect(throws: (any Error).self) { try node.write(room, Put("c")) }
      #expect(throws: (any Error).self) { try node.subscribe("other") }
      #expect(node.accepted(room) == before)
      // No further session, since nothing of it could be kept.
      bench.run()
      let second = bench.connect(1, 0)
      #expect(node.trace.entries.contains(.closed(second)))
      node.engine.finish()
      #expect(node.mark.saved == nil)
    }
    // The next start reads what was stored, and doubts the replica no less than the mark tells it to.
    bench.nodes[0].mark.causes = [.inputOutputError]
    try bench.restart(0)
    #expect(bench.nodes[0].state.own.isRenewalDue)
    try bench.nodes[0].write(room, Put("d"))
    #expect(try bench.nodes[0].shown(room, "b") == nil && bench.nodes[0].shown(room, "d") != nil)
  }

  @Test("reads that fail renew nothing, however many writes come between them, and say that the store has failed")
  func damageWhileReading() throws {
    let node = try EngineBench().nodes[0]
    try node.write(room, Put("a"))
    let (old, mark) = (node.state.own.replica, node.mark.saved)
    #expect(node.engine.attempt(7) { throw StoreError.busy } == 7)
    #expect(node.engine.attempt(7) { throw StoreError.damagedLog("the context of run 1") } == 7)
    #expect(node.engine.storeFailure == nil, "one row, or nothing at all")
    for error in [StoreError.damaged("a page"), .inputOutput("read")] {
      #expect(node.engine.attempt(7) { throw error } == 7)
      try node.write(room, Put("b"))
    }
    #expect(node.engine.storeFailure as? StoreError == .damaged("a page") && node.engine.failure == nil)
    #expect(node.state.own.replica == old && node.mark.saved == mark && node.mark.discards == 0)
  }

  @Test(
    "after runs that the disk did not take, connections are cut, devices dialled again, and others are none the wiser")
  func beginsAgain() throws {
    let bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    let node = bench.nodes[1]
    let address = PeerAddress.socket(SocketAddress(.ipv4(0x7f00_0001), port: 4_000))
    node.engine.turn([.sighting(.configured([address]))])
    try bench.nodes[0].write(room, Put("first"))
    let session = bench.connect(1, 0, dialTag: try #require(node.links.dials.last?.tag))
    bench.run()
    let other = bench.meet(2, 1)
    #expect(try bench.nodes[2].shown(room, "first") != nil)
    try node.refuse("INSERT", on: "runs")
    node.trace.clear()
    try bench.nodes[0].write(room, Put("lost"))
    bench.run()
    #expect(node.engine.links.table.links.isEmpty)
    #expect(node.trace.entries.contains(.closed(session)) && node.trace.entries.contains(.closed(other)))
    #expect(try bench.nodes[2].shown(room, "lost") == nil)
    try node.allow("runs")
    let dials = node.links.dials.count
    for _ in 0..<60 where node.links.dials.count == dials { bench.advance(500) }
    #expect(node.links.dials.count > dials, "the device counts as gone, so it is dialled")
    bench.meet(1, 0)
    bench.meet(2, 1)
    #expect(try bench.nodes[2].shown(room, "lost") != nil)
  }

  @Test("a disk that refuses one of several writes fails all of the transaction, and none of it is there")
  func oneOfSeveral() throws {
    let node = try EngineBench().nodes[0]
    try node.write(room, Put("a"))
    let before = node.accepted(room)
    try node.store.store.database.execute(
      "CREATE TEMP TRIGGER refuse_one BEFORE INSERT ON documents WHEN new.key >= x'00' AND (SELECT count(*) FROM documents) = 2 "
        + "BEGIN SELECT RAISE(ABORT, 'no room'); END")
    let jobs = ["b", "c"].map { node.job(room, [Put(Text($0))]) }
    node.engine.turn(jobs.map { .write($0.0) })
    for (_, answer) in jobs { #expect(throws: (any Error).self) { try answer.get() } }
    #expect(node.accepted(room) == before)
    #expect(try node.count("runs") == 1 && node.count("documents") == 1)
    try node.store.store.database.execute("DROP TRIGGER refuse_one")
    #expect(try node.write(room, Put("b")).dot?.sequence == 2)
  }

  @Test("a reason to go on under a new replica outlasts a commit that failed, whoever's it was")
  func reasonOutlasts() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    let node = bench.nodes[1]
    try node.write(room, Put("own"))
    let old = node.state.own.replica
    bench.meet(0, 1)
    node.engine.keeper.demandRenewal(.peer)
    #expect(node.state.own.causes == [.peer])
    try node.refuse("INSERT", on: "runs")
    try bench.nodes[0].write(room, Put("a"))
    bench.run()
    #expect(node.state.mesh.sessions.isEmpty)
    #expect(throws: (any Error).self) { try node.write(room, Put("b")) }
    try node.allow("runs")
    try node.write(room, Put("c"))
    #expect(node.state.own.replica != old)
  }
}
