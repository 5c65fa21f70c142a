import Testing
import Wire

@testable import Replication
@testable import Simulation

@Suite("Mesh: streams") struct MeshStreamTests {
  /// Two nodes whose streams are open both ways.
  private func pair() throws -> (MeshBench, SessionID) {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    try bench.nodes[0].write(0)
    bench.pass(100)
    return (bench, id)
  }

  private func batches(_ bench: MeshBench, since start: Int = 0) -> [RunBatch] {
    bench.messages(from: 0, to: 1, since: start).compactMap { if case .runs(let batch) = $0 { batch } else { nil } }
  }

  private func pulls(_ bench: MeshBench, from: Int, to: Int, since start: Int = 0) -> [UInt64] {
    bench.messages(from: from, to: to, since: start).compactMap { message in
      if case .pull(let number, _) = message { number } else { nil }
    }
  }

  // MARK: Pulls

  @Test("own runs are announced to a peer that the partition was spoken of with, and no stream opened")
  func knownWithoutStream() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    // As a probe leaves it behind, where the two did not hold the partition alike.
    bench.nodes[1].mesh.sessions[id]?.live?.streams[bench.partition] = PeerStream(bench.name, now: bench.now)
    try bench.nodes[1].write(1)
    bench.run()
    #expect(bench.nodes[0].holds(bench.nodes[1]) == 1)
  }

  @Test("a pull numbered zero is no pull")
  func numberZero() throws {
    let (bench, id) = try pair()
    let start = bench.transcript.count
    bench.nodes[0].receive(.pull(stream: 0, PartitionVector(name: bench.name, vector: VersionVector())), on: id)
    #expect(bench.transcript.count == start)
  }

  @Test("a new pull is served from where it says, with whole contexts first, whatever was sent before")
  func pulledAgain() throws {
    let (bench, id) = try pair()
    try bench.nodes[1].write(1)
    bench.pass(100)
    try bench.nodes[0].write(2)
    bench.run()
    let start = bench.transcript.count
    bench.nodes[0].receive(.pull(stream: 70, PartitionVector(name: bench.name, vector: VersionVector())), on: id)
    let batches = batches(bench, since: start)
    #expect(batches.map(\.stream) == [70] && batches.first?.entries.count == 3)
    var base: VersionVector?
    for (entry, run) in zip(batches.first?.entries ?? [], bench.nodes[0].log) {
      base = entry.context.resolved(on: base)
      #expect(base == run.context)
    }
  }

  @Test("runs of a stream that was since asked for anew are not taken")
  func earlierStream() throws {
    let (bench, id) = try pair()
    let stream = try #require(bench.nodes[1].mesh.sessions[id]?.live?.streams[bench.partition]?.incoming.number)
    let run = try bench.nodes[0].write(1)
    bench.loseMessages()
    let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
    bench.nodes[1].receive(.runs(RunBatch(name: bench.name, stream: stream + 1, entries: [entry])), on: id)
    #expect(bench.nodes[1].log.count == 1 && bench.nodes[1].mesh.sessions[id] != nil)
    bench.nodes[1].receive(.runs(RunBatch(name: bench.name, stream: stream, entries: [entry])), on: id)
    #expect(bench.nodes[1].log.count == 2)
  }

  @Test("an open stream is not asked for a second time")
  func openStream() throws {
    let (bench, id) = try pair()
    let start = bench.transcript.count
    let held = try #require(bench.nodes[0].state?.clipped)
    bench.nodes[1].receive(.have(PartitionVector(name: bench.name, vector: held)), on: id)
    #expect(pulls(bench, from: 1, to: 0, since: start) == [])
  }

  @Test("a pull names no more staged payloads than it may")
  func staged() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(1)
    bench.nodes[1].staged = StagedPayloads(
      (0..<70 as Range<UInt64>).map { number in
        let hash = Digest(words: (number, 0, 0, 0))
        let key = StagedKey(device: bench.nodes[0].device, partition: bench.partition, hash: hash)
        return StagedShare(key, total: 20_000, byteCount: 1)
      })
    _ = bench.connected(0, 1)
    let staged = bench.messages(from: 1, to: 0).compactMap { message in
      if case .pull(_, let vector) = message { vector.staged.count } else { nil }
    }
    #expect(staged == [PartitionVector.stagedLimit])
  }

  @Test("a partition that is begun again keeps what it holds")
  func begunAgain() throws {
    let (bench, id) = try pair()
    #expect(bench.nodes[1].mesh.ledger.begin(bench.name) == bench.partition)
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 1)
    let before = try #require(bench.nodes[1].mesh.partitions[bench.partition])
    try bench.nodes[0].write(1)
    bench.run()
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 2)
    bench.nodes[1].mesh.ledger.restore([bench.partition: before])
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 1 && bench.nodes[1].mesh.sessions[id] != nil)
  }

  // MARK: Sending

  @Test("nothing more is read for a stream, and nothing overtakes, while a load is under way")
  func oneLoad() throws {
    let (bench, id) = try pair()
    bench.nodes[0].holdsLoads = true
    bench.nodes[0].mesh.pause(id)
    for value in 1..<4 as Range<Int64> { try bench.nodes[0].write(value) }
    let loads = bench.nodes[0].loadLimits.count
    bench.nodes[0].deliver(.writable(id))
    let start = bench.transcript.count
    try bench.nodes[0].write(9)
    #expect(bench.nodes[0].loadLimits.count == loads + 1 && batches(bench, since: start).isEmpty)
    bench.nodes[0].holdsLoads = false
    bench.nodes[0].deliver(.writable(id))
    bench.run()
    bench.pass(100)
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 5 && bench.nodes[1].mesh.sessions[id] != nil)
  }

  @Test("an own run goes to a peer that reads nothing only when there is room, and after what came before")
  func paused() throws {
    let (bench, id) = try pair()
    bench.nodes[0].mesh.pause(id)
    let start = bench.transcript.count
    try bench.nodes[0].write(1)
    #expect(batches(bench, since: start).isEmpty && bench.nodes[0].mesh.sessions[id] != nil)
    bench.nodes[0].deliver(.writable(id))
    bench.run()
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 2)
  }

  @Test("own runs are announced by being sent, runs of others to all, their sender first of all")
  func acknowledged() throws {
    let (bench, _) = try pair()
    let start = bench.transcript.count
    try bench.nodes[0].write(1)
    bench.pass(1_000)
    #expect(bench.said(from: 0, to: 1, since: start) == ["runs"])
    #expect(bench.said(from: 1, to: 0, since: start) == ["have"], "no runs back to who sent them")
    guard case .have(let vector)? = bench.messages(from: 1, to: 0, since: start).first else { return }
    #expect(vector.vector.sequence(of: bench.nodes[0].replica) == 2)
  }

  @Test("a long log is read in parts, to its end")
  func parts() throws {
    let (bench, id) = try pair()
    let run = try #require(bench.nodes[0].log.first)
    bench.nodes[0].holdsLoads = true
    bench.nodes[0].mesh.pause(id)
    for value in 1..<5 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.nodes[0].deliver(.writable(id))
    let loads = bench.nodes[0].loadLimits.count
    let more = Array(bench.nodes[0].log.dropFirst().prefix(1))
    bench.nodes[0].deliver(.loaded(id, bench.partition, more, hasMore: true))
    #expect(bench.nodes[0].loadLimits.count == loads + 1, "read on")
    let first = try #require(bench.nodes[0].loadLimits.last)
    // All of it was left out, since the peer has it: as much again would be read without end.
    for doublings in 1..<4 {
      bench.nodes[0].deliver(.loaded(id, bench.partition, [run], hasMore: true))
      #expect(bench.nodes[0].loadLimits.last == first << doublings)
    }
    bench.nodes[0].deliver(.loaded(id, bench.partition, [bench.nodes[0].log[2]], hasMore: true))
    #expect(bench.nodes[0].loadLimits.last == first, "back to the usual once something went")
  }

  @Test("a batch is closed by its bytes and by its number of runs")
  func batchLimits() throws {
    for (count, size, batchCount) in [(3, 10_000, 1), (60, 10_000, 9)] {
      let bench = try MeshBench([0, 1])
      for value in 0..<Int64(count) { try bench.nodes[0].write(value, payloadByteCount: size) }
      _ = bench.connected(0, 1)
      #expect(batches(bench).count == batchCount)
      let slack = RunBatch.byteTarget + Run.payloadByteLimit
      #expect(batches(bench).allSatisfy { $0.entries.reduce(0) { $0 + $1.encoded.count } < slack })
      #expect(bench.nodes[1].holds(bench.nodes[0]) == UInt64(count))
    }
    let (bench, id) = try pair()
    bench.nodes[0].holdsLoads = true
    bench.nodes[0].receive(.pull(stream: 8, PartitionVector(name: bench.name, vector: VersionVector())), on: id)
    let runs = (1...UInt64(RunBatch.entryLimit) + 1).map { sequence in
      LoggedRun(
        replica: bench.nodes[0].replica, first: sequence, last: sequence, hashBefore: .zero, context: VersionVector(),
        encoded: [1])
    }
    let start = bench.transcript.count
    bench.nodes[0].deliver(.loaded(id, bench.partition, runs, hasMore: false))
    #expect(batches(bench, since: start).map(\.entries.count) == [RunBatch.entryLimit, 1])
  }

  @Test("a payload that travels apart stands between the runs before it and its own")
  func apart() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(1)
    try bench.nodes[0].write(2, payloadByteCount: 100_000)
    _ = bench.connected(0, 1)
    let said = bench.said(from: 0, to: 1).filter { $0 == "runs" || $0 == "payloadPiece" }
    #expect(said == ["runs", "payloadPiece", "payloadPiece", "runs"])
  }

  @Test("what follows on what was held back goes behind that, though a payload went out between them")
  func heldBackBeforePayload() throws {
    let bench = try MeshBench([0, 1, 2, 3])
    let (sender, receiver, other, large) = (bench.nodes[0], bench.nodes[1], bench.nodes[2], bench.nodes[3])
    try other.write(1)
    bench.cut(bench.connected(0, 2))
    try sender.write(1)
    try large.write(1, payloadByteCount: 100_000)
    bench.cut(bench.connected(0, 3))
    try sender.write(2)
    sender.holdsLoads = true
    let id = bench.connected(0, 1)
    // What has seen the chain is left out until both have shown what they have of it.
    sender.search(other.replica, on: id)
    (sender.holdsLoads, sender.holdsSaid) = (false, true)
    sender.deliver(.tick)
    bench.run()
    let stream = sender.mesh.sessions[id]?.live?.streams[bench.partition]
    try #require(stream?.outgoing.isBusy == true && stream?.forks.isSearching == false)
    try #require(receiver.holds(sender) == 0 && receiver.holds(other) == 1)
    sender.handOver()
    bench.run()
    #expect(receiver.holds(sender) == 2 && receiver.holds(large) == 1)
    #expect(sender.brokenRules.isEmpty && receiver.brokenRules.isEmpty)
    #expect(receiver.mesh.sessions[id]?.phase == .live)
  }

  // MARK: Receiving

  enum Lie: CaseIterable { case none, context, elements, undeclared, signer, rights }

  /// The session with node 1 after node 0's run came to it as it is, or with a lie.
  @Test("a run whose outer form lies ends the session, and nothing of it is kept", arguments: Lie.allCases)
  func lies(lie: Lie) throws {
    let (bench, id) = try pair()
    try bench.nodes[1].write(3)
    bench.pass(100)
    let stream = try #require(bench.nodes[1].mesh.sessions[id]?.live?.streams[bench.partition]?.incoming.number)
    let run = try bench.nodes[0].write(1)
    try #require(run.context.sequence(of: bench.nodes[1].replica) == 1)
    bench.loseMessages()
    if lie == .rights { bench.nodes[1].deliver(.statementsStored([try lowering(bench)])) }
    let incoming = try bench.nodes[1].incoming(run) { facts in
      switch lie {
      case .context: facts.context = VersionVector()
      case .elements: facts.elementDots = [ReplicaID(high: 3, low: 3): 1]
      case .undeclared: facts.signer = nil
      case .signer: facts.signer = bench.nodes[1].key.publicKey
      case .none, .rights: break
      }
    }
    let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
    let batch = RunBatch(name: bench.name, stream: stream, entries: [entry])
    let peer = try #require(bench.nodes[1].mesh.sessions[id]?.device)
    bench.nodes[1].deliver(.receivedRuns(id, batch, [incoming]))
    #expect((bench.nodes[1].mesh.sessions[id] != nil) == (lie == .none || lie == .rights))
    #expect(bench.nodes[1].log.count == (lie == .none ? 3 : 2))
    guard lie != .none && lie != .rights else { return #expect(bench.nodes[1].brokenRules.isEmpty) }
    #expect(bench.messages(from: 1, to: 0).last == .goodbye(.protocolError))
    // Who it was and what it was about is told, once.
    let rule = try #require(bench.nodes[1].brokenRules.first)
    #expect(bench.nodes[1].brokenRules.count == 1 && !rule.reason.isEmpty)
    #expect(rule.device == peer && rule.user == "user")
    #expect(rule.place == BrokenRule.Place(partition: bench.name, replica: run.replica, sequence: run.first))
  }

  /// Node 0 knows of a grant that has not come to node 1 yet, and a third node has seen its run.
  @Test("a run without a right ends no session: its chain is left out, and asked for anew when statements come")
  func leftOut() throws {
    let bench = try MeshBench([0, 1, 2], rights: .byUser)
    let id = bench.connected(0, 1)
    let grant = Statement.Grant(subject: .user("user"), level: .write, pattern: "*")
    let statement = try #require(bench.state(.grant(grant)))
    for slot in [0, 2] { bench.nodes[slot].deliver(.statementsStored([statement])) }
    bench.loseMessages()
    for value in 0...1 as ClosedRange<Int64> {
      try bench.nodes[0].write(value)
      bench.pass(100)
    }
    let third = bench.connected(0, 2)
    try bench.nodes[2].write(2)
    bench.pass(100)
    bench.cut(third)
    #expect(bench.nodes[0].holds(bench.nodes[2]) == 1 && bench.nodes[0].log.count == 3)
    // The declarations were known to all from the start.
    #expect(bench.nodes[1].log.isEmpty && bench.nodes[1].mesh.sessions[id]?.phase == .live)
    let leftOut = bench.nodes[1].mesh.sessions[id]?.live?.streams[bench.partition]?.incoming.leftOut.all
    #expect(leftOut == [bench.nodes[0].replica, bench.nodes[2].replica])
    let start = bench.transcript.count
    bench.pass(60_000)
    #expect(pulls(bench, from: 1, to: 0, since: start).isEmpty, "it is not asked for again and again")
    bench.nodes[1].deliver(.statementsStored([statement]))
    bench.pass(100)
    #expect(bench.nodes[1].log.count == 3 && bench.nodes[1].mesh.sessions[id] != nil)
  }

  /// The fleet's grant is taken back from the start of every chain, so that what comes later stands on nothing.
  private func lowering(_ bench: MeshBench) throws -> Statement {
    let grant = Statement.Grant(subject: .everyone, level: .none, pattern: "*")
    return try #require(bench.state(.grant(grant)))
  }

  @Test("list elements may be named up to what the context shows, and no further", arguments: [1, 2])
  func elements(sequence: UInt64) throws {
    let (bench, id) = try pair()
    try bench.nodes[1].write(1)
    bench.pass(100)
    let stream = try #require(bench.nodes[1].mesh.sessions[id]?.live?.streams[bench.partition]?.incoming.number)
    let run = try bench.nodes[0].write(2)
    bench.loseMessages()
    try #require(run.context.sequence(of: bench.nodes[1].replica) == 1)
    let incoming = try bench.nodes[1].incoming(run) { $0.elementDots = [bench.nodes[1].replica: sequence] }
    let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
    bench.nodes[1].deliver(
      .receivedRuns(id, RunBatch(name: bench.name, stream: stream, entries: [entry]), [incoming]))
    #expect((bench.nodes[1].mesh.sessions[id] != nil) == (sequence == 1))
  }

  @Test("what was read for a stream does not go on the one that took its place")
  func loadOfAnEarlierStream() throws {
    let bench = try MeshBench([0, 1])
    for value in 1...3 as ClosedRange<Int64> { try bench.nodes[0].write(value) }
    let id = bench.connected(0, 1)
    bench.pass(1_000)
    let position = try #require(bench.nodes[1].state?.accepted[bench.nodes[0].replica])
    let two = VersionVector([bench.nodes[0].replica: ChainPosition(sequence: 2, tip: position.tip)])
    bench.nodes[0].holdsLoads = true
    let start = bench.transcript.count
    bench.nodes[0].receive(.pull(stream: 8, PartitionVector(name: bench.name, vector: two)), on: id)
    bench.nodes[0].receive(.pull(stream: 9, PartitionVector(name: bench.name, vector: VersionVector())), on: id)
    bench.nodes[0].holdsLoads = false
    bench.tick(0, after: 1)
    let sent = bench.transcript[start...].compactMap { said -> Int? in
      if case .runs(let batch) = said.message { batch.entries.count } else { nil }
    }
    #expect(sent == [3], "all that the last pull lacks, and nothing that only followed on the one before")
  }
}
