import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// What lies in the log and beside it.
@Suite struct EngineLedgerTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  @Test("more changes at once than a run holds are several runs, of which none is lost on the way")
  func manyChanges() throws {
    let (bench, _) = try EngineBench.pair(in: room)
    let count = 3 * Run.changeLimit + 1
    let jobs = (0..<count).map { bench.nodes[0].job(room, [Put(Text("\($0)"))]) }
    bench.nodes[0].engine.turn(jobs.map { .write($0.0) })
    #expect(try jobs.map { try $0.1.get().dot?.sequence } == (0..<count).map { UInt64($0 + 2) })
    #expect(bench.nodes[0].accepted(room).sorted.map(\.position.sequence) == [UInt64(count + 1)])
    bench.run()
    for _ in 0..<4 { bench.advance(100) }
    #expect(try bench.nodes[1].count("documents") == Int64(count + 1))
    #expect(try bench.nodes[1].shown(room, Text("\(count - 1)")) != nil)
  }

  @Test("a change beyond its bound is told by its size, on the first write as on later ones")
  func changeTooLarge() throws {
    let node = try EngineBench().nodes[0]
    for round in 0..<2 {
      let error = #expect(throws: EngineError.self) {
        try node.write(room, Put("large", byteCount: Run.changePayloadByteLimit + 1))
      }
      if case .changeTooLarge(let byteCount, let limit)? = error {
        #expect(byteCount > limit && limit == Run.changePayloadByteLimit)
      } else {
        Issue.record("another error: \(String(describing: error))")
      }
      if round == 0 { try node.write(room, Put("small")) }
    }
    #expect(node.accepted(room).sorted.map(\.position.sequence) == [1])
  }

  @Test("a write to a partition that is here but no longer wanted subscribes to it again")
  func wantedAgain() throws {
    let bench = try EngineBench()
    try bench.nodes[0].write(room, Put("a"))
    try bench.nodes[0].subscribe("room=1", isWanted: false)
    #expect(bench.nodes[0].state.subscriptions.isEmpty)
    try bench.nodes[0].write(room, Put("b"))
    #expect(bench.nodes[0].state.subscriptions == ["room=1"])
    try bench.restart(0)
    #expect(bench.nodes[0].state.subscriptions == ["room=1"])
  }

  @Test("what is wanted, no longer wanted and wanted again is wanted")
  func again() throws {
    let bench = try EngineBench(2)
    try bench.nodes[0].write(room, Put("a"))
    let node = bench.nodes[1]
    for isWanted in [true, false, true] { try node.subscribe("room=*", isWanted: isWanted) }
    #expect(try node.store.subscriptions() == ["room=*"])
    bench.meet(1, 0)
    #expect(try node.shown(room, "a") != nil)
  }

  @Test("a relay keeps a partition though its own wish for it ended")
  func relayKeeps() throws {
    let node = try EngineBench(1) { $0.isRelay = true }.nodes[0]
    try node.subscribe("room=1")
    try node.subscribe("room=1", isWanted: false)
    #expect(try node.store.logPartitions().map(\.name) == [room])
    #expect(node.state.mesh.partitions.count == 1)
  }

  @Test("a store whose first replica was lost with its log keeps the mark that tells so until a write draws another")
  func firstReplicaLost() throws {
    let bench = try EngineBench()
    bench.nodes[0].mark.causes = [.log, .inode]
    let saved = BenchMark.Saved(replica: Incarnation(id: ReplicaID(high: 1, low: 1), nonce: .zero), reached: 3)
    bench.nodes[0].mark.saved = saved
    try bench.restart(0)
    #expect(bench.nodes[0].state.own.causes == [.log])
    bench.nodes[0].engine.finish()
    #expect(bench.nodes[0].mark.saved == saved)
    try bench.nodes[0].write(room, Put("a"))
    #expect(bench.nodes[0].mark.saved?.replica == bench.nodes[0].state.own.replica)
  }

  @Test("the highest element that any change of a run names is what its author must have seen")
  func elements() throws {
    struct Items: DocumentEdit {
      let id: Value
      let items: [Value]
      var collection: Text { Put.collection }
      func outcome(on present: PresentDocument) -> DocumentOutcome {
        .body(map(["l": .array(items)]), hints: WriteHints([(path: [.key("l")], kind: .list(key: nil))]))
      }
    }
    let bench = try EngineBench(2)
    let node = bench.nodes[1]
    try node.subscribe("room=*")
    for id in ["a", "b"] {
      try bench.nodes[0].write(room, Items(id: .string(Text(id)), items: [.int(1), .int(2), .int(3)]))
    }
    bench.meet(0, 1)
    let author = try #require(bench.nodes[0].state.own.replica?.id)
    let jobs = ["a", "b"].map { node.job(room, [Items(id: .string(Text($0)), items: [.int(1), .int(3)])]) }
    node.engine.turn(jobs.map { .write($0.0) })
    let (runs, _) = try LogReader(node.state).runs(node.id(of: room), lackedBy: VersionVector(), byteLimit: .max)
    let last = try #require(runs.last)
    #expect(last.first == 1 && last.last == 2)
    let decoded = try RunCodec.decode(
      last.encoded, fleet: node.state.identity.fleet, partition: node.id(of: room), hash: SHA256.hash)
    let run = try FrameDecoder(fleet: node.state.identity.fleet, node.state.identity.cryptography)
      .arrived(decoded, context: .full(last.context), in: room, under: node.state.mesh.authority)
    #expect(run.incoming.elementDots == [author: 2])
  }

  @Test(
    "how far a chain is received and counts is noted beside the log with every move, so that a start need not read it")
  func marks() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    func check(_ slot: Int) throws {
      let node = bench.nodes[slot]
      for chain in try node.store.logChains() {
        #expect(chain.marks.accepted.sequence == node.accepted(room).sequence(of: chain.replica))
        #expect(chain.marks.received.sequence == node.received(room).sequence(of: chain.replica))
      }
    }
    for index in 0..<4 { try bench.nodes[0].write(room, Put(Text("\(index)"))) }
    bench.run()
    for slot in 0..<2 { try check(slot) }
    bench.cut(session)
    let messenger = try bench.messenger(try bench.grant(.read))
    for slot in 0..<2 {
      bench.cut(bench.meet(messenger, slot))
      #expect(bench.nodes[slot].accepted(room).isEmpty)
      try check(slot)
    }
  }
}
