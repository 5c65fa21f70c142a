import Identity
import Replication
import Testing
import Wire

@testable import Engine
@testable import Replication

/// A member who has taken all that one device may: what is left out, and whom that does not touch (decision 30).
@Suite struct SpentDeviceTests {
  private let bench: EngineBench
  private let author: HostileAuthor
  private let room: PartitionName

  /// Nodes 0 and 1 are honest, in slot 2 is the member. Small bounds, so that few runs reach them.
  init() throws {
    bench = try EngineBench(3) {
      $0.mesh.takes.partitions = 20
      $0.mesh.takes.chains = 30
      $0.mesh.takes.heldChanges = 200
      $0.mesh.statementLimit = 8
    }
    room = try PartitionName("room=1")
    for node in bench.nodes { try node.subscribe("*") }
    author = HostileAuthor(bench, slot: 2)
    let declarations = try author.declare(4).map(\.encoded)
    for slot in 0..<2 {
      let session = bench.meet(2, slot)
      author.say([.statements(declarations)], to: slot, on: session)
      bench.cut(session)
    }
  }

  private func name(_ number: Int) throws -> PartitionName { try PartitionName(Text("flood=\(number)")) }
  private func take(_ slot: Int) -> DeviceTake {
    bench.nodes[slot].state.mesh.takes[author.identity.device] ?? .nothing
  }
  private func holds(_ slot: Int, _ name: PartitionName) -> Bool { !bench.nodes[slot].received(name).isEmpty }

  /// So many replica ids more, told to node 0.
  private func declare(_ count: Int) throws {
    let session = bench.meet(2, 0)
    author.say([.statements(try author.declare(count).map(\.encoded))], to: 0, on: session)
    bench.cut(session)
  }

  /// One change in each of these partitions, told to one node.
  @discardableResult
  private func flood(_ numbers: Range<Int>, _ slot: Int, replica: Int = 0) throws -> SessionID {
    let session = bench.meet(2, slot)
    for number in numbers {
      let name = try name(number)
      author.offer(name, [try author.run(name, author.replicas[replica])], to: slot, on: session)
    }
    return session
  }

  private func spoken(_ body: () throws -> Void) rethrows -> Int {
    for node in bench.nodes { node.links.clearSent() }
    try body()
    return bench.nodes.flatMap(\.links.sent).reduce(0) { $0 + MessageCodec.encode($1).count }
  }

  @Test("partitions that a spent device begins are left out, its session goes on, and it is told how much was left out")
  func partitions() throws {
    let session = try flood(0..<50, 0)
    #expect(take(0).partitions == 20 && take(0).leftOutRuns == 30)
    #expect(bench.nodes[0].state.mesh.footprint.partitions == 20)
    #expect(try bench.nodes[0].count("partitions") == 20)
    #expect(bench.nodes[0].state.mesh.sessions[session]?.phase == .live)
    // Where others write it writes as ever.
    try bench.nodes[0].write(room, Put("a"))
    let seen = bench.nodes[0].accepted(room)
    author.offer(room, [try author.run(room, author.replicas[1], seen: seen)], to: 0, on: session)
    #expect(bench.nodes[0].received(room).count == 2)
    // What counts is here after a restart, too.
    try bench.restart(0)
    #expect(take(0).partitions == 21 && take(0).chains == 21)
  }

  @Test("chains beside own ones alone are left out as well")
  func chains() throws {
    bench.cut(try flood(0..<20, 0))
    try flood(0..<20, 0, replica: 1)
    #expect(take(0).chains == 20 && take(0).leftOutRuns == 20)
  }

  @Test("chains of one device are left out beyond a number of them, in however few partitions they are")
  func chainsInFewPartitions() throws {
    for replica in 0..<4 { bench.cut(try flood(0..<10, 0, replica: replica)) }
    #expect(take(0) == DeviceTake(partitions: 10, chains: 30, leftOutRuns: 10))
  }

  @Test("what a device wrote under replica ids whose declarations it then pushed out is still counted")
  func pushedOut() throws {
    // Eight statements of one device are kept, the lowest of each branch.
    try declare(4)
    bench.cut(try flood(0..<15, 0, replica: 7))
    #expect(take(0).chains == 15 && take(0).partitions == 15)
    author.beginAgain()
    try declare(4)
    try #require(bench.nodes[0].state.mesh.authority.author(of: author.replicas[7]) == nil)
    #expect(take(0).chains == 15 && take(0).partitions == 15)
    bench.cut(try flood(15..<30, 0, replica: 8))
    #expect(take(0).partitions == 20 && take(0).leftOutRuns == 10)
    #expect(try bench.nodes[0].count("partitions") == 20)
    // In one of those it begins a chain, and no place.
    bench.cut(try flood(3..<4, 0, replica: 8))
    try bench.restart(0)
    #expect(take(0).partitions == 20)
  }

  @Test("it counts as well for a device that comes to have said all that it may later, as soon as it has")
  func pushedOutBeforeAnother() throws {
    try declare(4)
    bench.cut(try flood(0..<15, 0, replica: 7))
    author.beginAgain()
    try declare(4)
    try #require(bench.nodes[0].state.mesh.authority.author(of: author.replicas[7]) == nil)
    let other = HostileAuthor(bench, slot: 1)
    let second = bench.meet(1, 0)
    other.say([.statements(try other.declare(8).map(\.encoded))], to: 0, on: second)
    #expect(bench.nodes[0].state.mesh.takes[other.identity.device]?.chains == 15)
  }

  @Test("two nodes that left out different things say little about it when they meet, and agree about honest work")
  func meeting() throws {
    for slot in 0..<2 { bench.cut(try flood(slot * 20..<slot * 20 + 20, slot)) }
    bench.cut(bench.meet(0, 1))
    #expect((0..<2).allSatisfy { bench.nodes[$0].state.mesh.footprint.partitions == 20 })
    let spoken = spoken { bench.cut(bench.meet(0, 1)) }
    #expect(spoken < 2_000, "\(spoken) bytes")
    let session = bench.meet(0, 1)
    try bench.nodes[0].write(room, Put("a"))
    bench.run()
    #expect(try bench.nodes[1].shown(room, "a") != nil)
    #expect(bench.nodes[1].state.mesh.sessions[session]?.phase == .live)
  }

  @Test("who is not spent yet is given what the other has, until he is")
  func newcomer() throws {
    bench.cut(try flood(0..<20, 0))
    bench.cut(try flood(20..<25, 1))
    for _ in 0..<2 { bench.cut(bench.meet(0, 1)) }
    #expect(take(1).partitions == 20 && take(0).partitions == 20)
  }

  @Test("work of somebody who has seen what was left out elsewhere brings it there, causes first")
  func vouched() throws {
    for slot in 0..<2 { bench.cut(try flood(slot * 20..<slot * 20 + 20, slot)) }
    let name = try name(3)
    bench.cut(bench.meet(0, 1))
    #expect(!holds(1, name))
    try bench.nodes[0].write(name, Put("b"))
    let session = bench.meet(0, 1)
    for _ in 0..<4 { bench.advance(9_000) }
    #expect(bench.nodes[1].received(name) == bench.nodes[0].received(name) && holds(1, name))
    #expect(try bench.nodes[1].shown(name, "b") != nil)
    #expect(bench.nodes[1].state.mesh.sessions[session]?.phase == .live)
    // And what nobody vouches for is left out as before.
    #expect(!holds(1, try self.name(4)))
  }

  @Test("the same while the two are connected")
  func vouchedLive() throws {
    for slot in 0..<2 { bench.cut(try flood(slot * 20..<slot * 20 + 20, slot)) }
    let name = try name(3)
    let session = bench.meet(0, 1)
    bench.advance(1_000)
    try bench.nodes[0].write(name, Put("b"))
    for _ in 0..<4 { bench.advance(100) }
    #expect(try bench.nodes[1].shown(name, "b") != nil)
    #expect(bench.nodes[1].received(name) == bench.nodes[0].received(name))
    #expect(bench.nodes[1].state.mesh.sessions[session]?.phase == .live)
  }

  /// Another beginning of the member's chain than the one that was signed first.
  private func otherBranch(_ name: PartitionName) throws -> Run {
    let chain = ChainIdentity(
      fleet: author.identity.fleet, partition: author.identity.id(of: name), replica: author.replicas[0])
    return try author.run(
      name, author.replicas[0], fork: (0, chain.genesis(author.identity.cryptography.hash), 1))
  }

  @Test("the same where the chain that it has seen is forked, and shown as evidence")
  func vouchedForked() throws {
    bench.cut(try flood(20..<40, 1))
    let session = try flood(0..<20, 0)
    let name = try name(3)
    // Behind what is left out comes a change that waits for it.
    author.offer(name, [try author.run(name, author.replicas[0])], to: 0, on: session)
    author.say([author.batch(name, [try otherBranch(name)], asEvidence: true)], to: 0, on: session)
    bench.cut(session)
    try bench.nodes[0].write(name, Put("b"))
    let met = bench.meet(0, 1)
    for _ in 0..<4 { bench.advance(9_000) }
    #expect(bench.nodes[1].accepted(name) == bench.nodes[0].accepted(name) && holds(1, name))
    #expect(try bench.nodes[1].shown(name, "b") != nil)
    #expect(bench.nodes[1].state.mesh.sessions[met]?.phase == .live)
  }

  @Test("the same where that work waits here before what it has seen comes and is left out")
  func vouchedAhead() throws {
    let slot = try bench.addMember()
    let other = HostileAuthor(bench, slot: slot)
    let introduction = bench.meet(slot, 1)
    other.say([.statements(try other.declare(1).map(\.encoded))], to: 1, on: introduction)
    let session = try flood(20..<40, 1)
    let name = try name(3)
    let seen = try author.run(name, author.replicas[0])
    let end = ChainPosition(sequence: seen.record.last, tip: seen.record.hashAtLast.tip)
    let work = try other.run(name, other.replicas[0], seen: VersionVector([author.replicas[0]: end]))
    for run in [work, seen] {
      author.say([author.batch(name, [run], asEvidence: true)], to: 1, on: session)
      #expect(!holds(1, name))
    }
    // Now it is asked for.
    author.say([author.batch(name, [seen], asEvidence: true)], to: 1, on: session)
    #expect(bench.nodes[1].received(name).count == 2)
  }

  /// Node 1 has of the member what it may have, node 0 has a few partitions more; the two are connected.
  private func leftOut() throws -> PartitionName {
    // Declared by now: with new statements whatever was left out is asked for anyway.
    try bench.nodes[1].write(room, Put("a"))
    bench.cut(try flood(0..<20, 1))
    bench.cut(try flood(20..<25, 0))
    bench.meet(0, 1)
    bench.advance(1_000)
    try #require((20..<25).allSatisfy { !holds(1, try name($0)) } && take(1).leftOutRuns > 0)
    return try name(22)
  }

  @Test("what stood alone and was left out is asked for again as soon as this device writes beside it")
  func besideOwn() throws {
    let name = try leftOut()
    try bench.nodes[1].write(name, Put("b"))
    bench.run()
    #expect(bench.nodes[1].received(name).count == 2)
    // And what still stands alone is left out as before.
    #expect(!holds(1, try self.name(23)))
  }

  @Test("the same as soon as a peer on another session brings what it wrote beside it without having seen it")
  func besideOnAnotherSession() throws {
    let writer = try bench.addMember()
    try bench.nodes[writer].subscribe("*")
    try bench.nodes[writer].write(room, Put("c"))
    bench.meet(writer, 1)
    let name = try leftOut()
    try bench.nodes[writer].write(name, Put("b"))
    bench.run()
    #expect(bench.nodes[1].received(name).count == 2)
    #expect(!holds(1, try self.name(23)))
  }

  @Test("a device that is no admin begins nothing more at half of it, and goes on where it writes already or others do")
  func own() throws {
    for number in 0..<10 { try bench.nodes[1].write(try name(number), Put("a")) }
    #expect(throws: EngineError.tooManyPartitions(try name(10))) { try bench.nodes[1].write(try name(10), Put("a")) }
    #expect(!holds(1, try name(10)))
    try bench.nodes[1].write(try name(9), Put("b"))
    try bench.nodes[0].write(room, Put("a"))
    bench.cut(bench.meet(0, 1))
    try bench.nodes[1].write(room, Put("b"))
    // The founder's device is an admin's.
    for number in 0..<30 { try bench.nodes[0].write(try name(100 + number), Put("a")) }
  }

  @Test("branches are learned up to a number of changes; plain work and others' goes on")
  func branches() throws {
    let session = bench.meet(2, 0)
    let replica = author.replicas[0]
    let first = try author.run(room, replica, count: 2)
    author.offer(room, [first], to: 0, on: session)
    for word in 0..<30 {
      let branch = try author.run(
        room, replica, count: 20, fork: (first.record.last, first.record.hashAtLast, Int64(word + 2)))
      author.say([author.batch(room, [branch], asEvidence: true)], to: 0, on: session)
    }
    #expect((200..<220).contains(take(0).heldChanges))
    // The branch that counts is in memory, too, and not held against anybody.
    #expect(bench.nodes[0].state.mesh.footprint.heldChanges == take(0).heldChanges + 20)
    #expect(take(0).leftOutRuns >= 18)
    #expect(bench.nodes[0].state.mesh.sessions[session]?.phase == .live)
    author.offer(room, [try author.run(room, author.replicas[1])], to: 0, on: session)
    #expect(bench.nodes[0].received(room)[author.replicas[1]] != nil)
    try bench.nodes[0].write(room, Put("a"))
    bench.cut(bench.meet(0, 1))
    #expect(try bench.nodes[1].shown(room, "a") != nil)
  }
}
