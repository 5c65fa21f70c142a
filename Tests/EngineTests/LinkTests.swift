import Identity
import Replication
import Storage
import Testing
import Wire

@testable import Engine

/// Connections as the engine sees them: whom it dials, what it holds back, when it cuts off.
@Suite struct LinkTests {
  private let address = PeerAddress.socket(SocketAddress(.ipv4(0x7f00_0001), port: 4_001))

  private func link(_ node: BenchNode, _ number: UInt64, from key: PublicKey, tag: UInt64? = nil) -> EngineEvent {
    .opened(
      OpenedLink(
        session: SessionID(rawValue: number), dialTag: tag, remote: SocketAddress(.ipv4(0x7f00_0001), port: 4_001),
        peerKey: key, exporter: .zero))
  }

  @Test("an address that the operator named is dialled, a failure is shown, and it is dialled again after a pause")
  func dial() throws {
    let bench = try EngineBench()
    let node = bench.nodes[0]
    node.engine.turn([.sighting(.configured([address]))])
    #expect(node.links.dials.map(\.address) == [address])
    let tag = try #require(node.links.dials.first?.tag)
    node.engine.turn([.dialFailed(tag: tag, reason: "nobody there")])
    #expect(node.engine.links.table.outcomes[address] == .failed("nobody there"))
    #expect(node.links.dials.count == 1)
    for _ in 0..<120 where node.links.dials.count == 1 { bench.advance(1_000) }
    #expect(node.links.dials.count == 2)
    #expect(node.links.dials[1].tag != tag)
    // An end of a dial that nobody knows of says nothing.
    node.engine.turn([.dialFailed(tag: 999, reason: "what?")])
    #expect(node.engine.links.table.outcomes[address] == .failed("nobody there"))
  }

  @Test("a session that stands takes the failure of its address away, and is found again where it was dialled")
  func dialled() throws {
    let bench = try EngineBench(2)
    let node = bench.nodes[0]
    node.engine.turn([.sighting(.configured([address]))])
    node.engine.turn([.dialFailed(tag: try #require(node.links.dials.first?.tag), reason: "nobody there")])
    for _ in 0..<120 where node.links.dials.count == 1 { bench.advance(1_000) }
    let session = bench.connect(0, 1, dialTag: try #require(node.links.dials.last?.tag))
    bench.run()
    #expect(node.engine.links.table.outcomes.isEmpty)
    #expect(node.links.authenticated == [session])
    #expect(node.engine.links.table[session]?.dialled == address)
    #expect(node.engine.links.address(session) == "port 4001")
    #expect(node.engine.links.address(nil) == "?")
    #expect(try node.store.store.peers().flatMap(\.addresses).map(\.text) == ["port 4001"])
    // The other was dialled and knows no port at which the first listens.
    #expect(try bench.nodes[1].store.store.peers().map(\.addresses.count) == [0])
    bench.cut(session)
    #expect(node.engine.links.table.links.isEmpty)
    #expect(node.state.mesh.sessions.isEmpty)
  }

  @Test("connections of a device's key that say nothing do not cost the session on which the device is heard")
  func silentConnections() throws {
    let room = try PartitionName("room=1")
    let (bench, session) = try EngineBench.pair(in: room)
    let node = bench.nodes[0]
    for number in 0..<5 as Range<UInt64> {
      node.engine.turn([link(node, 900 + number, from: bench.nodes[1].key.publicKey)])
    }
    bench.run()
    #expect(node.state.mesh.sessions[session]?.phase == .live)
    #expect(node.state.mesh.sessions.count == SessionTable.perDevice)
    try bench.nodes[1].write(room, Put("second"))
    bench.run()
    #expect(try node.shown(room, "second") != nil)
    for _ in 0..<15 { bench.advance(1_000) }
    #expect(node.state.mesh.sessions.ids == [session])
  }

  @Test("beyond its limit of sessions a node closes what comes, and goes on with those it has")
  func noRoom() throws {
    let bench = try EngineBench(3) { $0.mesh.sessionLimit = 1 }
    let session = bench.meet(1, 0)
    let second = bench.connect(2, 0)
    #expect(bench.nodes[0].trace.entries.contains(.closed(second)))
    bench.run()
    #expect(Array(bench.nodes[0].state.mesh.sessions.ids) == [session])
    #expect(bench.nodes[2].state.mesh.sessions.isEmpty)
  }

  @Test("a stranger is refused, and the address that was dialled is told why")
  func stranger() throws {
    let bench = try EngineBench()
    let other = try EngineBench(seed: 2)
    let node = bench.nodes[0]
    node.engine.turn([.sighting(.configured([address]))])
    let tag = try #require(node.links.dials.first?.tag)
    let session = SessionID(rawValue: 9)
    node.engine.turn([link(node, 9, from: other.nodes[0].key.publicKey, tag: tag)])
    node.engine.turn([.message(session, .goodbye(.otherFleet), byteCount: 10)])
    #expect(node.state.mesh.sessions.isEmpty)
    #expect(node.trace.entries.contains(.closed(session)))
    #expect(node.links.released == 10)
  }

  @Test("what breaks the protocol ends the session and is noted")
  func violation() throws {
    let bench = try EngineBench(2)
    let session = bench.meet(0, 1)
    bench.nodes[0].engine.turn([.violation(session, "no message")])
    #expect(bench.nodes[0].state.mesh.sessions.isEmpty)
    #expect(bench.nodes[0].journal.says("a peer broke the protocol"))
    bench.run()
    #expect(bench.nodes[1].state.mesh.sessions.isEmpty)
  }

  @Test("who broke a rule is remembered once with a count, and written to the log once a minute")
  func conduct() throws {
    let bench = try EngineBench(2)
    let node = bench.nodes[0]
    func lines() -> Int { node.journal.lines.count { $0.message.contains("a peer broke the protocol") } }
    for round in 0..<5 {
      node.engine.turn([.violation(bench.meet(0, 1), "no message")])
      bench.run()
      #expect(lines() == 1 && node.engine.conduct.first?.count == round + 1)
    }
    bench.advance(60_000)
    node.engine.turn([.violation(bench.meet(0, 1), "no message")])
    #expect(lines() == 2 && node.engine.conduct.count == 1)
    let entry = try #require(node.engine.conduct.first)
    #expect(entry.source == .device(bench.nodes[1].state.identity.deviceID, user: "user"))
    #expect(entry.reason == "no message")
    bench.run()
    node.engine.turn([.violation(bench.meet(0, 1), "another")])
    #expect(lines() == 3 && node.engine.conduct.map(\.reason) == ["another", "no message"])
  }

  @Test("a run that breaks a rule is named by its partition, replica and number")
  func conductOfRuns() throws {
    let bench = try EngineBench(2)
    // Later builds wait for what such a run stands on.
    let late = try bench.addMember(formats: TestBuild.earlier.formats)
    let room = try PartitionName("room=1")
    for node in bench.nodes { try node.subscribe("room=*") }
    let (author, relay, node) = (bench.nodes[1], bench.nodes[0], bench.nodes[late])
    try author.write(room, Put("a"))
    try author.write(room, Put("b"))
    bench.cut(bench.meet(1, 0))
    let session = bench.connect(0, late)
    bench.run {
      relay.links.sent.contains { if case .runs = $0 { true } else { false } }
    }
    guard case .runs(let batch)? = relay.links.sent.last else {
      Issue.record("no runs")
      return
    }
    bench.dropWire()
    let later = RunBatch(name: batch.name, stream: batch.stream, entries: Array(batch.entries.dropFirst()))
    guard
      case .runs(let frame, let runs) = try FrameDecoder(
        fleet: bench.founding.fleet, node.state.identity.cryptography
      ).decode(MessageCodec.encode(.runs(later)), under: { node.state.mesh.authority })
    else { return }
    // Without the run before, the second stands on nothing.
    node.engine.turn([.runs(session, frame, runs, byteCount: 10)])
    let place = try #require(node.engine.conduct.first?.place)
    #expect(place.partition == room && place.change?.sequence == 2)
    #expect(place.change?.replica == author.state.own.replica?.id)
  }

  @Test("the book of broken rules is bounded: what happened longest ago gives way")
  func conductIsBounded() {
    var book = ConductBook()
    let clock = BenchClock()
    for number in 0..<ConductBook.limit + 10 {
      clock.advance(1)
      _ = book.note(.address("\(number)"), "x", clock)
    }
    #expect(book.entries.count == ConductBook.limit)
    #expect(book.entries.last?.source == .address("10"))
  }

  @Test("what the transport has no room for waits, in order, and goes once there is room")
  func held() throws {
    let bench = try EngineBench(2)
    let room = try PartitionName("room=1")
    try bench.nodes[1].subscribe("room=*")
    let session = bench.meet(0, 1)
    bench.nodes[0].links.full = [session]
    for index in 0..<5 { try bench.nodes[0].write(room, Put(Text("\(index)"))) }
    bench.run()
    #expect(bench.nodes[1].received(room).isEmpty)
    #expect(bench.nodes[0].engine.links.table.mustHold(for: session))
    // Still no room.
    bench.nodes[0].engine.turn([.drained(session)])
    #expect(bench.nodes[0].engine.links.table.mustHold(for: session))
    bench.nodes[0].links.full = []
    bench.nodes[0].engine.turn([.drained(session)])
    bench.run()
    #expect(!bench.nodes[0].engine.links.table.mustHold(for: session))
    #expect(bench.nodes[1].accepted(room) == bench.nodes[0].accepted(room))
    #expect(bench.nodes[1].state.mesh.sessions.count == 1)
  }

  @Test("a peer that reads nothing is cut off before what waits for it fills the memory")
  func readsNothing() throws {
    let bench = try EngineBench(2)
    let session = bench.meet(0, 1)
    let node = bench.nodes[0]
    try node.write(PartitionName("room=1"), Put("1"))
    node.links.full = [session]
    // Each wish is answered by what is held, and the answers wait.
    let wish = Message.interestChange(added: Interest(prefixes: ["room="]), removed: Interest())
    let question = EngineEvent.message(session, wish, byteCount: 10)
    node.engine.turn(Array(repeating: question, count: HeldFrames.frameLimit / 2))
    #expect(node.links.heldUp == [session], "reading from it pauses")
    #expect(!node.journal.says("cut off a peer that reads nothing"))
    node.engine.turn(Array(repeating: question, count: HeldFrames.frameLimit))
    #expect(node.journal.says("cut off a peer that reads nothing"))
    #expect(node.trace.entries.contains(.closed(session)))
  }

  @Test(
    "what waits for one device is bounded over all its sessions: the one with most is cut off, and the others go on")
  func deviceQueues() throws {
    let bench = try EngineBench(2)
    let copy = try bench.clone(1)
    let sessions = [bench.meet(1, 0), bench.meet(copy, 0)]
    let node = bench.nodes[0]
    #expect(node.state.mesh.sessions.count == 2)
    let half = LinkDirector.deviceQueueByteLimit / 2
    (node.links.queueByteMark, node.links.queuedByteCount) = (1_000_000, 1_000_001)
    let wish = Message.interestChange(added: Interest(prefixes: ["room="]), removed: Interest())
    func ask() throws {
      node.engine.turn([
        .message(sessions[1], .ping(nonce: 1), byteCount: 10), .message(sessions[1], wish, byteCount: 10),
      ])
      try node.write(PartitionName("room=1"), Put("1"))
    }
    node.links.queuedByteCounts = [sessions[0]: half, sessions[1]: half]
    try ask()
    #expect(!node.journal.says("cut off a peer that reads nothing"))
    node.links.queuedByteCounts[sessions[0]] = half + 1
    try ask()
    #expect(node.trace.entries.contains(.closed(sessions[0])))
    #expect(!node.trace.entries.contains(.closed(sessions[1])))
  }

  @Test("the log is read on for a peer only as its queue empties")
  func paused() throws {
    let bench = try EngineBench(2) { $0.mesh.loadByteLimit = 64 * 1_024 }
    let room = try PartitionName("room=1")
    try bench.nodes[1].subscribe("room=*")
    for index in 0..<40 { try bench.nodes[0].write(room, Put(Text("\(index)"), byteCount: 10_000)) }
    let links = bench.nodes[0].links
    (links.queueByteMark, links.queuedByteCount) = (1_000_000, 1_000_001)
    let session = bench.connect(1, 0)
    bench.run()
    let some = bench.nodes[1].received(room).sorted.first?.position.sequence ?? 0
    #expect(some < 40)
    bench.nodes[0].links.queuedByteCount = 0
    bench.nodes[0].engine.turn([.drained(session)])
    bench.run()
    for _ in 0..<4 { bench.advance(100) }
    #expect(bench.nodes[1].accepted(room) == bench.nodes[0].accepted(room))
  }

  @Test("bytes are counted with what frames them, both ways")
  func counted() throws {
    let bench = try EngineBench(2)
    let session = bench.meet(0, 1)
    let (one, other) = (bench.nodes[0].engine.links.table[session], bench.nodes[1].engine.links.table[session])
    #expect(one?.sentByteCount ?? 0 > 0)
    #expect(one?.sentByteCount == other?.receivedByteCount)
    #expect(one?.receivedByteCount == other?.sentByteCount)
    #expect(one?.device == DeviceID(bench.nodes[1].key.publicKey))
  }

  @Test("a change of the network ends stranded connections and tries failed addresses at once")
  func networkChanged() throws {
    let bench = try EngineBench()
    let node = bench.nodes[0]
    node.engine.turn([.sighting(.configured([address]))])
    node.engine.turn([.dialFailed(tag: try #require(node.links.dials.first?.tag), reason: "no route")])
    node.engine.turn([.networkChanged])
    #expect(node.links.strandings == 1)
    for _ in 0..<5 where node.links.dials.count == 1 { bench.advance(1_000) }
    #expect(node.links.dials.count == 2)
  }

  @Test("a node says goodbye when it stops, and closes what it had")
  func finish() throws {
    let bench = try EngineBench(2)
    let session = bench.meet(0, 1)
    try bench.nodes[0].write(try PartitionName("room=1"), Put("a"))
    bench.nodes[0].mark.saved = nil
    bench.nodes[0].trace.clear()
    bench.nodes[0].engine.finish()
    #expect(bench.nodes[0].trace.entries == [.sent(session, "goodbye"), .closed(session)])
    #expect(bench.nodes[0].mark.saved?.reached == 1)
    bench.run()
    #expect(bench.nodes[1].state.mesh.sessions.isEmpty)
  }

  @Test("remembered outcomes of addresses are bounded")
  func outcomes() {
    var table = LinkTable()
    for port in 0..<UInt16(LinkTable.outcomeLimit + 50) {
      table.note(.failed("no"), at: .socket(SocketAddress(.ipv4(1), port: port)))
    }
    #expect(table.outcomes.count == LinkTable.outcomeLimit)
    #expect(table.outcomes[.socket(SocketAddress(.ipv4(1), port: UInt16(LinkTable.outcomeLimit + 49)))] != nil)
  }

  @Test("a queue gives back what was put in, in order, and is empty after that")
  func queue() {
    var queue = Queue<Int>()
    var (taken, next): ([Int], Int) = ([], 0)
    for round in 0..<50 {
      queue.put(Array(next..<next + round % 5))
      next += round % 5
      queue.put(next)
      next += 1
      for _ in 0..<2 { if let item = queue.take() { taken.append(item) } }
    }
    while let item = queue.take() { taken.append(item) }
    #expect(taken == Array(0..<next))
    #expect(queue.take() == nil)
  }

  @Test("an engine wants to be woken for its next tick, and passes on what comes")
  func wake() throws {
    let bench = try EngineBench(3)
    let room = try PartitionName("room=1")
    for node in bench.nodes { try node.subscribe("room=*") }
    bench.meet(0, 1)
    bench.meet(1, 2)
    // What comes from somebody who has just been met may come to the other from himself.
    bench.advance(2_000)
    let idle = bench.nodes[1].engine.nextWake.millisecondsSince(bench.clock.now)
    #expect(idle > 0 && idle <= Mesh.tickMilliseconds)
    try bench.nodes[0].write(room, Put("a"))
    bench.run()
    // Somebody else may pass it on as well.
    bench.advance(100)
    #expect(try bench.nodes[2].shown(room, "a") != nil)
  }
}
