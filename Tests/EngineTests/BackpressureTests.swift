import Replication
import Testing

@testable import Engine

/// Peers that do not read, and what is taken and sent meanwhile.
@Suite struct BackpressureTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  @Test("a peer that reads nothing gets one pong for many pings, is paused at a limit, and is read from again in time")
  func readsAgain() throws {
    let bench = try EngineBench(2)
    let session = bench.meet(0, 1)
    let node = bench.nodes[0]
    node.links.queuedByteCount = 1 << 20
    node.trace.clear()
    func pings(_ count: Int) -> [EngineEvent] {
      (0..<count).map { .message(session, .ping(nonce: UInt64($0)), byteCount: 10) }
    }
    node.engine.turn(pings(UnreadAnswers.limit - 1))
    #expect(node.links.heldUp.isEmpty)
    node.engine.turn(pings(1))
    #expect(node.links.heldUp == [session])
    #expect(!node.trace.entries.contains(.sent(session, "pong")))
    node.links.queuedByteCount = 0
    for _ in 0..<2 { bench.advance(Mesh.tickMilliseconds) }
    #expect(node.links.heldUp.isEmpty)
    #expect(node.trace.entries.count { $0 == .sent(session, "pong") } == 1)
    #expect(node.state.mesh.sessions[session] != nil)
  }

  @Test("every byte that a connection handed in is let go once the engine is done with it, also of what is refused")
  func released() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    var sent = 0
    let deliver = bench.nodes[0].links.deliver
    bench.nodes[0].links.deliver = { frame, session in
      sent += frame.count
      deliver?(frame, session)
    }
    let session = bench.meet(0, 1)
    for index in 0..<5 { try bench.nodes[0].write(room, Put(Text("\(index)"))) }
    bench.run()
    #expect(try bench.nodes[1].shown(room, "4") != nil)
    #expect(bench.nodes[1].links.released == sent)
    // Runs that nobody asked for on such a stream.
    bench.nodes[1].engine.turn([.runs(session, RunBatch(name: room, stream: 77, entries: []), [], byteCount: 1_000)])
    #expect(bench.nodes[1].links.released == sent + 1_000)
  }

  @Test("what is said while something waits for room waits behind it, though there would be room again")
  func behindWhatWaits() throws {
    let bench = try EngineBench(2)
    try bench.nodes[1].subscribe("room=*")
    let session = bench.meet(0, 1)
    let node = bench.nodes[0]
    try node.write(room, Put("0"))
    bench.run()
    node.links.full = [session]
    try node.write(room, Put("1"))
    node.links.full = []
    node.trace.clear()
    try node.subscribe("other=*")
    #expect(!node.trace.entries.contains { if case .sent = $0 { true } else { false } })
    node.engine.turn([.drained(session)])
    #expect(
      node.trace.entries.filter { if case .sent = $0 { true } else { false } }
        == [.sent(session, "runs"), .sent(session, "interestChange")])
    bench.run()
    #expect(bench.nodes[1].accepted(room) == node.accepted(room))
    #expect(bench.nodes[1].state.mesh.sessions[session] != nil)
  }
}
