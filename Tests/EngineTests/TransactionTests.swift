import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// What comes in one turn, and what of it one transaction takes.
@Suite struct TransactionTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  /// What node 0 would send over a session, taken off the wire, as events for node 1.
  private func events(_ bench: EngineBench, _ session: SessionID, _ send: () throws -> Void) rethrows -> [EngineEvent] {
    var frames: [[UInt8]] = []
    let deliver = bench.nodes[0].links.deliver
    bench.nodes[0].links.deliver = { frame, id in if id == session { frames.append(frame) } }
    defer { bench.nodes[0].links.deliver = deliver }
    try send()
    return frames.map { bench.event($0, session, 1) }
  }

  @Test("runs beyond the bytes of a transaction are several transactions, and all are taken")
  func byteBound() throws {
    let (bench, session) = try EngineBench.pair(in: room) { $0.limits.bytes = 3_000 }
    let events = try events(bench, session) {
      for index in 0..<6 { try bench.nodes[0].write(room, Put(Text("\(index)"), byteCount: 2_000)) }
    }
    bench.nodes[1].trace.clear()
    bench.nodes[1].engine.turn(events)
    #expect(bench.nodes[1].trace.commits >= 3)
    #expect(bench.nodes[1].accepted(room) == bench.nodes[0].accepted(room))
  }

  @Test("a node that is to end takes nothing more of what peers sent before, and goes on to its end")
  func endsAmongEvents() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    let events = try events(bench, session) {
      for index in 0..<6 { try bench.nodes[0].write(room, Put(Text("\(index)"))) }
    }
    let node = bench.nodes[1]
    let before = try node.count("runs")
    var looks = 0
    node.engine.turn(events) {
      looks += 1
      return []
    } isEnding: {
      looks > 3
    }
    // Before the first event users are looked for as well.
    #expect(try node.count("runs") == before + 3)
    node.engine.finish()
    #expect(node.accepted(room).sequence(of: try #require(bench.nodes[0].state.own.replica?.id)) == UInt64(before + 3))
  }

  @Test("a payload and the run that names it may come in one turn")
  func payloadInOneTurn() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    let events = try events(bench, session) { try bench.nodes[0].write(room, Put("large", byteCount: 150_000)) }
    #expect(events.count > 2)
    bench.nodes[1].engine.turn(events)
    #expect(bench.nodes[1].state.mesh.sessions[session] != nil)
    #expect(try bench.nodes[1].shown(room, "large") == bench.nodes[0].shown(room, "large"))
    // A piece of what is whole is no longer of use.
    let pieces = events.filter { if case .message(_, .payloadPiece, _) = $0 { true } else { false } }
    bench.nodes[1].engine.turn(pieces)
    #expect(try bench.nodes[1].count("staged_pieces") == 0)
  }

  @Test("a message that names more payloads than memory may hold at once ends the session")
  func payloadsTooLarge() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    try bench.nodes[0].write(room, Put("large", byteCount: Run.changePayloadByteLimit - 1_000))
    bench.run()
    // Some of its pieces go out in each turn.
    for _ in 0..<12 { bench.advance(100) }
    #expect(try bench.nodes[1].shown(room, "large") != nil)
    let node = bench.nodes[0]
    let (runs, _) = try LogReader(node.state).runs(node.id(of: room), lackedBy: VersionVector(), byteLimit: .max)
    let run = try #require(runs.last)
    func message(_ count: Int) -> EngineEvent {
      let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
      let batch = RunBatch(name: room, stream: 0, entries: Array(repeating: entry, count: count))
      return bench.event(MessageCodec.encode(.runs(batch)), session, 1)
    }
    // Known already, and few enough: nothing comes of it.
    bench.nodes[1].engine.turn([message(3)])
    #expect(bench.nodes[1].state.mesh.sessions[session] != nil)
    bench.nodes[1].engine.turn([message(5)])
    #expect(bench.nodes[1].state.mesh.sessions[session] == nil)
  }

  @Test("what is here of a payload is not sent again over the next session of the same process")
  func goesOn() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("large", byteCount: 700_000))
    let session = bench.connect(1, 0)
    bench.run(until: { (try? bench.nodes[1].count("staged_pieces")) ?? 0 >= 5 })
    bench.cut(session)
    bench.dropWire()
    let staged = try bench.nodes[1].count("staged_pieces")
    bench.nodes[0].trace.clear()
    bench.meet(1, 0)
    let sent = bench.nodes[0].trace.entries.count { if case .sent(_, "payloadPiece") = $0 { true } else { false } }
    #expect(sent > 0 && sent <= 11 - Int(staged))
    #expect(try bench.nodes[1].shown(room, "large") != nil)
  }

  @Test("a statement stands apart from the runs of one turn that were judged without it, and with what it takes away")
  func statementApart() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    let events = try events(bench, session) {
      try bench.nodes[0].write(room, Put("second"))
      bench.meet(try bench.messenger(try bench.grant(.read)), 0)
    }
    let node = bench.nodes[1]
    node.trace.clear()
    try node.refuse("DELETE", on: "documents")
    node.engine.turn(events)
    // What the disk refuses is the statement's transaction alone.
    #expect(try node.count("runs") == 2)
    #expect(try node.shown(room, "second") != nil)
  }

  @Test("a question about a chain is answered with the runs that came just before it")
  func questionAfterRuns() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    var events = try events(bench, session) { try bench.nodes[0].write(room, Put("second")) }
    let replica = try #require(bench.nodes[0].state.own.replica?.id)
    events.append(
      .message(
        session, .chainProbe(ChainProbe(name: room, replica: replica, positions: [], wantsReply: true)), byteCount: 9))
    var answers: [ChainProbe] = []
    let deliver = bench.nodes[1].links.deliver
    bench.nodes[1].links.deliver = { frame, id in
      if case .chainProbe(let probe)? = try? MessageCodec.decode(frame[...]) { answers.append(probe) }
      deliver?(frame, id)
    }
    bench.nodes[1].engine.turn(events)
    #expect(answers.map { $0.positions.last?.sequence } == [2])
  }
}
