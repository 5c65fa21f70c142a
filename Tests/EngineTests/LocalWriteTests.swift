import Identity
import Replication
import Testing

@testable import Engine

/// What a write on this node leaves behind, and what one that comes to nothing does not.
@Suite struct LocalWriteTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  /// Rows of every table that a first write puts something into.
  private func rows(_ node: BenchNode) throws -> [Int64] {
    try ["subscriptions", "partitions", "collections", "statements", "documents", "runs", "chains", "meta"]
      .map { try node.count($0) }
  }

  @Test("the first write of a fresh node is one transaction: replica, partition, subscription and change")
  func firstWrite() throws {
    let node = try EngineBench().nodes[0]
    let before = try rows(node)
    node.trace.clear()
    let receipt = try node.write(room, Put("a"))
    #expect(node.trace.entries == [.began, .committed, .told])
    let replica = try #require(node.state.own.replica?.id)
    #expect(receipt.dot == Dot(replica: replica, sequence: 1))
    #expect(receipt.created == [true])
    #expect(node.state.subscriptions == ["room=1"])
    #expect(node.state.mesh.authority.signer(of: replica) == node.key.publicKey)
    #expect(zip(try rows(node), before).map { $0 - $1 }.prefix(7) == [1, 1, 1, 1, 1, 1, 1])
    #expect(node.mark.saved == BenchMark.Saved(replica: node.state.own.replica, reached: 1))
  }

  @Test("a partition that a prefix asks for already needs no subscription of its own")
  func coveredByPrefix() throws {
    let node = try EngineBench().nodes[0]
    try node.subscribe("room=*")
    try node.write(room, Put("a"))
    #expect(node.state.subscriptions == ["room=*"])
    #expect(try node.count("subscriptions") == 1)
  }

  private static let refused: [any DocumentEdit] = [
    Refuse("a"), Erase("a"), Put("a", byteCount: Run.changePayloadByteLimit + 1),
  ]

  @Test(
    "a write that is refused or changes nothing leaves no subscription, partition, collection or replica id",
    arguments: 0..<3)
  func refusedFirstWrite(kind: Int) throws {
    let node = try EngineBench().nodes[0]
    let before = try rows(node)
    _ = try? node.write(room, Self.refused[kind])
    #expect(try rows(node) == before)
    #expect(node.state.own.replica == nil)
    #expect(node.state.subscriptions.isEmpty)
    #expect(node.state.mesh.partitions.isEmpty)
    #expect(node.state.mesh.interest.isEmpty)
    #expect(node.feed.records.isEmpty)
  }

  @Test("what changes nothing is answered with what is there, under no dot")
  func unchanged() throws {
    let node = try EngineBench().nodes[0]
    let written = try node.write(room, Put("a"))
    let again = try node.write(room, Put("a"))
    #expect(again.dot == nil)
    #expect(again.etags == written.etags)
    #expect(again.created == [false])
    #expect(node.accepted(room).entries.values.map(\.sequence) == [1])
  }

  @Test("one refused write in a turn touches neither those before it nor those after it")
  func refusedAmongOthers() throws {
    let node = try EngineBench().nodes[0]
    let other = try PartitionName("room=2")
    let jobs = [
      node.job(room, [Put("a")]), node.job(other, [Refuse("a")]), node.job(room, [Put("b"), Refuse("b")]),
      node.job(room, [Put("c")]),
    ]
    node.trace.clear()
    node.engine.turn(jobs.map { .write($0.0) })
    #expect(node.trace.commits == 1)
    #expect(try jobs[0].1.get().dot?.sequence == 1)
    #expect(throws: Refuse.Refusal.self) { try jobs[1].1.get() }
    #expect(throws: Refuse.Refusal.self) { try jobs[2].1.get() }
    #expect(try jobs[3].1.get().dot?.sequence == 2)
    #expect(try node.shown(room, "b") == nil && node.shown(room, "c") != nil)
    #expect(node.state.subscriptions == ["room=1"])
    #expect(node.state.mesh.partitions.count == 1)
    // Two changes of one transaction are one run.
    #expect(try node.count("runs") == 1)
  }

  @Test("two edits of one document in one change: the second sees the first, and one version comes of both")
  func editsOfOneChange() throws {
    let node = try EngineBench().nodes[0]
    let receipt = try node.write(room, Put("a", 1), Erase("a"), Put("a", 2), Put("b"))
    #expect(receipt.created == [true, false, true, true])
    #expect(receipt.etags[0] == receipt.etags[2])
    #expect(try node.shown(room, "a") == map(["n": .int(2)]))
    #expect(try node.write(room, Erase("a")).etags == [nil])
    #expect(try node.shown(room, "a") == nil)
    #expect(try node.write(room, Put("a", 3)).created == [true])
  }

  @Test("a device that may only read does not write, and its attempt leaves nothing")
  func reader() throws {
    let bench = try EngineBench()
    try bench.restart(0, [try bench.grant(.read)])
    let node = bench.nodes[0]
    let before = try rows(node)
    let refusal = #expect(throws: EngineError.self) { try node.write(room, Put("a")) }
    // With what it may do instead, and the statement by which.
    let sentence = refusal.map { "\($0)" } ?? ""
    #expect(
      sentence.hasPrefix("this device may not write to \(room.text.string): it may only read there, by the grant"))
    #expect(sentence.contains("everyone read *"))
    #expect(try rows(node) == before)
    #expect(node.state.own.replica == nil)
  }

  @Test("a device that is no member draws no replica id and writes nothing")
  func stranger() throws {
    let bench = try EngineBench()
    let key = bench.newKey()
    let slot = try bench.add(directory: try bench.directory(), key: key, mark: BenchMark(), bench.founding.statements)
    #expect(throws: (any Error).self) { try bench.nodes[slot].write(room, Put("a")) }
    #expect(try bench.nodes[slot].count("runs") == 0)
    #expect(bench.nodes[slot].state.own.replica == nil)
  }

  // MARK: When the disk refuses

  @Test("a failed write leaves no trace in memory: the next one continues the chain where the disk has it")
  func failedWrite() throws {
    let bench = try EngineBench()
    do {
      let node = bench.nodes[0]
      try node.write(room, Put("a"))
      try node.refuse("INSERT", on: "runs")
      #expect(throws: (any Error).self) { try node.write(room, Put("b"), Put("c")) }
      #expect(node.state.own.commits == 1)
      #expect(node.received(room).entries.values.map(\.sequence) == [1])
      try node.allow("runs")
      #expect(try node.write(room, Put("d")).dot?.sequence == 2)
      #expect(node.accepted(room).entries.values.map(\.sequence) == [2])
    }
    try bench.restart(0)
    #expect(bench.nodes[0].accepted(room).entries.values.map(\.sequence) == [2])
    #expect(try bench.nodes[0].shown(room, "b") == nil && bench.nodes[0].shown(room, "d") != nil)
  }

  @Test("a failed first write leaves neither replica id, partition nor subscription, and the next one works")
  func failedFirstWrite() throws {
    let bench = try EngineBench()
    let authority = bench.nodes[0].state.mesh.authority.count
    do {
      let node = bench.nodes[0]
      let before = try rows(node)
      try node.refuse("INSERT", on: "runs")
      #expect(throws: (any Error).self) { try node.write(room, Put("a")) }
      #expect(try rows(node) == before)
      #expect(node.state.own.replica == nil && node.state.own.isRenewalDue)
      #expect(node.state.mesh.authority.count == authority)
      #expect(node.state.mesh.partitions.isEmpty && node.state.mesh.interest.isEmpty)
      #expect(node.state.subscriptions.isEmpty)
      #expect(node.feed.records.isEmpty)
      try node.allow("runs")
      #expect(try node.write(room, Put("a")).dot?.sequence == 1)
    }
    try bench.restart(0)
    #expect(try bench.nodes[0].shown(room, "a") != nil)
    #expect(bench.nodes[0].state.subscriptions == ["room=1"])
    #expect(bench.nodes[0].state.mesh.authority.count == authority + 1)
  }

  @Test("sessions outlive a failed own write")
  func sessionsStay() throws {
    let bench = try EngineBench(2)
    try bench.nodes[1].subscribe("room=*")
    bench.meet(0, 1)
    try bench.nodes[0].refuse("INSERT", on: "runs")
    #expect(throws: (any Error).self) { try bench.nodes[0].write(room, Put("a")) }
    #expect(bench.nodes[0].state.mesh.sessions.count == 1)
    try bench.nodes[0].allow("runs")
    try bench.nodes[0].write(room, Put("b"))
    bench.run()
    #expect(try bench.nodes[1].shown(room, "b") != nil)
    #expect(try bench.nodes[1].shown(room, "a") == nil)
  }
}
