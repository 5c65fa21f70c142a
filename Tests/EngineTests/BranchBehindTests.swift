import Replication
import Testing
import Wire

@testable import Engine
@testable import Replication

/// A member puts more of a lost branch in front of a run than is read of the log at once.
@Suite struct BranchBehindTests {
  @Test("what goes on from the branch that counts goes out, and so does other work, behind however much of a lost one")
  func behindLost() throws {
    let bench = try EngineBench(3) {
      $0.mesh.loadByteLimit = 2_000
      $0.mesh.largestLoadByteLimit = 4_000
    }
    let room = try PartitionName("room=1")
    for node in bench.nodes { try node.subscribe("*") }
    let author = HostileAuthor(bench, slot: 2)
    let session = bench.meet(2, 0)
    author.say([.statements(try author.declare(1).map(\.encoded))], to: 0, on: session)
    let replica = author.replicas[0]
    let common = try author.run(room, replica, count: 3)
    author.offer(room, [common], to: 0, on: session)
    let ends = try (1...2 as ClosedRange<Int64>).map {
      try author.run(room, replica, fork: (common.record.last, common.record.hashAtLast, $0))
    }
    author.say([author.batch(room, ends, asEvidence: true)], to: 0, on: session)
    let counts = try #require(bench.nodes[0].accepted(room)[replica])
    let winner = try #require(ends.first { $0.record.hashAtLast.tip == counts.tip })
    var lost = try #require(ends.first { $0.record.hashAtLast.tip != counts.tip })
    // Shown and settled with the other honest node, each change in a run of its own.
    let met = bench.meet(0, 1)
    var branch: [Run] = []
    for word in 10..<40 as Range<Int64> {
      lost = try author.run(room, replica, fork: (lost.record.last, lost.record.hashAtLast, word))
      branch.append(lost)
    }
    func heard(_ runs: [Run]) {
      let message = author.batch(room, runs, asEvidence: true)
      bench.nodes[0].engine.turn([bench.event(MessageCodec.encode(message), session, 0)])
      bench.run()
    }
    heard(branch)
    try #require(bench.nodes[0].accepted(room)[replica] == counts && bench.nodes[1].accepted(room)[replica] == counts)
    let rest = try author.run(
      room, replica, count: 36, fork: (winner.record.last, winner.record.hashAtLast, 50))
    heard([rest])
    try #require(bench.nodes[0].accepted(room)[replica]?.sequence == 40)
    try bench.nodes[0].write(room, Put("a"))
    for _ in 0..<4 { bench.advance(500) }
    #expect(try bench.nodes[1].shown(room, "a") != nil)
    #expect(bench.nodes[1].accepted(room)[replica]?.sequence == 40)
    #expect(bench.nodes[0].state.mesh.sessions[met]?.phase == .live)
  }
}
