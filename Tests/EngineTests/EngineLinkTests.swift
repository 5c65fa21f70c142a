import Identity
import Replication
import Storage
import Testing
import Wire

@testable import Engine

/// Connections over time: who is dialled again and when, who is read from again, what the end of a session leaves.
@Suite struct EngineLinkTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  private func address(_ port: UInt16) -> PeerAddress { .socket(SocketAddress(.ipv4(0x7f00_0001), port: port)) }

  private func opened(_ number: UInt64, by key: PublicKey, tag: UInt64?) -> EngineEvent {
    .opened(
      OpenedLink(
        session: SessionID(rawValue: number), dialTag: tag, remote: SocketAddress(.ipv4(0x7f00_0001), port: 4_001),
        peerKey: key, exporter: .zero))
  }

  // MARK: Waking

  @Test("what one peer brings goes on to another within the relay's pause, where the node is woken when it asks to be")
  func relayWakes() throws {
    let bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    bench.meet(0, 1)
    bench.meet(1, 2)
    try bench.nodes[0].write(room, Put("first"))
    bench.run()
    bench.advance(Mesh.tickMilliseconds)
    #expect(try bench.nodes[2].shown(room, "first") != nil)
    try bench.nodes[0].write(room, Put("second"))
    bench.run()
    let pause = bench.nodes[1].state.options.mesh.relayMilliseconds
    #expect(bench.nodes[1].engine.nextWake.millisecondsSince(bench.clock.now) <= pause)
    bench.advance(bench.nodes[1].engine.nextWake.millisecondsSince(bench.clock.now))
    #expect(try bench.nodes[2].shown(room, "second") != nil)
  }

  @Test("a dial that is due wakes the node, however short the time until it is")
  func dialWakes() throws {
    let bench = try EngineBench()
    let node = bench.nodes[0]
    node.engine.turn([.sighting(.configured([address(1)]))])
    var lateness: [UInt64] = []
    for _ in 0..<4 {
      node.engine.turn([.dialFailed(tag: try #require(node.links.dials.last?.tag), reason: "nobody there")])
      let due = try #require(node.engine.links.nextWake)
      let count = node.links.dials.count
      for _ in 0..<200 where node.links.dials.count == count {
        bench.advance(max(1, node.engine.nextWake.millisecondsSince(bench.clock.now)))
      }
      #expect(node.links.dials.count == count + 1)
      lateness.append(bench.clock.now.millisecondsSince(due))
    }
    #expect(lateness.allSatisfy { $0 <= 1 })
  }

  // MARK: Dials that come to nothing

  @Test("an address that leads to another fleet is let be for far longer than one where nobody answers")
  func otherFleet() throws {
    let bench = try EngineBench()
    let stranger = try EngineBench(seed: 2).nodes[0].key.publicKey
    let node = bench.nodes[0]
    node.engine.turn([.sighting(.configured([address(1)]))])
    node.engine.turn([opened(9, by: stranger, tag: node.links.dials.last?.tag)])
    let hello = Hello(
      fleetProof: .zero, instance: .zero, wallMilliseconds: 0, listenPort: 0, authority: .zero, interest: .zero)
    node.engine.turn([.message(SessionID(rawValue: 9), .hello(hello), byteCount: 1)])
    node.engine.turn([.closed(SessionID(rawValue: 9), reason: "closed")])
    #expect(node.engine.links.table.outcomes[address(1)] == .otherFleet)
    for _ in 0..<50 { bench.advance(500) }
    #expect(node.links.dials.count == 1, "a failure would have been tried again after 15 s at the latest")
  }

  @Test("a dial that ended in a connection without room, or without a hello, makes room for the next at once")
  func dialsEnd() throws {
    let limit = DialPolicy.Limits.concurrentDials
    let bench = try EngineBench(1) { $0.mesh.sessionLimit = 1 }
    let node = bench.nodes[0]
    node.engine.turn([.sighting(.configured((0..<UInt16(limit) + 2).map { address(1 + $0) }))])
    #expect(node.links.dials.count == limit)
    let strangers = try (2..<4).map { try EngineBench(seed: $0).nodes[0].key.publicKey }
    node.engine.turn([opened(1, by: strangers[0], tag: node.links.dials[0].tag)])
    // No room for a second session: its dial is over.
    node.engine.turn([opened(2, by: strangers[1], tag: node.links.dials[1].tag)])
    #expect(node.links.dials.count == limit + 1)
    #expect(
      node.engine.links.table.outcomes[node.links.dials[1].address]
        == .failed("this node has no room for one more session"))
    // The first one went before it had said who it is.
    node.engine.turn([.closed(SessionID(rawValue: 1), reason: "closed")])
    #expect(node.links.dials.count == limit + 2)
    let outcome = node.engine.links.table.outcomes[node.links.dials[0].address]
    #expect(outcome == .ended("closed") && outcome?.words == "the connection ended (closed)")
  }

  @Test("who did not take this node is dialled again soon once a device was let in, and not for any other statement")
  func letIn() throws {
    let bench = try EngineBench()
    let stranger = try EngineBench(seed: 2).nodes[0].key.publicKey
    let node = bench.nodes[0]
    node.engine.turn([.sighting(.configured([address(1)]))])
    node.engine.turn([opened(9, by: stranger, tag: node.links.dials.last?.tag)])
    node.engine.turn([.message(SessionID(rawValue: 9), .goodbye(.notAMember), byteCount: 1)])
    node.engine.turn([.closed(SessionID(rawValue: 9), reason: "closed")])
    #expect(node.engine.links.table.outcomes[address(1)] == .notAMember)
    node.engine.add([try bench.grant(.read)])
    bench.advance(1_000)
    node.engine.add([try bench.grant(.write)])
    for _ in 0..<4 { bench.advance(500) }
    #expect(node.links.dials.count == 1)
    let body = Statement.Membership(
      device: stranger, user: "user", label: "again", role: "officer", profile: ValueMap())
    node.engine.add([try bench.statement(.membership(body))])
    for _ in 0..<4 { bench.advance(500) }
    #expect(node.links.dials.count == 2)
  }

  @Test("where the node's own links keep it from an address that is told as such, and not as a failure there")
  func ownLinks() throws {
    let bench = try EngineBench(2)
    let node = bench.nodes[0]
    node.engine.turn([.sighting(.configured([address(1), address(2), address(3)]))])
    let dials = node.links.dials
    node.engine.turn([.dialFailed(tag: dials[0].tag, reason: "in its words", isLinkClosed: true)])
    #expect(node.engine.links.table.outcomes[dials[0].address] == .linkClosed)
    // Closed between the dial and the connection.
    node.links.passage = nil
    node.engine.turn([opened(1, by: bench.nodes[1].key.publicKey, tag: dials[1].tag)])
    #expect(node.engine.links.table.outcomes[dials[1].address] == .linkClosed)
    node.links.passage = Passage(nil, isThin: false)
    let session = bench.connect(0, 1, dialTag: dials[2].tag)
    bench.run()
    #expect(node.engine.links.table.outcomes[dials[2].address] == nil)
    node.links.passage = .authority
    node.engine.turn([.passagesMoved])
    node.engine.turn([.closed(session, reason: "closed")])
    #expect(node.engine.links.table.outcomes[dials[2].address] == .linkMoved)
  }

  @Test("a copy of this very device is talked to, but remembered nowhere as a peer")
  func ownCopy() throws {
    let bench = try EngineBench()
    try bench.nodes[0].write(room, Put("a"))
    let copy = try bench.clone(0)
    bench.meet(0, copy)
    for node in bench.nodes {
      #expect(node.state.mesh.sessions.count == 1)
      #expect(try node.store.store.peers().isEmpty)
    }
  }

  @Test("a link that is given up for others in a large fleet is closed with a goodbye")
  func givenUp() throws {
    // Whom it links with has nobody else, so that there is one place more.
    let outgoing = DialPolicy.Limits.outgoingLinks + 1
    let others = DialPolicy.Limits.linksOfAll + 1
    let bench = try EngineBench(others + 1)
    let node = bench.nodes[0]
    let known = (1...others).map { slot in
      EngineEvent.sighting(
        .remembered(
          DeviceID(bench.nodes[slot].key.publicKey), [SocketAddress(.ipv4(0x7f00_0001), port: UInt16(4_000 + slot))]))
    }
    node.engine.turn(known)
    for _ in 0..<20 where node.state.mesh.sessions.count < outgoing {
      bench.advance(1_000)
      for dial in node.links.dials {
        guard case .socket(let address) = dial.address,
          let slot = bench.nodes.indices.first(where: { 4_000 + $0 == Int(address.port) }),
          !node.engine.links.table.links.values.contains(where: { $0.dialled == dial.address })
        else { continue }
        bench.connect(0, slot, dialTag: dial.tag)
        bench.run()
      }
    }
    #expect(node.state.mesh.sessions.count == outgoing)
    let before = Set(node.state.mesh.sessions.ids)
    node.trace.clear()
    for _ in 0..<400 where Set(node.state.mesh.sessions.ids) == before { bench.advance(500) }
    let gone = before.subtracting(node.state.mesh.sessions.ids)
    #expect(gone.count == 1)
    for id in gone {
      #expect(node.trace.entries.contains(.sent(id, "goodbye")))
      #expect(node.trace.entries.contains(.closed(id)))
    }
  }

  @Test("a peer whose clock differs is shown with the difference")
  func clock() throws {
    let bench = try EngineBench(2)
    let session = bench.connect(0, 1)
    bench.clock.wallMilliseconds += 3_600_000
    bench.run()
    #expect(bench.nodes[1].engine.links.table[session]?.clockDifference == -3_600_000)
    #expect(bench.nodes[1].journal.says("a peer's clock differs"))
  }

  @Test("a device counts as connected while one of its connections stands, whichever went")
  func oneOfTwo() throws {
    let bench = try EngineBench(2)
    let node = bench.nodes[0]
    try bench.nodes[1].write(room, Put("a"))
    let copy = try bench.clone(1)
    node.engine.turn([.sighting(.configured([address(4_001)]))])
    bench.connect(0, 1, dialTag: try #require(node.links.dials.last?.tag))
    bench.run()
    let other = bench.meet(copy, 0)
    #expect(node.state.mesh.sessions.count == 2)
    bench.cut(other)
    for _ in 0..<60 { bench.advance(500) }
    #expect(node.state.mesh.sessions.count == 1)
    #expect(node.links.dials.count == 1)
  }
}
