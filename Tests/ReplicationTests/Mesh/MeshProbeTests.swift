import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: probes of chains") struct MeshProbeTests {
  private let name: PartitionName

  init() throws { name = try PartitionName("agency=Galapagos") }

  private func probe(_ bench: MeshBench, wantsReply: Bool) -> Message {
    .chainProbe(
      ChainProbe(name: bench.name, replica: bench.nodes[0].replica, positions: [], wantsReply: wantsReply))
  }

  @Test("a probe is answered by one where it asks for it, so many times until the next comparison, and no more")
  func probes() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    try bench.nodes[0].write(1)
    bench.pass(100)
    func answers(_ count: Int, wantsReply: Bool = true) -> Int {
      let start = bench.transcript.count
      for _ in 0..<count { bench.nodes[1].receive(probe(bench, wantsReply: wantsReply), on: id) }
      return bench.said(from: 1, to: 0, since: start).count { $0 == "chainProbe" }
    }
    #expect(answers(1, wantsReply: false) == 0)
    #expect(answers(1) == 1)
    #expect(answers(ForkSearch.answeredProbeLimit + 10) == ForkSearch.answeredProbeLimit - 2)
    bench.loseMessages()
    bench.pass(40_000)
    #expect(answers(1) == 1)
  }

  @Test("a probe names the last sixteen ends, then ever fewer back to the start, and never too many")
  func positions() {
    let replica = ReplicaID(high: 1, low: 1)
    func positions(_ count: UInt64) -> [UInt64] {
      let runs = (0..<count).map { index in
        RunSummary(
          partition: name, replica: replica, first: index + 1, hashBefore: .zero,
          hashes: [Digest(words: (index, 0, 0, 0))], context: VersionVector(), signer: PublicKey(.zero))
      }
      let probe = ChainProbe(name: name, replica: replica, runs: runs, wantsReply: false)
      return probe.positions.map(\.sequence)
    }
    #expect(positions(0) == [] && positions(3) == [1, 2, 3])
    let many = positions(10_000)
    #expect(many.suffix(16) == Array(9_985...10_000) && many.count < 30 && many == many.sorted())
  }

  @Test("answers to a node's own probes leave it as many of the peer's to answer as there were")
  func ownQuestions() throws {
    let bench = try MeshBench([0, 0])
    try bench.nodes[0].write(1)
    try bench.nodes[1].write(2)
    let id = bench.connected(0, 1)
    let vector = try #require(bench.nodes[0].state?.clipped)
    let start = bench.transcript.count
    // Each makes node 1 search the fork anew.
    for _ in 0..<ForkSearch.answeredProbeLimit {
      bench.post(.vectors([PartitionVector(name: bench.name, vector: vector)]), from: 0, on: id)
      bench.run()
    }
    try #require(bench.said(from: 1, to: 0, since: start).count { $0 == "chainProbe" } == ForkSearch.answeredProbeLimit)
    let (asked, count) = (bench.transcript.count, ForkSearch.answeredProbeLimit / 2)
    for _ in 0..<count { bench.post(probe(bench, wantsReply: true), from: 0, on: id) }
    bench.run()
    #expect(bench.said(from: 1, to: 0, since: asked).count { $0 == "chainProbe" } == count)
  }
}
