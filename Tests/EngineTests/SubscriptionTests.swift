import Replication
import Testing

@testable import Engine

@Suite struct SubscriptionTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  private func partitions(_ node: BenchNode) throws -> [PartitionName] { try node.store.logPartitions().map(\.name) }

  @Test("a subscription to a name makes its partition, one to a prefix makes none")
  func makes() throws {
    let node = try EngineBench().nodes[0]
    try node.subscribe("room=*")
    #expect(try partitions(node).isEmpty && node.state.mesh.partitions.isEmpty)
    try node.subscribe("room=1")
    #expect(try partitions(node) == [room])
    #expect(Array(node.state.mesh.partitions.keys) == [node.id(of: room)])
    #expect(try node.store.subscriptions() == ["room=*", "room=1"])
  }

  @Test("an end to a subscription takes a partition away of which nothing is stored")
  func emptyGoes() throws {
    let bench = try EngineBench()
    try bench.nodes[0].subscribe("room=1")
    try bench.nodes[0].subscribe("room=1", isWanted: false)
    #expect(try partitions(bench.nodes[0]).isEmpty)
    #expect(bench.nodes[0].state.mesh.partitions.isEmpty)
    try bench.restart(0)
    #expect(bench.nodes[0].state.mesh.partitions.isEmpty && bench.nodes[0].state.subscriptions.isEmpty)
  }

  @Test("one with data stays, and so does one that a prefix still asks for")
  func othersStay() throws {
    let node = try EngineBench().nodes[0]
    let other = try PartitionName("room=2")
    try node.write(room, Put("a"))
    try node.subscribe("room=2")
    try node.subscribe("room=2*")
    for pattern in ["room=1", "room=2"] as [Text] { try node.subscribe(pattern, isWanted: false) }
    #expect(try partitions(node) == [room, other])
    #expect(node.state.subscriptions == ["room=2*"])
    #expect(try node.shown(room, "a") != nil)
    try node.subscribe("room=2*", isWanted: false)
    #expect(try partitions(node) == [room])
  }

  @Test("what is written in the commit that ends the wish for its partition is there after a restart")
  func writtenAtTheEnd() throws {
    let bench = try EngineBench()
    // So that nothing has to be drawn for the write.
    try bench.nodes[0].write(try PartitionName("room=2"), Put("a"))
    try bench.nodes[0].subscribe("room=1")
    let (job, answer) = bench.nodes[0].job(room, [Put("b")])
    let end = BenchNode.Answer<Void>()
    bench.nodes[0].engine.turn([
      .write(job), .subscription(SubscriptionJob(pattern: "room=1", isWanted: false) { end.take($0) }),
    ])
    _ = try answer.get()
    try end.get()
    #expect(try partitions(bench.nodes[0]).contains(room))
    let accepted = bench.nodes[0].accepted(room)
    try bench.restart(0)
    #expect(bench.nodes[0].accepted(room) == accepted && accepted.entries.count == 1)
    #expect(try bench.nodes[0].shown(room, "b") != nil)
  }

  @Test("a partition that came back after it was taken away takes documents as any other")
  func comesBack() throws {
    let bench = try EngineBench(2)
    try bench.nodes[0].subscribe("room=1")
    bench.meet(0, 1)
    try bench.nodes[0].subscribe("room=1", isWanted: false)
    try bench.nodes[0].write(room, Put("a"))
    bench.run()
    try bench.nodes[1].subscribe("room=1")
    bench.run()
    #expect(try bench.nodes[1].shown(room, "a") != nil)
    try bench.restart(0)
    #expect(try bench.nodes[0].shown(room, "a") != nil)
  }

  @Test("twice is as good as once, and an end to what was not there is none")
  func twice() throws {
    let node = try EngineBench().nodes[0]
    try node.subscribe("room=1")
    node.trace.clear()
    try node.subscribe("room=1")
    try node.subscribe("room=2", isWanted: false)
    #expect(node.trace.entries.isEmpty)
  }

  @Test("a subscription that cannot be stored is refused, and nothing is wanted or forgotten by it")
  func refused() throws {
    let node = try EngineBench().nodes[0]
    try node.subscribe("kept")
    try node.refuse("INSERT", on: "subscriptions")
    #expect(throws: (any Error).self) { try node.subscribe("new") }
    try node.allow("subscriptions")
    try node.refuse("DELETE", on: "subscriptions")
    #expect(throws: (any Error).self) { try node.subscribe("kept", isWanted: false) }
    #expect(node.state.subscriptions == ["kept"])
    #expect(try partitions(node).map(\.text) == ["kept"])
    #expect(node.state.mesh.partitions.count == 1)
  }

  @Test("what comes to be wanted on a standing session comes at once, what is no longer wanted does not")
  func onSession() throws {
    let bench = try EngineBench(2)
    try bench.nodes[0].write(room, Put("a"))
    bench.meet(1, 0)
    #expect(try bench.nodes[1].shown(room, "a") == nil)
    try bench.nodes[1].subscribe("room=1")
    bench.run()
    #expect(try bench.nodes[1].shown(room, "a") != nil)
    try bench.nodes[1].subscribe("room=1", isWanted: false)
    bench.run()
    try bench.nodes[0].write(room, Put("b"))
    bench.run()
    #expect(try bench.nodes[1].shown(room, "b") == nil)
    try bench.nodes[1].subscribe("room=*")
    bench.run()
    #expect(try bench.nodes[1].shown(room, "b") != nil)
  }

  @Test("a relay takes in what it never subscribed to")
  func relay() throws {
    let bench = try EngineBench(2) { $0.isRelay = true }
    try bench.nodes[0].write(room, Put("a"))
    bench.meet(1, 0)
    #expect(try bench.nodes[1].shown(room, "a") != nil)
    #expect(bench.nodes[1].state.subscriptions.isEmpty)
  }
}
