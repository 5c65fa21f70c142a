import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: the common scope") struct MeshScopeTests {
  /// What keeps a partition out of the scope of node 0 and node 1, or does not.
  enum Lack: CaseIterable { case nothing, ownInterest, peerInterest, ownRight, peerRight }

  /// Node 0 is looked at; rights are by device.
  private func bench(_ lack: Lack, _ level: AccessLevel = .carry) throws -> (MeshBench, SessionID) {
    let wants: [Text] = [lack == .ownInterest ? "user=*" : "*", lack == .peerInterest ? "user=*" : "*"]
    let bench = try MeshBench([0, 1], wants: wants)
    let keys = bench.nodes.map(\.key.publicKey)
    var grants = [Statement.Grant(subject: .everyone, level: .none, pattern: "*")]
    for (slot, key) in keys.enumerated() where lack != (slot == 0 ? .ownRight : .peerRight) {
      grants.append(Statement.Grant(subject: .device(key), level: level, pattern: "*"))
    }
    bench.state(grants.map { .grant($0) })
    return (bench, bench.connected(0, 1))
  }

  private func vector(_ bench: MeshBench) -> PartitionVector {
    let position = ChainPosition(sequence: 3, tip: TipHash(high: 1, low: 1))
    return PartitionVector(name: bench.name, vector: VersionVector([bench.nodes[1].replica: position]))
  }

  @Test("outside of the common scope nothing is named, answered or made", arguments: Lack.allCases)
  func scope(lack: Lack) throws {
    let vector = vector(try bench(lack).0)
    let probe = ChainProbe(name: vector.name, replica: .zero, positions: [], wantsReply: true)
    for message in [Message.have(vector), .vectors([vector]), .pull(stream: 5, vector), .chainProbe(probe)] {
      let (bench, id) = try bench(lack)
      if case .chainProbe = message { _ = bench.nodes[0].mesh.ledger.begin(bench.name) }
      let before = bench.nodes[0].mesh.partitions.count
      let start = bench.transcript.count
      bench.nodes[0].receive(message, on: id)
      #expect(bench.said(from: 0, to: 1, since: start).isEmpty == (lack != .nothing), "\(message)")
      #expect(bench.nodes[0].mesh.partitions.count == before, "it begins with a run: \(message)")
    }
  }

  @Test("runs outside of the common scope are not taken", arguments: Lack.allCases)
  func runs(lack: Lack) throws {
    let (bench, id) = try bench(lack)
    let run = try bench.nodes[1].write(1)
    bench.loseMessages()
    let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
    bench.nodes[0].receive(.runs(RunBatch(name: bench.name, stream: 0, entries: [entry])), on: id)
    #expect(bench.nodes[0].log.isEmpty == (lack != .nothing))
    #expect(bench.nodes[0].mesh.partitions.isEmpty == (lack != .nothing))
    #expect(bench.nodes[0].mesh.sessions[id] != nil)
  }

  @Test("what was written goes to nobody outside of the common scope, before or after the connection")
  func written() throws {
    for lack in Lack.allCases {
      let (bench, id) = try bench(lack, .write)
      bench.cut(id)
      try bench.nodes[0].write(1)
      _ = bench.connected(0, 1)
      try bench.nodes[0].write(2)
      bench.pass(31_000)
      // Who has lost its own right hands over what it had written by then.
      let isHandedOver = lack == .ownRight
      #expect(bench.nodes[1].log.count == (lack == .nothing ? 2 : isHandedOver ? 1 : 0), "\(lack)")
      let named = bench.said(from: 0, to: 1).contains { ["vectors", "have", "runs", "pull"].contains($0) }
      #expect(named == (lack == .nothing || isHandedOver), "\(lack)")
    }
  }

  @Test(
    "what a grant brings into the common scope of a standing session is compared at the next tick", arguments: [0, 1])
  func widened(writer: Int) throws {
    let (bench, _) = try bench(writer == 0 ? .peerRight : .ownRight, .write)
    try bench.nodes[writer].write(1)
    bench.pass(1_000)
    #expect(bench.nodes[1 - writer].log.isEmpty)
    let key = bench.nodes[1 - writer].key.publicKey
    bench.state([.grant(Statement.Grant(subject: .device(key), level: .write, pattern: "*"))])
    bench.pass(500)
    #expect(bench.nodes[1 - writer].log.count == 1)
  }

  @Test("summaries that were equal before a grant are no word of what it brings into the common scope")
  func widenedBehindEqual() throws {
    let (bench, id) = try bench(.nothing, .write)
    try bench.nodes[0].write(1)
    try bench.nodes[1].write(2)
    bench.pass(1_000)
    bench.cut(id)
    let key = bench.nodes[1].key.publicKey
    bench.state([.grant(Statement.Grant(subject: .device(key), level: .none, pattern: "*"))])
    try bench.nodes[0].write(3)
    // Equal: nothing is in common.
    _ = bench.connected(0, 1)
    bench.pass(1_000)
    #expect(bench.nodes[1].log.count == 2)
    bench.state([.grant(Statement.Grant(subject: .device(key), level: .write, pattern: "*"))])
    bench.pass(1_000)
    #expect(bench.nodes[1].log.count == 3)
  }

  /// What node 0 reads of its log for node 1 while node 1's right is taken from it.
  enum Answer: CaseIterable { case load, evidence, probe, reply }

  @Test("what was being read for a peer is not sent once its right has gone", arguments: Answer.allCases)
  func narrowing(answer: Answer) throws {
    for isTaken in [false, true] {
      let (bench, id) = try bench(.nothing, .write)
      bench.cut(id)
      let run = try bench.nodes[0].write(1)
      bench.nodes[0].holdsLoads = true
      let session = bench.connected(0, 1)
      try #require(bench.nodes[0].log.count == 1 && bench.nodes[1].log.isEmpty)
      if isTaken {
        let none = Statement.Grant(subject: .device(bench.nodes[1].key.publicKey), level: .none, pattern: "*")
        let statement = try #require(bench.state(.grant(none)))
        bench.nodes[0].deliver(.statementsStored([statement]))
      }
      let start = bench.transcript.count
      // The others have their answers at hand: what else was being read stays unread.
      bench.nodes[0].holdsLoads = answer != .load
      let probe = ChainProbe(name: bench.name, replica: run.replica, positions: [], wantsReply: true)
      func loaded(_ purpose: ChainPurpose) {
        bench.nodes[0].deliver(.chainLoaded(bench.partition, run.replica, [], purpose))
      }
      switch answer {
      case .load: bench.tick(0, after: 1)
      case .evidence:
        bench.nodes[0].deliver(
          .evidenceLoaded(session, bench.partition, run.replica, [run], hasMore: false, isRest: false))
      case .probe: loaded(.probe(session, wantsReply: true))
      case .reply: loaded(.answer(session, probe))
      }
      let said = bench.said(from: 0, to: 1, since: start)
      #expect(said.contains { ["runs", "chainProbe", "chainEvidence"].contains($0) } == !isTaken, "\(said)")
    }
  }

  @Test("lag counts what each side lacks, over the common scope alone")
  func lag() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    bench.nodes[1].holdsCommits = true
    for value in 0..<3 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.run()
    func lag(_ slot: Int) throws -> [Int64] {
      let mesh = bench.nodes[slot].mesh
      let lag = try #require(mesh.sessions[id]).lag(mesh.ledger)
      return [lag.behind, lag.ahead]
    }
    #expect(try lag(0) == [3, 0])
    bench.nodes[1].commit()
    bench.pass(1_000)
    #expect(try lag(0) == [0, 0] && lag(1) == [0, 0])
    bench.nodes[0].receive(.have(vector(bench)), on: id)
    #expect(try lag(0) == [0, 3])
    #expect(bench.nodes[0].mesh.footprint.sessions == 1 && bench.nodes[0].mesh.footprint.streams == 1)
    bench.nodes[0].deliver(.interestChanged(added: Interest(), removed: bench.fleet.interest("*")))
    #expect(try lag(0) == [0, 0])
  }

  // MARK: Changes of interest

  @Test("what one side comes to want is offered, whoever it is, and what it wants no more is let alone")
  func changes() throws {
    for changing in [0, 1] {
      let wants: [Text] = changing == 0 ? ["user=*", "*"] : ["*", "user=*"]
      let bench = try MeshBench([0, 1], wants: wants)
      _ = bench.connected(0, 1)
      try bench.nodes[0].write(1)
      bench.pass(100)
      #expect(bench.nodes[1].log.isEmpty)
      bench.nodes[changing].deliver(.interestChanged(added: bench.fleet.interest("agency=*"), removed: Interest()))
      bench.run()
      #expect(bench.nodes[1].log.count == 1, "offered without a comparison, changed at \(changing)")
      bench.nodes[changing].deliver(.interestChanged(added: Interest(), removed: bench.fleet.interest("agency=*")))
      bench.run()
      #expect(bench.nodes.allSatisfy { $0.mesh.footprint.streams == 0 })
      try bench.nodes[0].write(2)
      bench.pass(31_000)
      #expect(bench.nodes[1].log.count == 1)
    }
  }

  @Test("an interest told again replaces the one before: what is no longer in it is not sent")
  func replaced() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    bench.nodes[0].receive(.interest(bench.fleet.interest("user=*")), on: id)
    #expect(bench.nodes[0].mesh.sessions[id]?.peerInterest == bench.fleet.interest("user=*").adding(Interest()))
    try bench.nodes[0].write(1)
    bench.pass(100)
    #expect(bench.nodes[1].log.isEmpty)
  }

  @Test("what a peer wanted when it was last here is believed only under the digest that it states now")
  func remembered() throws {
    let bench = try MeshBench([0, 1], wants: ["*", "user=*"])
    bench.cut(bench.connected(0, 1))
    let start = bench.transcript.count
    bench.cut(bench.connected(0, 1))
    #expect(!bench.said(from: 0, to: 1, since: start).contains("interestRequest"), "remembered")
    bench.nodes[1].deliver(.interestChanged(added: bench.fleet.interest("agency=*"), removed: Interest()))
    let id = bench.connected(0, 1)
    #expect(bench.nodes[0].mesh.sessions[id]?.peerInterest == bench.nodes[1].mesh.interest)
  }

  @Test("an interest that changes between the hellos is told without being asked for")
  func betweenHellos() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    bench.nodes[0].deliver(.interestChanged(added: bench.fleet.interest("user=*"), removed: bench.fleet.interest("*")))
    bench.run()
    #expect(bench.nodes[1].mesh.sessions[id]?.peerInterest == bench.fleet.interest("user=*"))
  }

  private func ids(_ range: Range<Int>) -> Interest {
    Interest(partitions: range.map { PartitionID(Digest(words: (UInt64($0), 1, 2, 3))) })
  }

  @Test("who is a member again knows what is wanted now, and nothing of what came to be wanted no more meanwhile")
  func wantedByAMemberAgain() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let half = Interest.partitionLimit * 6 / 10
    bench.nodes[0].deliver(.interestChanged(added: ids(0..<half), removed: Interest()))
    bench.run()
    try bench.endMembership(of: 1, knownBy: 0)
    bench.nodes[0].deliver(
      .interestChanged(added: ids(half..<2 * half), removed: ids(0..<half).adding(bench.fleet.interest("*"))))
    bench.run()
    try bench.admitAgain(1, knownBy: 0)
    bench.run()
    let session = try #require(bench.nodes[1].mesh.sessions[id], "\(bench.nodes[1].notes)")
    #expect(session.peerInterest == ids(half..<2 * half))
  }

  @Test("the same wherever the handshake stands in which it becomes one", arguments: [(0, 1), (1, 0)])
  func wantedByAMemberAgainMidway(dialer: Int, listener: Int) throws {
    for count in 0..<24 {
      let bench = try MeshBench([0, 1])
      bench.cut(bench.connected(dialer, listener))
      try bench.endMembership(of: 1, knownBy: 0)
      let id = bench.connect(dialer, listener)
      bench.run(count)
      let wanted = bench.fleet.interest("user=*")
      bench.nodes[0].deliver(.interestChanged(added: wanted, removed: bench.fleet.interest("*")))
      bench.run(count / 4)
      try bench.admitAgain(1, knownBy: 0)
      bench.run()
      let session = try #require(bench.nodes[1].mesh.sessions[id], "\(count): \(bench.nodes[1].notes)")
      #expect(session.phase == .live && session.peerInterest == wanted, "\(count)")
    }
  }

  @Test("an interest within its limits is taken, one partition more ends the session", arguments: [0, 1])
  func partitionLimit(more: Int) throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let told = ids(0..<Interest.partitionLimit + more)
    bench.nodes[0].receive(.interestChange(added: told, removed: Interest()), on: id)
    #expect((bench.nodes[0].mesh.sessions[id] != nil) == (more == 0))
  }

  @Test("what peers want is remembered for so many devices and no more")
  func cache() throws {
    let bench = try MeshBench([0, 1], wants: ["*", "user=*"])
    for number in 0..<UInt64(InterestCache.limit) {
      bench.nodes[0].mesh.interestCache.remember(Interest(), .zero, of: DeviceID(Digest(words: (number, 0, 0, 0))))
    }
    _ = bench.connected(0, 1)
    #expect(bench.nodes[0].mesh.interestCache[bench.nodes[1].key.device]?.interest == bench.nodes[1].mesh.interest)
    #expect(bench.nodes[0].mesh.interestCache.count == InterestCache.limit)
  }

  // MARK: Summaries

  @Test("summaries of the same partitions differ from connection to connection")
  func summaries() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(1)
    for _ in 0..<3 { bench.cut(bench.connected(0, 1)) }
    let digests = bench.messages(from: 1, to: 0).compactMap { message -> UInt64? in
      if case .summary(let summary) = message, case .digest(let digest) = summary.step { digest } else { nil }
    }
    #expect(digests.count == 3 && digests[0] == 0 && Set(digests).count == 3)
  }

  @Test("a comparison that the peer begins later is answered by what stands here then")
  func laterComparison() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let start = bench.transcript.count
    bench.nodes[0].receive(.summary(Summary(1, .digest(1))), on: id)
    #expect(bench.said(from: 0, to: 1, since: start) == ["summary"])
  }

  @Test("vectors of many partitions go out in several messages")
  func manyVectors() throws {
    let bench = try MeshBench([0, 1])
    let count = PartitionVector.entryLimit + 10
    let (replica, signer) = (bench.nodes[0].replica, bench.nodes[0].key.publicKey)
    try bench.nodes[0].plant { ledger in
      for number in 0..<count {
        let name = try PartitionName(Text("agency=\(number)"))
        let partition = ledger.begin(name)
        let chain = ChainIdentity(fleet: bench.fleet.id, partition: partition, replica: replica)
        let run = RunSummary(
          partition: name, replica: replica, first: 1, hashBefore: chain.genesis(FakeCryptography.hash),
          hashes: [Digest(words: (1, 2, 3, UInt64(number)))], context: VersionVector(), signer: signer)
        _ = ledger.partitions[partition]?.log.learn(run)
      }
    }
    bench.nodes[0].holdsLoads = true
    _ = bench.connected(0, 1)
    let sizes = bench.messages(from: 0, to: 1).compactMap { message -> Int? in
      if case .vectors(let list) = message { list.count } else { nil }
    }
    #expect(sizes == [PartitionVector.entryLimit, 10])
  }
}
