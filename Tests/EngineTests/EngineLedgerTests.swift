import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// What lies in the log and beside it, and what a start makes of it.
@Suite struct EngineLedgerTests {
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

  private func pair(_ change: (inout EngineOptions) -> Void = { _ in }) throws -> (EngineBench, SessionID) {
    let bench = try EngineBench(2, change)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("first"))
    let session = bench.meet(1, 0)
    #expect(try bench.nodes[1].shown(room, "first") != nil)
    return (bench, session)
  }

  // MARK: Local writes

  @Test("more changes at once than a run holds are several runs, of which none is lost on the way")
  func manyChanges() throws {
    let (bench, _) = try pair()
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

  @Test("a relay keeps a partition though its own wish for it ended")
  func relayKeeps() throws {
    let node = try EngineBench(1) { $0.isRelay = true }.nodes[0]
    try node.subscribe("room=1")
    try node.subscribe("room=1", isWanted: false)
    #expect(try node.store.logPartitions().map(\.name) == [room])
    #expect(node.state.mesh.partitions.count == 1)
  }

  // MARK: Transactions

  @Test("runs beyond the bytes of a transaction are several transactions, and all are taken")
  func byteBound() throws {
    let (bench, session) = try pair { $0.limits.bytes = 3_000 }
    let events = try events(bench, session) {
      for index in 0..<6 { try bench.nodes[0].write(room, Put(Text("\(index)"), byteCount: 2_000)) }
    }
    bench.nodes[1].trace.clear()
    bench.nodes[1].engine.turn(events)
    #expect(bench.nodes[1].trace.commits >= 3)
    #expect(bench.nodes[1].accepted(room) == bench.nodes[0].accepted(room))
  }

  @Test("a payload and the run that names it may come in one turn")
  func payloadInOneTurn() throws {
    let (bench, session) = try pair()
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

  @Test("a message that names more payloads than memory may hold at once ends the session")
  func payloadsTooLarge() throws {
    let (bench, session) = try pair()
    try bench.nodes[0].write(room, Put("large", byteCount: Run.changePayloadByteLimit - 1_000))
    bench.run()
    for _ in 0..<4 { bench.advance(100) }
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

  // MARK: Starting

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

  @Test("a device that an admin let in is believed by a node that knows neither of the two")
  func admittedByAdmin() throws {
    let bench = try EngineBench()
    func membership(_ key: SigningKey, _ role: Text) -> Statement.Body {
      .membership(
        Statement.Membership(device: key.publicKey, user: "user", label: "x", role: role, profile: ValueMap()))
    }
    let (admin, device) = (bench.newKey(), bench.newKey())
    let ofAdmin = try bench.statement(membership(admin, FleetFounding.adminRole))
    let ofDevice = try StatementSigner(fleet: bench.founding.fleet, key: admin).sign(
      membership(device, "officer"), sequence: 1)
    let slot = try bench.add(
      directory: try bench.directory(), key: device, mark: BenchMark(),
      bench.founding.statements + [ofAdmin, ofDevice])
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[slot].write(room, Put("a"))
    bench.meet(slot, 0)
    #expect(bench.nodes[0].state.mesh.sessions.count == 1)
    #expect(try bench.nodes[0].shown(room, "a") != nil)
  }

  @Test("rights that fell hold after a restart, too: what lies beyond them does not come to count")
  func rightsAfterRestart() throws {
    let (bench, session) = try pair()
    bench.cut(session)
    let messenger = try bench.addMember([try bench.grant(.read)])
    bench.cut(bench.meet(messenger, 1))
    #expect(try bench.nodes[1].shown(room, "first") == nil)
    try bench.restart(1)
    // Written by who has not heard of it.
    try bench.nodes[0].write(room, Put("second"))
    bench.meet(1, 0)
    #expect(try bench.nodes[1].count("documents WHERE alive") == 0)
    #expect(bench.nodes[1].accepted(room).isEmpty)
    #expect(try bench.nodes[0].count("documents WHERE alive") == 0)
  }

  @Test("in a partition of all users a device writes its own user's card alone, whatever the author let through")
  func cards() throws {
    let bench = try EngineBench(2)
    let cards = try PartitionName("all-users=x")
    for node in bench.nodes { try node.subscribe("all-users=*") }
    struct Card: DocumentEdit {
      let id: Value
      let field: Text
      var collection: Text { Put.collection }
      func outcome(on present: PresentDocument) -> DocumentOutcome {
        .body(map([field: .string("x")]), hints: .none)
      }
    }
    // Only the grant to everyone lets a user write another's card.
    try bench.nodes[0].write(cards, Card(id: .string("u"), field: "displayName"))
    try bench.nodes[0].write(cards, Card(id: .string("user"), field: "displayName"))
    bench.meet(0, 1)
    #expect(try bench.nodes[1].shown(cards, "user") != nil)
    let messenger = try bench.addMember([try bench.grant(.read, ends: [])])
    bench.meet(messenger, 0)
    bench.meet(messenger, 1)
    for node in bench.nodes.prefix(2) { #expect(try node.shown(cards, "user") == nil) }
    for node in bench.nodes.prefix(2) { #expect(try node.shown(cards, "u") != nil) }
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
    let (bench, session) = try pair()
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
    let messenger = try bench.addMember([try bench.grant(.read)])
    for slot in 0..<2 {
      bench.cut(bench.meet(messenger, slot))
      #expect(bench.nodes[slot].accepted(room).isEmpty)
      try check(slot)
    }
  }

  @Test("a question about a chain is answered with the runs that came just before it")
  func questionAfterRuns() throws {
    let (bench, session) = try pair()
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
}
