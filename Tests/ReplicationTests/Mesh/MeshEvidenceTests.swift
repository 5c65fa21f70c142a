import Testing
import Wire

@testable import Replication
@testable import Simulation

@Suite("Mesh: evidence that comes ahead, histories that differ, gaps in the log") struct MeshEvidenceTests {
  private func postponed(_ bench: MeshBench, _ slot: Int) -> Int? {
    bench.nodes[slot].mesh.partitions[bench.partition]?.waiting.ahead.count
  }

  /// Node 0 has written in sight of node 1's run; node 2 holds neither of the two, and is connected with node 0.
  private func ahead() throws -> (MeshBench, SessionID, seen: LoggedRun, later: LoggedRun) {
    let bench = try MeshBench([0, 1, 2])
    let seen = try bench.nodes[1].write(1)
    bench.cut(bench.connected(0, 1))
    let later = try bench.nodes[0].write(2)
    try #require(later.context.sequence(of: bench.nodes[1].replica) == 1)
    bench.nodes[0].holdsLoads = true
    return (bench, bench.connected(0, 2), seen, later)
  }

  @Test("evidence that comes ahead of what its author had seen waits for it, and is taken behind it")
  func waits() throws {
    let (bench, id, seen, later) = try ahead()
    bench.show([later], to: 2, on: id)
    #expect(bench.nodes[2].log.isEmpty && bench.nodes[2].mesh.sessions[id] != nil)
    bench.show([seen], to: 2, on: id)
    #expect(bench.nodes[2].log.map(\.replica) == [seen.replica, later.replica])
  }

  @Test("what waits goes with the session that brought it")
  func goesWithSession() throws {
    let (bench, id, seen, later) = try ahead()
    bench.show([later], to: 2, on: id)
    bench.cut(id)
    bench.show([seen], to: 2, on: bench.connected(0, 2))
    #expect(bench.nodes[2].log.map(\.replica) == [seen.replica])
  }

  @Test("so much waits and no more")
  func bounded() throws {
    let (bench, id, _, later) = try ahead()
    bench.show(Array(repeating: later, count: RunsAhead.limit + 3), to: 2, on: id)
    #expect(postponed(bench, 2) == RunsAhead.limit)
  }

  @Test("another branch is kept only once what its author had seen is here")
  func branchWaits() throws {
    let bench = try MeshBench([0, 0, 1, 2])
    let seen = try bench.nodes[3].write(1)
    bench.cut(bench.connected(1, 3))
    try bench.nodes[0].write(2)
    let branch = try bench.nodes[1].write(3)
    let id = bench.connected(0, 2)
    bench.pass(100)
    bench.show([branch], to: 2, on: id)
    #expect(bench.nodes[2].log.count == 1 && postponed(bench, 2) == 1)
    bench.show([seen], to: 2, on: id)
    #expect(bench.nodes[2].log.count == 3 && postponed(bench, 2) == 0)
  }

  @Test("a run of this node's own chain that it does not hold calls for a new replica, also before it can be kept")
  func ownChain() throws {
    for isOtherBranch in [true, false] {
      let bench = try MeshBench([0, 0, 1, 2])
      if isOtherBranch {
        // What the copy had seen is not here.
        try bench.nodes[3].write(1)
        bench.cut(bench.connected(1, 3))
        try bench.nodes[0].write(2)
      }
      let run = try bench.nodes[1].write(3)
      let id = bench.connected(0, 2)
      try #require(!bench.nodes[0].hasToRenew)
      bench.show([run], to: 0, on: id)
      #expect(bench.nodes[0].hasToRenew && bench.nodes[0].log.count == 1)
    }
  }

  /// `floor`: something once narrowed the chain. Folded all the same, but where an accepted change has seen the run.
  enum Kind: CaseIterable { case plain, reissue, floor, seenBelowFloor }

  @Test("what cannot be folded as it comes is told with what it moved, the usual is not", arguments: Kind.allCases)
  func plain(kind: Kind) throws {
    let bench = try MeshBench([0, 1])
    if kind == .floor || kind == .seenBelowFloor {
      for level in [AccessLevel.read, .write] {
        bench.state([.grant(Statement.Grant(subject: .everyone, level: level, pattern: "*"))])
      }
    }
    let id = bench.connected(0, 1)
    let run = try bench.nodes[0].write(1)
    bench.loseMessages()
    let honest = try bench.nodes[1].incoming(run)
    if kind == .seenBelowFloor {
      let id = bench.nodes[1].mesh.ledger.begin(bench.name)
      let seen = VersionVector([bench.nodes[0].replica: ChainPosition(sequence: 1, tip: .zero)])
      bench.nodes[1].mesh.ledger.noteContexts(seen, in: id)
    }
    let origin = ChangeOrigin(dot: Dot(replica: bench.nodes[1].replica, sequence: 1), hash: .zero)
    let facts = kind == .reissue ? [ChangeFacts(origin: origin)] : honest.facts
    let incoming = IncomingRun(
      replica: honest.replica, first: honest.first, hashBefore: honest.hashBefore, contextDigest: honest.contextDigest,
      context: honest.context, hashes: honest.hashes, facts: facts, elementDots: honest.elementDots,
      signer: honest.signer, encoded: honest.encoded, documents: honest.documents)
    bench.nodes[1].deliver(
      .receivedRuns(id, RunBatch(name: bench.name, stream: PeerStream.level, entries: []), [incoming]))
    #expect(bench.nodes[1].applied.map { $0.change == nil } == [kind == .plain || kind == .floor])
  }

  @Test("what a peer asks about a chain outside of the common scope is not even looked for")
  func probeOutside() throws {
    for wish in ["*", "user=*"] as [Text] {
      let bench = try MeshBench([0, 1], wants: ["*", wish])
      let id = bench.connected(0, 1)
      let run = try bench.nodes[0].write(1)
      let probe = ChainProbe(name: bench.name, replica: run.replica, positions: [], wantsReply: true)
      let directives = bench.nodes[0].mesh.handle(
        .received(id, .chainProbe(probe)), bench.nodes[0].surroundings, random: &bench.random)
      #expect(directives.isEmpty == (wish != "*"))
    }
  }

  @Test("where what the peer holds is not what a run follows, the run is not sent: the fork is searched")
  func differs() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    for value in 0..<2 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.pass(100)
    let start = bench.transcript.count
    let other = ChainPosition(sequence: 1, tip: TipHash(high: 9, low: 9))
    let vector = PartitionVector(name: bench.name, vector: VersionVector([bench.nodes[0].replica: other]))
    bench.nodes[0].receive(.pull(stream: 5, vector), on: id)
    #expect(bench.said(from: 0, to: 1, since: start) == ["chainProbe"])
  }

  @Test("an own run is not sent over a gap: what lies before it is read first")
  func gap() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    try bench.nodes[0].write(0)
    bench.pass(100)
    bench.nodes[0].holdsLoads = true
    bench.nodes[0].mesh.pause(id)
    try bench.nodes[0].write(1)
    bench.nodes[0].deliver(.writable(id))
    // The log gives nothing back.
    bench.nodes[0].deliver(.loaded(id, bench.partition, [], hasMore: false))
    let (start, loads) = (bench.transcript.count, bench.nodes[0].loadLimits.count)
    try bench.nodes[0].write(2)
    #expect(!bench.said(from: 0, to: 1, since: start).contains("runs"))
    #expect(bench.nodes[0].loadLimits.count == loads + 1)
  }
}
