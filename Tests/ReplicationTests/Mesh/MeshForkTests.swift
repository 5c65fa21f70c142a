import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: two histories of one replica") struct MeshForkTests {
  /// A device and its clone, each with a change of its own, and a third node.
  private func forked() throws -> MeshBench {
    let bench = try MeshBench([0, 0, 1])
    try bench.nodes[0].write(1)
    try bench.nodes[1].write(2)
    return bench
  }

  private func agree(_ bench: MeshBench, _ nodes: [Int]) -> Bool {
    let replica = bench.nodes[0].replica
    let logs = nodes.map { bench.nodes[$0].state }
    return logs.allSatisfy { $0?.forkPoints == [replica: 0] } && Set(logs.map { $0?.accepted }).count == 1
  }

  @Test("clones that meet show each other their branches, agree, and both need a new replica")
  func meeting() throws {
    let bench = try forked()
    _ = bench.connect(0, 1)
    bench.run()
    #expect(agree(bench, [0, 1]))
    #expect(bench.nodes[0].hasToRenew && bench.nodes[1].hasToRenew)
    #expect(bench.nodes[0].log.count == 2 && bench.nodes[1].log.count == 2)
  }

  @Test("a fork reaches who met one branch alone, whichever came first", arguments: [[0, 1], [1, 0]])
  func third(order: [Int]) throws {
    let bench = try forked()
    for clone in order {
      _ = bench.connect(clone, 2)
      bench.run()
    }
    bench.pass(500)
    #expect(agree(bench, [0, 1, 2]))
    #expect(bench.nodes[0].hasToRenew && bench.nodes[1].hasToRenew)
  }

  @Test("a fork that is known on one side reaches the other, whoever dials", arguments: [true, false])
  func known(isKnownAtDialer: Bool) throws {
    let bench = try MeshBench([0, 0, 1, 2])
    try bench.nodes[0].write(1)
    try bench.nodes[1].write(2)
    let early = bench.connect(0, 3)
    bench.run()
    bench.cut(early)
    for clone in [0, 1] {
      _ = bench.connect(clone, 2)
      bench.run()
    }
    _ = isKnownAtDialer ? bench.connect(2, 3) : bench.connect(3, 2)
    bench.run()
    #expect(agree(bench, [2, 3]))
  }

  @Test("what was written in sight of a branch that lost is delivered, and counts")
  func seenBranch() throws {
    let bench = try MeshBench([0, 0, 1, 2])
    try bench.nodes[0].write(1)
    try bench.nodes[1].write(2)
    // Each branch is seen by one other node, which writes on top of it.
    _ = bench.connect(0, 2)
    _ = bench.connect(1, 3)
    bench.run()
    try bench.nodes[2].write(3)
    try bench.nodes[3].write(4)
    bench.run()
    _ = bench.connect(2, 3)
    bench.run()
    bench.pass(500)
    #expect(agree(bench, [0, 1, 2, 3]))
    #expect(bench.nodes[0].holds(bench.nodes[2]) == 1 && bench.nodes[0].holds(bench.nodes[3]) == 1)
    #expect(!bench.transcript.contains { "\($0.message)".contains("goodbye") })
  }

  @Test("a chain that storage cannot give back is reported once, and not asked for without end")
  func damage() throws {
    let bench = try forked()
    bench.nodes[0].hasLostLog = true
    _ = bench.connect(0, 1)
    bench.run()
    #expect(Set(bench.nodes[0].damaged) == [bench.nodes[0].replica])
    #expect(bench.nodes[0].mesh.footprint.parkedBatches == 0 && bench.nodes[0].mesh.footprint.awaitedHeaders == 0)
  }
}
