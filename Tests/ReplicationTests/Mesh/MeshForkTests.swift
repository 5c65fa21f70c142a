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

  @Test(
    "a fork that is known on one side reaches the other, whoever dials and whichever branch was there",
    arguments: [true, false], [0, 1])
  func known(isKnownAtDialer: Bool, branch: Int) throws {
    let bench = try MeshBench([0, 0, 1, 2])
    try bench.nodes[0].write(1)
    try bench.nodes[1].write(2)
    let early = bench.connect(branch, 3)
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
    // What had seen the branch that lost is told to the shell as more than plain: it has seen less than it says.
    let chosen = bench.nodes[0].state?.accepted[bench.nodes[0].replica]
    let misled = bench.nodes.prefix(2).flatMap(\.applied).filter {
      $0.incoming.replica != bench.nodes[0].replica && $0.context[bench.nodes[0].replica] != chosen
    }
    #expect(misled.contains { $0.change != nil })
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

  @Test("a run of this node's own chain, from elsewhere, is taken and calls for a new replica")
  func ownRun() throws {
    let bench = try MeshBench([0, 0, 1])
    try bench.nodes[1].write(1)
    _ = bench.connected(1, 2)
    bench.pass(100)
    // Node 0 is an older copy: it has lost what node 2 got.
    _ = bench.connected(0, 2)
    bench.pass(100)
    #expect(bench.nodes[0].hasToRenew && bench.nodes[0].log.count == 1)
  }

  @Test("another branch, above the fork that all know of, goes to everyone at once")
  func higherBranch() throws {
    // Three copies of one device. Node 3 meets them all, node 4 hears of them through node 3.
    let bench = try MeshBench([0, 0, 0, 1, 2])
    func met(_ slot: Int) { bench.cut(bench.connected(slot, 3)) }
    try bench.nodes[0].write(1)
    met(0)
    met(2)
    try bench.nodes[0].write(2)
    try bench.nodes[2].write(3)
    try bench.nodes[1].write(4)
    _ = bench.connected(3, 4)
    met(0)
    met(1)
    bench.pass(1_000)
    let proofs = { (slot: Int) in bench.nodes[slot].mesh.partitions[bench.partition]?.log.forkProofs.map(\.sequence) }
    try #require(proofs(3) == [1] && proofs(4) == [1])

    met(2)
    bench.pass(1_000)
    #expect(proofs(3) == [1, 2] && proofs(4) == [1, 2])
    #expect(agree(bench, [3, 4]))
  }

  @Test(
    "how a branch goes on that counts, or has lost, is passed on at once to who has shown the other",
    arguments: 1...6 as ClosedRange<Int64>)
  func goesOnBesideTheOther(value: Int64) throws {
    // Node 2 met the first copy, node 3 the second, and both know of the fork.
    let bench = try MeshBench([0, 0, 1, 2])
    try bench.nodes[0].write(value)
    try bench.nodes[1].write(11)
    try bench.nodes[1].write(12)
    bench.cut(bench.connected(0, 2))
    bench.cut(bench.connected(1, 3))
    _ = bench.connected(2, 3)
    bench.pass(1_000)
    try #require(agree(bench, [2, 3]))
    try bench.nodes[0].write(21)
    try bench.nodes[0].write(22)
    _ = bench.connected(0, 2)
    bench.pass(1_000)
    #expect(bench.nodes[2].log.count == 5 && bench.nodes[3].log.count == 5)
    #expect(agree(bench, [2, 3]))
  }

  @Test(
    "how a branch goes on reaches at once who had announced more of the other, also where that does not count any more",
    arguments: 1...6 as ClosedRange<Int64>)
  func goesOnBelowTheOther(value: Int64) throws {
    // Nodes 2 and 3 have five changes of the first copy; node 4 met the second one, of which they learn two, and then two more.
    let bench = try MeshBench([0, 0, 1, 2, 3])
    for number in 0..<5 { try bench.nodes[0].write(value + Int64(number)) }
    bench.cut(bench.connected(0, 2))
    _ = bench.connected(2, 3)
    for number in 11...12 as ClosedRange<Int64> { try bench.nodes[1].write(number) }
    bench.cut(bench.connected(1, 4))
    bench.pass(1_000)
    _ = bench.connect(2, 4)
    bench.run()
    try #require(agree(bench, [2, 3, 4]) && bench.nodes[3].log.count == 7)
    // Before anybody has told what it holds now.
    for number in 13...14 as ClosedRange<Int64> { try bench.nodes[1].write(number) }
    _ = bench.connect(1, 4)
    bench.run()
    bench.pass(500)
    #expect(bench.nodes[3].log.count == 9 && agree(bench, [2, 3, 4]))
  }

  @Test("a stream between two that were equal knows of a forked chain what lies on the branch that counts now")
  func levelStream() throws {
    let bench = try forked()
    _ = bench.connected(0, 1)
    let state = try #require(bench.nodes[0].mesh.partitions[bench.partition])
    let replica = bench.nodes[0].replica
    let ends = bench.nodes[0].log.compactMap { run in
      run.hashAtLast.map { ChainPosition(sequence: run.last, tip: $0.tip) }
    }
    try #require(ends.count == 2)
    let known = ends.map { PeerStream.level(state, known: VersionVector([replica: $0]), bench.now).known[replica] }
    #expect(known == ends.map { $0 == state.log.accepted[replica] ? $0 : nil })
  }

  @Test("who pulls and stands on a branch that has lost is searched once more, however many changes that has")
  func pullsWithoutWhatWasShown() throws {
    let bench = try MeshBench([0, 0])
    for value in 1...2 as ClosedRange<Int64> { try bench.nodes[0].write(value) }
    for value in 3...4 as ClosedRange<Int64> { try bench.nodes[1].write(value) }
    _ = bench.connected(0, 1)
    let (replica, log) = (bench.nodes[0].replica, try #require(bench.nodes[0].state))
    let ends = bench.nodes[0].log.compactMap { run in
      run.hashAtLast.map { ChainPosition(sequence: run.last, tip: $0.tip) }
    }.filter { $0.sequence == 2 }
    for end in ends {
      var stream = PeerStream(bench.name, number: 1, now: bench.now)
      stream.forks.settle(replica, through: 2)
      let vector = VersionVector([replica: end])
      let told = PartitionVector(name: bench.name, vector: vector)
      stream.begin(2, known: vector, told: told, base: nil, log, spared: { _ in false })
      let counts = log.accepted[replica] == end
      #expect(stream.forks.settled(replica) == (counts ? 2 : nil))
      #expect(stream.outgoing.sent.sequence(of: replica) == (counts ? 2 : 0))
    }
    #expect(ends.count == 2)
  }

  @Test("what a peer would not take of a fork is not shown, and not taken for shown")
  func keepsBranches() throws {
    let bench = try forked()
    let (node, id) = (bench.nodes[0], bench.connected(0, 1))
    let probe = ChainProbe(name: bench.name, replica: node.replica, positions: [], wantsReply: false)
    func settled() -> UInt64? { node.mesh.sessions[id]?.live?.streams[bench.partition]?.forks.settled(node.replica) }
    node.receive(.chainProbe(probe), on: id)
    try #require(settled() == 1)
    _ = node.mesh.sessions[id]?.spared.hear(SpentDevices(places: [], branches: [node.key.publicKey]))
    let start = bench.transcript.count
    node.receive(.chainProbe(probe), on: id)
    #expect(settled() == 0 && !bench.said(from: 0, to: 1, since: start).contains("runs"))
  }

  @Test("evidence of a fork goes with its payloads")
  func evidenceWithPayloads() throws {
    let bench = try MeshBench([0, 0])
    try bench.nodes[0].write(1, payloadByteCount: 100_000)
    try bench.nodes[1].write(2)
    _ = bench.connected(0, 1)
    #expect(Set(bench.nodes[1].pieces.map(\.offset)) == [0, UInt64(PayloadPiece.byteLimit)])
    #expect(agree(bench, [0, 1]))
    #expect(bench.nodes[0].notes.contains(.forkSeen(bench.nodes[0].replica)))
  }

  @Test("a fork that both know is not searched again; a third node's search starts anew")
  func settled() throws {
    let bench = try forked()
    _ = bench.connected(0, 1)
    let start = bench.transcript.count
    try bench.nodes[0].write(5)
    bench.pass(5_000)
    #expect(!bench.said(from: 0, to: 1, since: start).contains("chainProbe"))
  }

  @Test("what was written in sight of a branch follows at once when the fork is settled")
  func followsFork() throws {
    let bench = try forked()
    _ = bench.connected(0, 2)
    bench.pass(100)
    let run = try bench.nodes[2].write(7)
    try #require(run.context.sequence(of: bench.nodes[0].replica) == 1)
    bench.pass(100)
    _ = bench.connected(0, 1)
    #expect(bench.nodes[1].holds(bench.nodes[2]) == 1)
  }

  @Test("what a peer says of a branch that is settled is no reason to search again")
  func saidAgain() throws {
    let bench = try forked()
    let id = bench.connected(0, 1)
    let start = bench.transcript.count
    for run in bench.nodes[0].log {
      let tip = try #require(run.hashAtLast).tip
      let vector = VersionVector([run.replica: ChainPosition(sequence: run.last, tip: tip)])
      bench.nodes[0].receive(.have(PartitionVector(name: bench.name, vector: vector)), on: id)
    }
    #expect(bench.nodes[0].log.count == 2 && !bench.said(from: 0, to: 1, since: start).contains("chainProbe"))
  }

  @Test("nodes that know different forks at equal vectors have different summaries")
  func summaries() throws {
    let bench = try forked()
    _ = bench.connected(0, 2)
    _ = bench.connected(1, 2)
    bench.pass(1_000)
    #expect(agree(bench, [0, 1, 2]))
  }

  @Test("whoever has all but a lost branch from one peer asks the next at once", arguments: 1...6 as ClosedRange<Int64>)
  func nextPeerBehindFork(value: Int64) throws {
    let bench = try MeshBench([0, 0, 1, 2, 3])
    // The branch that is lost is the longer one in some cases, and in some it is not.
    try bench.nodes[0].write(value)
    for number in 11...13 as ClosedRange<Int64> { try bench.nodes[1].write(number) }
    for clone in [0, 1] { bench.cut(bench.connected(clone, 2)) }
    for slot in 2...3 { try bench.nodes[slot].write(1) }
    // The stream goes on only when the fork has been shown.
    bench.nodes[2].holdsLoads = true
    let first = bench.connect(2, 4)
    _ = bench.connect(3, 4)
    bench.run()
    try #require(bench.nodes[4].mesh.pulls.catchUps.session(of: bench.partition) == first)
    bench.nodes[2].holdsLoads = false
    bench.tick(2, after: 0)
    bench.run()
    #expect(bench.nodes[4].holds(bench.nodes[2]) == 1)
    #expect(bench.nodes[4].state?.forkPoints == bench.nodes[2].state?.forkPoints)
    #expect(bench.nodes[4].holds(bench.nodes[3]) == 1)
    #expect(bench.nodes[4].mesh.pulls.catchUps.isEmpty)
  }

  @Test(
    "a search whose question came while the peer could not carry the partition begins anew with the comparison that differs",
    arguments: [(2, 3), (3, 2)])
  func questionPassedOver(dialer: Int, listener: Int) throws {
    let bench = try MeshBench([0, 0, 1, 2])
    func grant(_ subject: Statement.Subject, _ level: AccessLevel) -> Statement.Body {
      .grant(Statement.Grant(subject: subject, level: level, pattern: "*"))
    }
    let devices = bench.nodes.dropFirst().map { Statement.Subject.device($0.key.publicKey) }
    bench.state([grant(.everyone, .none)] + devices.map { grant($0, .write) })
    for value in 1...4 as ClosedRange<Int64> { try bench.nodes[0].write(value) }
    for value in 5...6 as ClosedRange<Int64> { try bench.nodes[1].write(value) }
    for clone in [0, 1] { bench.cut(bench.connected(clone, clone + 2)) }
    try #require(bench.nodes[2].holds(bench.nodes[0]) == 4 && bench.nodes[3].holds(bench.nodes[1]) == 2)
    _ = bench.connect(dialer, listener)
    while !bench.said(from: 2, to: 3).contains("chainProbe") { bench.run(1) }
    // Node 2 hears of neither: the peer is out of the scope for a moment that only the peer knows of.
    for level in [AccessLevel.none, .write] {
      bench.nodes[3].deliver(.statementsStored([try #require(bench.state(grant(devices[2], level)))]))
      bench.loseStatements()
      bench.run()
    }
    try #require(!bench.said(from: 3, to: 2).contains("chainProbe"))
    bench.pass(1_000)
    #expect(agree(bench, [2, 3]))
  }

  @Test("after the fork's search the stream goes on with what others wrote")
  func goesOn() throws {
    let bench = try forked()
    try bench.nodes[2].write(7)
    _ = bench.connected(0, 2)
    bench.pass(100)
    _ = bench.connected(0, 1)
    bench.pass(1_000)
    #expect(bench.nodes[1].holds(bench.nodes[2]) == 1)
    #expect(bench.nodes[1].mesh.footprint.parkedBatches == 0)
  }
}
