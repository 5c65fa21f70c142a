import Replication
import Testing
import Wire

@testable import Engine
@testable import Replication

/// A member whose chain has another branch at each of two nodes, and who has given one of them as many branches as it takes of
/// one device: work of others that stands on what is not there goes on all the same (decision 30).
@Suite struct SpentBranchTests {
  private let bench: EngineBench
  private let author: HostileAuthor
  private let room: PartitionName
  private let other: PartitionName
  /// Of a chain that nothing else is about.
  private let stem: Run

  /// Nodes 0 and 1 are honest, in slot 2 is the member.
  init() throws {
    bench = try EngineBench(3) { $0.mesh.takes.heldChanges = 60 }
    room = try PartitionName("room=1")
    other = try PartitionName("room=2")
    for node in bench.nodes { try node.subscribe("*") }
    author = HostileAuthor(bench, slot: 2)
    let declarations = try author.declare(3).map(\.encoded)
    stem = try author.run(other, author.replicas[2], count: 2)
    for slot in 0..<2 { told(slot) { author.say([.statements(declarations)], to: slot, on: $0) } }
  }

  private func told(_ slot: Int, _ body: (SessionID) throws -> Void) rethrows {
    let session = bench.meet(2, slot)
    try body(session)
    bench.cut(session)
  }

  /// So many branches to node 1 that it takes no more.
  private func spend() throws {
    try told(1) { session in
      author.offer(other, [stem], to: 1, on: session)
      for word in 2..<8 as Range<Int64> {
        let branch = try author.run(
          other, author.replicas[2], count: 20, fork: (stem.record.last, stem.record.hashAtLast, word))
        author.say([author.batch(other, [branch], asEvidence: true)], to: 1, on: session)
      }
    }
    let spent = bench.nodes[1].state.mesh.ledger.takes.spent
    try #require(spent.branches == [author.identity.device])
  }

  /// Node 0 is not spent, whatever node 1 shows it.
  private func takeMore() {
    bench.nodes[0].engine.state.mesh.ledger.takes = DeviceTakes(DeviceTakeLimits())
    bench.nodes[0].engine.state.mesh.ledger.countTakes()
  }

  /// Two changes that both have, then a branch of two to node 0, in single changes or in one run, and another one to node 1.
  private func branch(inOneRun: Bool = false) throws {
    let replica = author.replicas[0]
    let common = try author.run(room, replica, count: 2)
    for slot in 0..<2 { told(slot) { author.offer(room, [common], to: slot, on: $0) } }
    let runs = try (0..<(inOneRun ? 1 : 2)).map { _ in try author.run(room, replica, count: inOneRun ? 2 : 1) }
    told(0) { author.offer(room, runs, to: 0, on: $0) }
    let other = try author.run(room, replica, fork: (common.record.last, common.record.hashAtLast, 1))
    told(1) { author.offer(room, [other], to: 1, on: $0) }
    let ends = (0..<2).map { bench.nodes[$0].received(room)[replica] }
    try #require(ends.map { $0?.sequence } == [4, 3])
  }

  @Test(
    "what stands on a branch reaches who has another one and takes no more", arguments: [false, true], [false, true])
  func onBranch(dials: Bool, inOneRun: Bool) throws {
    try spend()
    try branch(inOneRun: inOneRun)
    try bench.nodes[0].write(room, Put("b"))
    let session = dials ? bench.meet(0, 1) : bench.meet(1, 0)
    for _ in 0..<4 { bench.advance(9_000) }
    #expect(try bench.nodes[1].shown(room, "b") != nil)
    #expect(bench.nodes[1].state.mesh.sessions[session]?.phase == .live)
    // What nobody stands on is left out as before: once it is here, no more are asked for.
    #expect(bench.nodes[1].state.mesh.sessions[session]?.spared.told.branches == [author.identity.device])
  }

  @Test("who takes more learns the branch of who does not", arguments: [false, true])
  func branchOfTheSpent(dials: Bool) throws {
    try spend()
    try branch()
    takeMore()
    _ = dials ? bench.meet(0, 1) : bench.meet(1, 0)
    for _ in 0..<4 { bench.advance(9_000) }
    #expect(bench.nodes[0].state.mesh.partitions[author.identity.id(of: room)]?.log.forkPoints[author.replicas[0]] == 2)
  }

  @Test("a branch that is passed over goes on without the peer, and nothing of it waits there")
  func passedOn() throws {
    try spend()
    try branch()
    let session = bench.meet(0, 1)
    for _ in 0..<4 { bench.advance(9_000) }
    try told(0) { author.offer(room, [try author.run(room, author.replicas[0])], to: 0, on: $0) }
    try #require(bench.nodes[0].received(room)[author.replicas[0]]?.sequence == 5)
    for _ in 0..<4 { bench.advance(500) }
    #expect(bench.nodes[1].state.mesh.sessions[session]?.phase == .live)
    #expect(bench.nodes[1].state.mesh.partitions[author.identity.id(of: room)]?.waiting.ahead.isEmpty == true)
  }

  @Test("the same while the two are connected")
  func onBranchLive() throws {
    try spend()
    try branch()
    let session = bench.meet(0, 1)
    bench.advance(1_000)
    try bench.nodes[0].write(room, Put("b"))
    for _ in 0..<10 { bench.advance(500) }
    #expect(try bench.nodes[1].shown(room, "b") != nil)
    #expect(bench.nodes[1].state.mesh.sessions[session]?.phase == .live)
  }
}
