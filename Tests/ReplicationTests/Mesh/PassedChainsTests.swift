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
    chains.reopen(awaiting: [replica: 4])
    chains.noteComparison()
    chains.noteProgress()
    chains.noteComparison()
    #expect(chains.takesAll)
    chains.noteComparison()
    #expect(!chains.takesAll)
  }

  @Test("what is awaited is bounded again when it is here, and not before")
  func isHere() {
    var chains = LeftOutChains()
    chains.reopen(awaiting: [replica: 4])
    chains.endAwaiting { _, sequence in sequence <= 3 }
    #expect(chains.takesAll)
    chains.endAwaiting { _, sequence in sequence <= 4 }
    #expect(!chains.takesAll)
  }
}
