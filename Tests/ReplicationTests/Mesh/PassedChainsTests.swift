import Testing

@testable import Replication

/// Chains that are passed over for a peer, and those that are awaited from one.
@Suite struct PassedChainsTests {
  private let replica = ReplicaID(high: 1, low: 2)

  @Test("a chain that is passed over stays so until what is being read without it has gone out")
  func untilRead() {
    var stream = Replication.OutgoingStream(number: 1)
    stream.pass(replica)
    _ = stream.beginLoad(1)
    stream.passNoMore([replica])
    let isSettledEarly = stream.settlePassed()
    #expect(stream.passed == [replica] && !isSettledEarly)
    stream.endLoad()
    let isSettled = stream.settlePassed()
    #expect(isSettled && stream.passed.isEmpty)
    stream.pass(replica)
    stream.passNoMore([replica])
    #expect(stream.passed.isEmpty)
  }

  @Test("what is awaited is given up when it has not gone on while the stream was compared twice")
  func awaited() {
    var chains = LeftOutChains()
    chains.reopen(awaiting: [replica: 4], in: nil)
    chains.noteComparison()
    chains.noteProgress()
    chains.noteComparison()
    #expect(chains.takesAll)
    chains.noteComparison()
    #expect(!chains.takesAll)
  }

  @Test("what is awaited is bounded again when it is here; until then only more of it is reason to wait longer")
  func isHere() throws {
    let bench = try MeshBench([0, 1])
    let replica = bench.nodes[1].replica
    _ = bench.connected(0, 1)
    func log() throws -> PartitionLog { try #require(bench.nodes[0].state) }
    func write() throws {
      try bench.nodes[1].write(1)
      bench.pass(100)
    }
    try write()
    var chains = LeftOutChains()
    chains.reopen(awaiting: [replica: 3], in: try log())
    chains.endAwaiting(in: try log())
    chains.noteComparison()
    // Something else came.
    chains.endAwaiting(in: try log())
    try write()
    chains.endAwaiting(in: try log())
    chains.noteComparison()
    #expect(chains.takesAll)
    var waiting = chains
    waiting.endAwaiting(in: try log())
    waiting.noteComparison()
    #expect(!waiting.takesAll, "nothing more of it has come")
    try write()
    chains.endAwaiting(in: try log())
    #expect(!chains.takesAll)
  }
}
