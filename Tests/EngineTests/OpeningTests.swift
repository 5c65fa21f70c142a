import Identity
import Replication
import Testing
import Wire

@testable import Engine
@testable import Storage

/// What an engine makes of its store and the mark beside it when it starts.
@Suite struct OpeningTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  @Test("a node that starts again has what it had: chains, subscriptions, statements, and the replica it wrote under")
  func again() throws {
    let bench = try EngineBench(2)
    try bench.nodes[1].subscribe("room=*")
    for node in bench.nodes { try node.write(room, Put(Text("by \(node.directory)"))) }
    bench.meet(0, 1)
    let before = (bench.nodes[0].state.own.replica, bench.nodes[0].accepted(room), bench.nodes[0].state.own.commits)
    let authority = bench.nodes[0].state.mesh.authority.count
    try bench.restart(0)
    let state = bench.nodes[0].state
    #expect(state.own.replica == before.0 && bench.nodes[0].accepted(room) == before.1)
    #expect(state.own.commits == before.2)
    #expect(state.mesh.authority.count == authority)
    #expect(state.subscriptions == ["room=1"])
    try bench.nodes[0].write(room, Put("after"))
    #expect(state.own.replica == before.0)
    bench.meet(0, 1)
    #expect(try bench.nodes[1].shown(room, "after") != nil)
  }

  @Test("it has each chain as far as that had grown, its own and others', and its own goes on there")
  func grown() throws {
    let bench = try EngineBench(2)
    try bench.nodes[1].subscribe("room=*")
    bench.meet(0, 1)
    for number in 1...5 as ClosedRange<Int64> {
      try bench.nodes[0].write(room, Put("doc", number))
      bench.run()
    }
    let before = bench.nodes[0].accepted(room)
    try #require(before.sorted.map(\.position.sequence) == [5])
    for slot in 0..<2 {
      try bench.restart(slot)
      #expect(bench.nodes[slot].accepted(room) == before && bench.nodes[slot].received(room) == before)
    }
    #expect(try bench.nodes[0].write(room, Put("doc", 6)).dot?.sequence == 6)
  }

  @Test("timestamps go on above those given out before a restart, also where the clock was put back")
  func timestamps() throws {
    let bench = try EngineBench()
    try bench.nodes[0].write(room, Put("a"))
    let before = bench.nodes[0].state.own.lastTimestamp
    bench.clock.wallMilliseconds -= 60_000
    try bench.restart(0)
    #expect(bench.nodes[0].state.own.lastTimestamp == before)
    try bench.nodes[0].write(room, Put("b"))
    #expect(bench.nodes[0].state.own.lastTimestamp > before)
  }

  @Test("each reason that the mark shows makes the next write draw a new replica id, and none before it")
  func causes() throws {
    let bench = try EngineBench()
    try bench.nodes[0].write(room, Put("a"))
    let old = bench.nodes[0].state.own.replica
    bench.nodes[0].mark.causes = [.inode]
    try bench.restart(0)
    #expect(bench.nodes[0].state.own.replica == old && bench.nodes[0].state.own.isRenewalDue)
    // What is there is the evidence, until the new replica stands.
    let saved = bench.nodes[0].mark.saved
    bench.nodes[0].engine.finish()
    #expect(bench.nodes[0].mark.saved == saved)
    #expect(try bench.nodes[0].write(room, Put("b")).dot?.sequence == 1)
    let new = bench.nodes[0].state.own.replica
    #expect(new != old)
    #expect(bench.nodes[0].mark.saved == BenchMark.Saved(replica: new, reached: 2))
    #expect(bench.nodes[0].accepted(room).count == 2)
    #expect(bench.nodes[0].journal.says("goes on under a new replica id"))
  }

  @Test("a store that was put back from a copy writes under a new replica id once, and then keeps it")
  func restored() throws {
    let bench = try EngineBench()
    try bench.nodes[0].write(room, Put("a"))
    try bench.nodes[0].store.store.write(.full) { try $0.setMeta([1], for: .restored) }
    #expect(try bench.nodes[0].store.ownFacts().isRestored)
    bench.nodes[0].mark.causes = [.restored]
    try bench.restart(0)
    let old = bench.nodes[0].state.own.replica
    try bench.nodes[0].write(room, Put("b"))
    #expect(bench.nodes[0].state.own.replica != old)
    #expect(try !bench.nodes[0].store.ownFacts().isRestored)
  }

  @Test("a store without this fleet's genesis is none to run on")
  func noFleet() throws {
    let bench = try EngineBench()
    let key = bench.newKey()
    #expect(throws: EngineError.noFleet) {
      try bench.add(directory: try bench.directory(), key: key, mark: BenchMark(), [])
    }
    let foreign = try EngineBench(seed: 5).founding.statements
    #expect(throws: (any Error).self) {
      try bench.add(directory: try bench.directory(), key: key, mark: BenchMark(), foreign)
    }
  }

  @Test("a stored statement that does not hold ends the start, since rights follow from all of them")
  func damagedStatement() throws {
    let bench = try EngineBench()
    try bench.nodes[0].store.store.database.execute("UPDATE statements SET encoded=x'00' WHERE arrival=2")
    let error = #expect(throws: DamagedLog.self) { try bench.restart(0) }
    #expect(error?.isFatal == true)
    #expect(error?.description.contains("damaged") == true)
  }

  @Test("errors are one sentence for a person")
  func errors() throws {
    let errors: [EngineError] = [
      .notAMember, .notPermitted(room, has: .read, because: "x"), .changeTooLarge(byteCount: 2, limit: 1),
      .tooManyOperations(limit: 3), .malformedChange("x"),
      .ownRunNotTaken,
      .payloadNotThere, .payloadsTooLarge(byteCount: 2, limit: 1), .noFleet, .renewedLately(room, seconds: 3),
      .undeletable(UndeletableDocument(collection: "c", .int(1))),
    ]
    #expect(Set(errors.map(\.description)).count == errors.count)
    #expect(EngineError.notPermitted(room, has: .read, because: "x").description.contains("room=1"))
  }
}

/// The mark beside the store, and the drawing of replica ids.
@Suite struct ReplicaRenewalTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  @Test("a demand counts once, and takes away the mark that would hide it from the next start")
  func demand() throws {
    let node = try EngineBench().nodes[0]
    // Before the first write there is nothing to renew.
    node.engine.keeper.demandRenewal(.peer)
    #expect(node.mark.discards == 0 && !node.journal.says("a new replica id is due"))
    try node.write(room, Put("a"))
    for _ in 0..<2 { node.engine.keeper.demandRenewal(.corruption) }
    #expect(node.mark.discards == 1 && node.mark.saved == nil)
    #expect(node.journal.lines.count { $0.message.contains("a new replica id is due") } == 1)
    try node.write(room, Put("b"))
    #expect(node.state.own.causes.isEmpty)
    #expect(node.mark.saved?.reached == 2)
  }

  @Test("the mark is written anew after so many changes, and after so long")
  func marks() throws {
    let bench = try EngineBench(1) { $0.changesBetweenMarks = 3 }
    let node = bench.nodes[0]
    try node.write(room, Put("a"))
    #expect(node.mark.saved?.reached == 1)
    for id in ["b", "c"] as [Text] { try node.write(room, Put(id)) }
    bench.advance(2_000)
    #expect(node.mark.saved?.reached == 1)
    try node.write(room, Put("d"))
    bench.advance(2_000)
    #expect(node.mark.saved?.reached == 4)
    try node.write(room, Put("e"))
    bench.advance(2_000)
    #expect(node.mark.saved?.reached == 4)
    bench.advance(60_000)
    #expect(node.mark.saved?.reached == 5)
  }

  @Test("a mark that cannot be written is noted, and holds nothing up")
  func broken() throws {
    let node = try EngineBench().nodes[0]
    node.mark.isBroken = true
    try node.write(room, Put("a"))
    #expect(node.journal.says("the replica's mark could not be written"))
    #expect(try node.shown(room, "a") != nil)
    node.engine.keeper.demandRenewal(.peer)
    #expect(node.journal.says("the replica's mark could not be taken away"))
    #expect(try node.write(room, Put("b")).dot != nil)
  }

  @Test("a replica id is new with each renewal, and its declaration counts up")
  func declarations() throws {
    let bench = try EngineBench()
    let node = bench.nodes[0]
    var seen: Set<ReplicaID> = []
    for round in 0..<3 {
      if round > 0 { node.engine.keeper.demandRenewal(.peer) }
      bench.advance(OwnReplica.renewalMilliseconds)
      try node.write(room, Put(Text("\(round)")))
      seen.insert(try #require(node.state.own.replica?.id))
    }
    #expect(seen.count == 3)
    #expect(node.state.mesh.authority.replicas(of: node.state.identity.device).count == 3)
    #expect(Set(node.accepted(room).entries.keys) == seen)
  }
}
