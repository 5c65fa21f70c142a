import Testing
import Wire

@testable import Replication
@testable import Simulation

/// Node 0's device wrote while it was away, and was ended or lost its right meanwhile.
@Suite("Mesh: work that is handed over") struct MeshHandOverTests {
  private let bench: MeshBench

  init() throws { try self.init(wants: []) }

  private init(wants: [Text]) throws {
    bench = try MeshBench([0, 1, 2], wants: wants)
    try bench.nodes[0].write(1)
    for other in 1...2 { bench.cut(bench.connected(0, other)) }
    try bench.nodes[0].write(2)
    try bench.nodes[0].write(3)
  }

  private var replica: ReplicaID { bench.nodes[0].replica }

  private func held(_ slot: Int) -> ChainPosition? { bench.nodes[slot].state?.heldAbove[replica] }

  /// What the root says about the device, known at node 1 alone. Its chain counts up to change 1, where nothing else is
  /// listed, and without a limit where no partition is.
  @discardableResult
  private func end(
    _ reason: Statement.End.Reason, upTo listed: ChainPosition? = nil, listsPartition: Bool = true
  ) throws -> Digest {
    let authority = bench.nodes[1].mesh.authority
    let membership = try #require(authority.member(of: bench.nodes[0].key.publicKey)).id
    let own = authority.fleetStatements.filter { $0.issuer == bench.nodes[0].key.publicKey }
    let position = try #require(listed ?? bench.nodes[1].state?.clipped[replica])
    let group = Statement.PartitionEnds(
      partition: bench.name.text, chains: [.init(replica: replica, position: position)])
    let listing = Statement.Listing(
      ends: listsPartition ? [group] : [],
      tips: [
        .init(
          scope: "",
          tips: own.suffix(1).map { .init(issuer: $0.issuer, sequence: $0.sequence, id: $0.id) })
      ])
    let end = Statement.End(reason: reason, target: .membership(membership), listing: listing)
    let statement = try #require(bench.state(.end(end)))
    bench.nodes[1].deliver(.statementsStored([statement]))
    return statement.id
  }

  @Test("what is given back counts everywhere, and its author hears of it", arguments: [false, true])
  func givenBack(isConnected: Bool) throws {
    let end = try end(.retire)
    let id = bench.connected(0, 1)
    if !isConnected { bench.cut(id) }
    // It goes before the raise in its author's chain, and is about nobody.
    bench.nodes[1].deliver(.statementsStored([try #require(bench.state(.rule(Statement.Rule(key: "other"))))]))
    let listing = Statement.Listing(
      ends: [.init(partition: bench.name.text, chains: [.init(replica: replica, position: try #require(held(1)))])])
    let raise = try #require(bench.state(.raise(Statement.Raise(end: end, listing: listing))))
    bench.nodes[1].deliver(.statementsStored([raise]))
    bench.run()
    if !isConnected { _ = bench.connected(0, 1) }
    for slot in 0..<2 { #expect(bench.nodes[slot].holds(bench.nodes[0]) == 3 && held(slot) == nil, "node \(slot)") }
  }

  @Test("an ended device shows its own changes to a member, who holds them and shows them to all")
  func handedOver() throws {
    try end(.retire)
    _ = bench.connected(1, 2)
    bench.cut(bench.connected(0, 1))
    #expect(held(1)?.sequence == 3 && bench.nodes[1].holds(bench.nodes[0]) == 1)
    bench.pass(90_000)
    #expect(held(2)?.sequence == 3 && bench.nodes[2].holds(bench.nodes[0]) == 1)
    let (one, two) = (bench.nodes[1], bench.nodes[2])
    #expect(one.mesh.partitions[bench.partition]?.log.heldAbove == two.mesh.partitions[bench.partition]?.log.heldAbove)
  }

  @Test("what is handed over is shown to others at once, the first of a chain and more of it")
  func goesOn() throws {
    try end(.retire)
    _ = bench.connected(1, 2)
    bench.cut(bench.connected(0, 1))
    #expect(held(1)?.sequence == 3 && held(2)?.sequence == 3)
    bench.pass(90_000)
    try bench.nodes[0].write(4)
    bench.cut(bench.connected(0, 1))
    #expect(held(1)?.sequence == 4 && held(2)?.sequence == 4)
  }

  @Test("what is handed over goes on at once to who came to want its partition when there was nothing of it yet")
  func goesOnBehindWish() throws {
    let scene = try MeshHandOverTests(wants: ["agency=*", "user=*", "user=*"])
    try scene.end(.retire, upTo: .start)
    _ = scene.bench.connected(1, 2)
    for slot in 1...2 { scene.want(slot) }
    scene.bench.run()
    try #require(scene.held(1) == nil && scene.held(2) == nil)
    _ = scene.bench.connected(0, 1)
    scene.bench.pass(1_000)
    #expect(scene.held(1)?.sequence == 3 && scene.held(2)?.sequence == 3)
  }

  @Test("it hands over on the connection on which it hears of its end, too")
  func onStandingSession() throws {
    _ = bench.connected(0, 1)
    try bench.nodes[0].write(4)
    bench.loseMessages()
    try end(.retire)
    bench.run()
    #expect(held(1)?.sequence == 4 && bench.nodes[1].holds(bench.nodes[0]) == 3)
  }

  @Test(
    "a retired device shows what it wrote where nobody set a limit to it, and that counts everywhere",
    arguments: [false, true])
  func unlisted(isConnected: Bool) throws {
    if isConnected { _ = bench.connected(0, 1) }
    try bench.nodes[0].write(4)
    bench.loseMessages()
    try end(.retire, listsPartition: false)
    _ = bench.connected(1, 2)
    if !isConnected { _ = bench.connected(0, 1) }
    bench.run()
    bench.pass(1_000)
    try #require(bench.nodes[0].mesh.authority.isEnded(bench.nodes[0].key.publicKey))
    #expect(bench.nodes.allSatisfy { $0.holds(bench.nodes[0]) == 4 && $0.state?.heldAbove.isEmpty == true })
  }

  @Test("it waits until its peer knows what it wants", arguments: [0, 1])
  func peerAsksFirst(dialer: Int) throws {
    let scene = try MeshHandOverTests(wants: ["agency=*", "*", "*"])
    try scene.end(.retire)
    // What was wanted is not remembered.
    scene.bench.nodes[1].mesh.interestCache = InterestCache()
    let id = scene.bench.connected(dialer, 1 - dialer)
    #expect(scene.bench.nodes.prefix(2).allSatisfy { $0.mesh.sessions[id]?.phase == .live })
    #expect(scene.held(1)?.sequence == 3)
  }

  @Test("it hears of nothing but its end: no run, no vector, no other statement, no wish")
  func hearsNothing() throws {
    try end(.retire)
    try bench.nodes[1].write(9)
    bench.nodes[1].deliver(.statementsStored([try #require(bench.state(.rule(Statement.Rule(key: "secret"))))]))
    let start = bench.transcript.count
    let id = bench.connected(0, 1)
    bench.pass(60_000)
    try bench.nodes[1].write(10)
    bench.nodes[1].deliver(.interestChanged(added: Interest(prefixes: ["secret"]), removed: Interest()))
    bench.pass(1_000)
    #expect(bench.nodes[1].mesh.sessions[id] != nil)
    let said = Set(bench.said(from: 1, to: 0, since: start))
    #expect(said.isDisjoint(with: ["runs", "vectors", "have", "pull", "payloadPiece", "interestChange"]), "\(said)")
    #expect(bench.nodes[0].mesh.authority.isEnded(bench.nodes[0].key.publicKey))
    #expect(bench.nodes[0].stored.count == 1)
    #expect(bench.nodes[0].state?.heldAbove[replica]?.sequence == 3)
  }

  @Test("nothing is taken of a device whose key others may have")
  func compromised() throws {
    try end(.compromised)
    _ = bench.connected(0, 1)
    bench.pass(60_000)
    #expect(held(1) == nil && bench.nodes[1].holds(bench.nodes[0]) == 1)
  }

  @Test(
    "what a device wrote above its end is shown to who asks for it, but not where its key is in other hands",
    arguments: [Statement.End.Reason.retire, .compromised])
  func asked(reason: Statement.End.Reason) throws {
    bench.cut(bench.connected(0, 1))
    let bound = try #require(bench.nodes[2].state?.clipped[replica])
    try end(reason, upTo: bound)
    let id = bench.connected(1, 2)
    bench.pass(60_000)
    let start = bench.transcript.count
    // As one asks who has not heard yet why the device was ended.
    let probe = ChainProbe(name: bench.name, replica: replica, positions: [], wantsReply: false)
    bench.nodes[1].receive(.chainProbe(probe), on: id)
    let shown = shown(from: 1, to: 2, since: start)
    #expect(bound.sequence == 1 && shown == (reason == .retire ? [1, 2, 3] : [1]))
  }

  @Test("what waits behind a payload goes out no more once its author's key is said to be in other hands")
  func endedBehindPayload() throws {
    try bench.nodes[0].write(4, payloadByteCount: 3 * PayloadPiece.byteLimit)
    bench.cut(bench.connected(0, 1))
    let sender = bench.nodes[1]
    try #require(sender.holds(bench.nodes[0]) == 4)
    sender.holdsSaid = true
    let id = bench.connected(1, 2)
    sender.handOver(goesOn: false)
    bench.run()
    try #require(sender.mesh.sessions[id]?.live?.streams[bench.partition]?.outgoing.isBusy == true)
    try end(.compromised, upTo: try #require(bench.nodes[2].state?.clipped[replica]))
    // Node 2 does not know it yet, and takes what comes.
    let start = bench.transcript.count
    sender.handOver()
    bench.pass(60_000)
    #expect(shown(from: 1, to: 2, since: start).allSatisfy { $0 <= 3 })
    #expect(bench.nodes.allSatisfy(\.brokenRules.isEmpty) && sender.mesh.sessions[id]?.phase == .live)
  }

  @Test(
    "what waits to be announced is announced unless its author's key is said to be in other hands",
    arguments: [false, true])
  func endedBeforeAnnounced(isEnded: Bool) throws {
    for (a, b) in [(0, 1), (1, 2)] { _ = bench.connected(a, b) }
    let id = bench.connected(0, 2)
    bench.pass(3_000)
    // Its author is to bring it to node 2, and cannot.
    bench.nodes[0].mesh.pause(id)
    try bench.nodes[0].write(4)
    bench.run()
    try #require(bench.nodes[1].holds(bench.nodes[0]) == 4 && bench.nodes[2].holds(bench.nodes[0]) == 3)
    let start = bench.transcript.count
    if isEnded { try end(.compromised, upTo: try #require(bench.nodes[2].state?.clipped[replica])) }
    bench.pass(2_500)
    let announced = bench.messages(from: 1, to: 2, since: start).compactMap { message -> UInt64? in
      guard case .have(let told) = message else { return nil }
      return told.vector.sequence(of: replica)
    }
    #expect(announced.contains(4) == !isEnded, "\(announced)")
  }

  /// How far the runs go that one node shows another.
  private func shown(from: Int, to: Int, since start: Int) -> [UInt64] {
    bench.messages(from: from, to: to, since: start).flatMap { message -> [UInt64] in
      guard case .runs(let batch) = message else { return [] }
      return batch.entries.compactMap { try? bench.nodes[from].decode($0.encoded).last }
    }
  }

  @Test("who may not carry a partition shows there no chain but its own")
  func ownAlone() throws {
    try end(.retire)
    let id = bench.connected(0, 1)
    let other = bench.nodes[2].replica
    let start = bench.transcript.count
    let probe = ChainProbe(name: bench.name, replica: other, positions: [], wantsReply: true)
    bench.nodes[1].receive(.chainProbe(probe), on: id)
    #expect(bench.transcript.count == start)
  }

  /// Node 0 writes what it may not any more; node 1, which may carry it, hears of neither its right nor its end by itself.
  private struct Lowered {
    let bench: MeshBench
    let id: SessionID
    let writes: Statement

    /// - Parameter wants: of node 0; what it does not want is in no common scope.
    init(wants: Text = "*") throws {
      bench = try MeshBench([0, 1], wants: [wants, "*"], rights: .byUser)
      let (author, taker) = (bench.nodes[0], bench.nodes[1])
      let known = [try bench.grant(.everyone, .none), try bench.grant(.device(taker.key.publicKey), .carry)]
      for node in bench.nodes { node.deliver(.statementsStored(known)) }
      id = bench.connected(0, 1)
      writes = try bench.grant(.device(author.key.publicKey), .write)
      author.deliver(.statementsStored([writes]))
      try author.write(1)
      bench.loseMessages()
    }

    var author: BenchNode { bench.nodes[0] }
    var taker: BenchNode { bench.nodes[1] }
    var taken: UInt64? { taker.state?.heldAbove[author.replica]?.sequence }

    func grant(_ level: AccessLevel) throws -> Statement { try bench.grant(.device(author.key.publicKey), level) }

    /// The author hears of its end, and shows what it holds.
    func tellAuthor(_ lowered: Statement) throws {
      author.deliver(.statementsStored([lowered]))
      bench.loseStatements()
      bench.pass(1_000)
      try #require(author.state?.heldAbove[author.replica]?.sequence == 1)
      #expect(taken == nil && taker.mesh.sessions[id]?.phase == .live)
    }
  }

  @Test("what came before the right to it was known is asked for again when statements come")
  func early() throws {
    let scene = try Lowered()
    let lowered = try scene.grant(.none)
    try scene.tellAuthor(lowered)
    scene.taker.deliver(.statementsStored([scene.writes, lowered]))
    scene.bench.pass(1_000)
    #expect(scene.taken == 1)
  }

  @Test("so is what came from who might still carry its partition, by the statements that were here")
  func earlyOfWriter() throws {
    let scene = try Lowered(wants: "other")
    scene.taker.deliver(.statementsStored([scene.writes]))
    scene.bench.loseMessages()
    let lowered = try scene.grant(.none)
    try scene.tellAuthor(lowered)
    scene.taker.deliver(.statementsStored([lowered]))
    scene.bench.pass(1_000)
    #expect(scene.taken == 1)
  }

  @Test("so is what was asked for, and came when the rights that are known here had moved once more")
  func earlyOnceMore() throws {
    let scene = try Lowered(wants: "other")
    let lowered = try scene.grant(.none)
    try scene.tellAuthor(lowered)
    scene.taker.deliver(.statementsStored([scene.writes, lowered]))
    // It has asked.
    scene.taker.deliver(.statementsStored([try scene.grant(.write)]))
    scene.bench.loseStatements()
    scene.bench.pass(1_000)
    #expect(scene.taken == nil)
    scene.taker.deliver(.statementsStored([try scene.grant(.none)]))
    scene.bench.pass(1_000)
    #expect(scene.taken == 1)
  }

  @Test("a partition stays that began with what was handed over, where more of it ends the session before it is kept")
  func endedByMore() throws {
    let scene = try Lowered(wants: "other")
    let (author, taker) = (scene.author, scene.taker)
    for value in 2...3 { try author.write(Int64(value)) }
    scene.bench.loseMessages()
    taker.deliver(.statementsStored([scene.writes, try scene.grant(.none)]))
    scene.bench.loseMessages()
    try #require(taker.state == nil)

    func entry(_ run: LoggedRun, _ context: VersionVector) -> RunBatch.Entry {
      RunBatch.Entry(context: .full(context), encoded: run.encoded)
    }
    let runs = author.log
    let strange = VersionVector([taker.replica: ChainPosition(sequence: 1, tip: TipHash(high: 1, low: 1))])
    let entries = [entry(runs[0], runs[0].context), entry(runs[2], runs[2].context), entry(runs[1], strange)]
    let batch = RunBatch(name: scene.bench.name, stream: 0, entries: entries, isForkEvidence: true)
    taker.receive(.runs(batch), on: scene.id)
    #expect(taker.mesh.sessions[scene.id] == nil && taker.brokenRules.count == 1)
    #expect(scene.taken == 1 && taker.log.count == 1)
  }

  @Test("what a limit is lowered below while a payload goes out is shown apart, and its stream goes on in order")
  func loweredBehindPayload() throws {
    let bench = try MeshBench([0, 1])
    let (author, taker) = (bench.nodes[0], bench.nodes[1])
    try author.write(1)
    let id = bench.connected(0, 1)
    try author.write(2)
    author.holdsSaid = true
    try author.write(3, payloadByteCount: 3 * PayloadPiece.byteLimit)
    bench.run()
    let stream = author.mesh.sessions[id]?.live?.streams[bench.partition]
    try #require(taker.holds(author) == 2 && stream?.outgoing.isBusy == true)

    let first = try #require(author.log.first)
    let position = ChainPosition(sequence: 1, tip: try #require(first.hashAtLast?.tip))
    let listing = Statement.Listing(
      ends: [.init(partition: bench.name.text, chains: [.init(replica: author.replica, position: position)])])
    let lowered = Statement.Grant(subject: .everyone, level: .carry, pattern: "*", listing: listing)
    author.deliver(.statementsStored([try #require(bench.state(.grant(lowered)))]))
    bench.run()
    author.ask(id)
    bench.run()
    author.handOver()
    bench.run()
    #expect(author.holds(author) == 1 && taker.holds(author) == 1)
    #expect(taker.state?.heldAbove[author.replica]?.sequence == 3)
    #expect(author.brokenRules.isEmpty && taker.brokenRules.isEmpty)
    #expect(author.mesh.sessions[id]?.phase == .live && taker.mesh.sessions[id]?.phase == .live)
  }

  // MARK: Wishes

  /// Node 1 holds the device's change above a limit of nothing, so that no vector names it. Node 2 has none of it. Node
  /// `wanting` does not want the partition; the two have met before.
  private static func unwanted(by wanting: Int) throws -> MeshHandOverTests {
    let scene = try MeshHandOverTests(wants: ["agency=*", "agency=*", "user=*"])
    scene.bench.cut(scene.bench.connected(1, 2))
    try scene.end(.retire, upTo: .start)
    try #require(scene.held(1)?.sequence == 1 && scene.bench.nodes[1].state?.clipped.isEmpty == true)
    let agencies = scene.bench.fleet.interest("agency=*")
    if wanting == 1 {
      scene.bench.nodes[2].deliver(.interestChanged(added: agencies, removed: Interest()))
      scene.bench.nodes[1].deliver(.interestChanged(added: Interest(), removed: agencies))
    }
    return scene
  }

  private func want(_ slot: Int) {
    bench.nodes[slot].deliver(.interestChanged(added: bench.fleet.interest("agency=*"), removed: Interest()))
  }

  @Test("what is held is shown at once where one of two members comes to want its partition", arguments: [1, 2])
  func wantedLater(wanting: Int) throws {
    let scene = try Self.unwanted(by: wanting)
    _ = scene.bench.connected(1, 2)
    try #require(scene.held(2) == nil)
    scene.want(wanting)
    scene.bench.run()
    #expect(scene.held(2)?.sequence == 1)
  }

  @Test("what an ended device shows is asked for where its partition comes to be wanted only later, and not before")
  func handedOverUnwanted() throws {
    let scene = try MeshHandOverTests(wants: ["agency=*", "agency=*", "user=*"])
    try scene.end(.retire)
    scene.bench.cut(scene.bench.connected(1, 2))
    _ = scene.bench.connected(0, 2)
    let start = scene.bench.transcript.count
    scene.bench.nodes[2].deliver(
      .statementsStored([try #require(scene.bench.state(.rule(Statement.Rule(key: "other"))))]))
    scene.bench.run()
    #expect(!scene.bench.said(from: 2, to: 0, since: start).contains("chainProbe"))
    #expect(scene.bench.nodes[2].state == nil)
    scene.want(2)
    scene.bench.run()
    #expect(scene.held(2)?.sequence == 3)
  }

  @Test(
    "where the wish comes while they greet each other, comparing shows it, and nothing is said to who is not live yet",
    arguments: [(1, 2), (2, 1)], [1, 2])
  func wantedInHandshake(_ ends: (Int, Int), wanting: Int) throws {
    for (forgetful, count) in [1, 2].flatMap({ slot in (0..<14).map { (slot, $0) } }) {
      let scene = try Self.unwanted(by: wanting)
      // What the other wants is asked for there.
      scene.bench.nodes[forgetful].mesh.interestCache = InterestCache()
      let id = scene.bench.connect(ends.0, ends.1)
      scene.bench.run(count)
      scene.want(wanting)
      scene.bench.run()
      for _ in 0..<60 {
        for slot in 1...2 { scene.bench.tick(slot, after: 500) }
        scene.bench.run()
      }
      let place = "after \(count) messages, forgotten at \(forgetful)"
      #expect(scene.bench.nodes.dropFirst().allSatisfy { $0.mesh.sessions[id]?.phase == .live }, "\(place)")
      #expect(scene.held(2)?.sequence == 1, "\(place)")
    }
  }
}

extension MeshBench {
  /// By the root, of every partition.
  fileprivate func grant(_ subject: Statement.Subject, _ level: AccessLevel) throws -> Statement {
    try #require(state(.grant(Statement.Grant(subject: subject, level: level, pattern: "*"))))
  }
}
