import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: whom to ask, and whom to ask again") struct MeshRepullTests {
  private func pulls(_ bench: MeshBench, from: Int, to: Int, since start: Int = 0) -> Int {
    bench.said(from: from, to: to, since: start).count { $0 == "pull" }
  }

  /// Says to a node what another holds, although nothing of it arrived.
  private func announce(_ bench: MeshBench, _ slot: Int, to other: Int, on id: SessionID) throws {
    let held = try #require(bench.nodes[slot].state?.clipped)
    bench.nodes[other].receive(.have(PartitionVector(name: bench.name, vector: held)), on: id)
  }

  /// Node 1 has its stream from node 0 open, and is in a catch-up with node 2, which answers nothing.
  private func askingAnother() throws -> (MeshBench, SessionID) {
    let bench = try MeshBench([0, 1, 2])
    let id = bench.connected(0, 1)
    try bench.nodes[2].write(9)
    bench.nodes[2].holdsLoads = true
    _ = bench.connected(2, 1)
    try #require(pulls(bench, from: 1, to: 2) == 1)
    return (bench, id)
  }

  @Test("what is wanted no more and then again is asked for at once, also where a catch-up of it was under way")
  func wantedAgain() throws {
    let bench = try MeshBench([0, 1, 2])
    try bench.nodes[0].write(1)
    bench.cut(bench.connected(0, 1))
    bench.nodes[0].holdsLoads = true
    for slot in 0..<2 { _ = bench.connected(2, slot) }
    let everything = bench.fleet.interest("*")
    bench.nodes[2].deliver(.interestChanged(added: Interest(), removed: everything))
    bench.run()
    let start = bench.transcript.count
    bench.nodes[2].deliver(.interestChanged(added: everything, removed: Interest()))
    bench.run()
    #expect(pulls(bench, from: 2, to: 0, since: start) + pulls(bench, from: 2, to: 1, since: start) > 0)
  }

  @Test("what was left out is asked for at once when statements come, also while its peer does a catch-up")
  func leftOutDuringCatchUp() throws {
    let bench = try MeshBench([0, 1, 2], rights: .byUser)
    func grant(to slot: Int) throws -> Statement {
      let device = Statement.Subject.device(bench.nodes[slot].key.publicKey)
      return try #require(bench.state(.grant(Statement.Grant(subject: device, level: .write, pattern: "*"))))
    }
    let known = try grant(to: 2)
    for node in bench.nodes { node.deliver(.statementsStored([known])) }
    let id = bench.connected(0, 1)
    let late = try grant(to: 0)
    bench.nodes[0].deliver(.statementsStored([late]))
    bench.loseMessages()
    try bench.nodes[0].write(1)
    bench.run()
    try #require(bench.nodes[1].log.isEmpty)
    // Something else that the peer has named does not come either.
    bench.now = bench.now.advanced(byMilliseconds: 5_100)
    let named = VersionVector([bench.nodes[2].replica: ChainPosition(sequence: 1, tip: TipHash(high: 1, low: 1))])
    bench.nodes[1].receive(.have(PartitionVector(name: bench.name, vector: named)), on: id)
    bench.run()
    try #require(!bench.nodes[1].mesh.pulls.catchUps.isEmpty)
    let start = bench.transcript.count
    bench.nodes[1].deliver(.statementsStored([late]))
    bench.run()
    #expect(pulls(bench, from: 1, to: 0, since: start) == 1 && bench.nodes[1].holds(bench.nodes[0]) == 1)
  }

  @Test("a stream that equal summaries opened stays open while another peer does a catch-up")
  func levelStays() throws {
    let (bench, id) = try askingAnother()
    try bench.nodes[0].write(1)
    try announce(bench, 0, to: 1, on: id)
    bench.run()
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 1)
  }

  @Test("a silent stream is not asked for anew beside a catch-up with another peer")
  func oneAtATime() throws {
    let (bench, id) = try askingAnother()
    try bench.nodes[0].write(1)
    bench.loseMessages()
    // Node 1 has a stream by that, of which nothing comes.
    try announce(bench, 0, to: 1, on: id)
    bench.now = bench.now.advanced(byMilliseconds: 5_100)
    let start = bench.transcript.count
    try announce(bench, 0, to: 1, on: id)
    #expect(pulls(bench, from: 1, to: 0, since: start) == 0)
  }

  @Test("a stream on which runs come is not silent")
  func runsAreProgress() throws {
    for comes in [true, false] {
      let bench = try MeshBench([0, 1])
      try bench.nodes[0].write(0)
      let id = bench.connected(0, 1)
      bench.now = bench.now.advanced(byMilliseconds: 4_000)
      try bench.nodes[0].write(1)
      if comes { bench.run() } else { bench.loseMessages() }
      try bench.nodes[0].write(2)
      bench.loseMessages()
      bench.now = bench.now.advanced(byMilliseconds: 2_000)
      let start = bench.transcript.count
      try announce(bench, 0, to: 1, on: id)
      #expect(pulls(bench, from: 1, to: 0, since: start) == (comes ? 0 : 1))
    }
  }

  @Test("what one side came to want after the comparison is not taken for level", arguments: [0, 1])
  func wantedLater(changing: Int) throws {
    let bench = try MeshBench([0, 1], wants: changing == 0 ? ["user=*", "*"] : ["*", "user=*"])
    try bench.nodes[0].write(0)
    let id = bench.connected(0, 1)
    let agencies = bench.fleet.interest("agency=*")
    if changing == 0 {
      bench.nodes[0].deliver(.interestChanged(added: agencies, removed: Interest()))
    } else {
      bench.nodes[0].receive(.interestChange(added: agencies, removed: Interest()), on: id)
    }
    let start = bench.transcript.count
    try bench.nodes[0].write(1)
    #expect(bench.said(from: 0, to: 1, since: start) == ["have"])
  }

  @Test("streams that were level once open without a word, also where a later comparison differs")
  func levelOnce() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    bench.nodes[0].receive(.summary(Summary(1, .digest(1))), on: id)
    bench.loseMessages()
    bench.nodes[0].receive(.summary(Summary(1, .partitions(equal: 0, []))), on: id)
    let start = bench.transcript.count
    try bench.nodes[0].write(1)
    #expect(bench.said(from: 0, to: 1, since: start) == ["runs"])
    bench.run()
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 1)
  }
}
