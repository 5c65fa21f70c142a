import Testing
import Wire

@testable import Replication
@testable import Simulation

/// What one member can make a node hold, however much it says.
@Suite("Mesh: bounds per device") struct MeshBoundTests {
  @Test("a device has three sessions at most: the newest stays, the oldest goes, and other devices are not concerned")
  func sessions() throws {
    let bench = try MeshBench([0, 2, 1, 1, 1, 1, 1])
    let other = bench.connected(1, 0)
    let sessions = (2...6).map { bench.connected($0, 0) }
    let held = bench.nodes[0].mesh.sessions
    #expect(Set(held.ids) == Set(sessions.suffix(SessionTable.perDevice) + [other]))
    #expect(held.values.allSatisfy { $0.phase == .live })
  }

  /// A connection of the node's device on which nothing ever comes.
  private func silent(_ slot: Int, of bench: MeshBench) -> SessionID {
    let id = bench.connect(slot, 0)
    bench.loseMessages()
    return id
  }

  private func phases(_ bench: MeshBench, _ ids: [SessionID]) -> [PeerSession.Phase?] {
    ids.map { bench.nodes[0].mesh.sessions[$0]?.phase }
  }

  @Test("connections that say nothing cost a session that is heard nothing, however many come, and do not pile up")
  func silentConnections() throws {
    for count in 1...SessionTable.perDevice {
      let bench = try MeshBench([0] + [Int](repeating: 1, count: 10))
      let live = (1...count).map { bench.connected($0, 0) }
      let mute = (4...8).map { silent($0, of: bench) }
      #expect(phases(bench, live).allSatisfy { $0 == .live })
      // One has room in any case: who comes anew has to be able to say hello.
      let room = max(1, SessionTable.perDevice - count)
      #expect(bench.nodes[0].mesh.sessions.ids == live + mute.suffix(room))
      try bench.nodes[1].write(1)
      bench.run()
      #expect(bench.nodes[0].holds(bench.nodes[1]) == 1)
    }
  }

  @Test("a session at rest, of which the answer to its ping is still under way, is not one that fell silent")
  func atRest() throws {
    let bench = try MeshBench([0, 1, 1, 1, 1])
    let live = bench.connected(1, 0)
    bench.now = bench.now.advanced(byMilliseconds: KeepRule.silenceLimitMilliseconds + 2_000)
    let mute = (2...4).map { silent($0, of: bench) }
    #expect(bench.nodes[0].mesh.sessions.ids == [live] + mute.suffix(SessionTable.perDevice - 1))
  }

  @Test("the hello of a fourth session has the oldest go: a device that crashed again and again is let in at once")
  func fourthHello() throws {
    let bench = try MeshBench([0, 1, 1, 1, 1])
    let dead = (1...3).map { bench.connected($0, 0) }
    for (slot, id) in zip(1...3, dead) { bench.nodes[slot].deliver(.closed(id)) }
    let newest = bench.connected(4, 0)
    #expect(bench.nodes[0].mesh.sessions.ids == dead.dropFirst() + [newest])
    try bench.nodes[4].write(1)
    bench.run()
    #expect(bench.nodes[0].holds(bench.nodes[4]) == 1)
  }

  @Test(
    "of a device's sessions those that fell silent go first, and not the oldest where it is heard",
    arguments: [true, false])
  func fallenSilent(saysHello: Bool) throws {
    let bench = try MeshBench([0, 1, 1, 1, 1, 2])
    let (heard, halfOpen) = (bench.connected(1, 0), [bench.connected(2, 0), bench.connected(3, 0)])
    for (slot, id) in zip([2, 3], halfOpen) { bench.nodes[slot].deliver(.closed(id)) }
    bench.pass(PeerSession.silenceMilliseconds + 2_000)
    #expect(phases(bench, [heard] + halfOpen) == [.live, .live, .live])
    let newest = saysHello ? bench.connected(4, 0) : silent(4, of: bench)
    #expect(bench.nodes[0].mesh.sessions.ids == [heard, halfOpen[1], newest])
  }

  @Test("who says hello again and again and never goes on costs a live session nothing")
  func halfwayConnections() throws {
    let bench = try MeshBench([0, 1, 1, 1, 1, 1])
    let live = bench.connected(1, 0)
    // Where both know the same a hello is all that it takes.
    try say(1, at: [0], of: bench)
    bench.run()
    let halfway = (2...5).map { slot in
      let id = bench.connect(slot, 0)
      for _ in 0..<4 where phases(bench, [id]) == [.awaitingHello] { bench.run(1) }
      bench.loseMessages()
      return id
    }
    #expect(phases(bench, [halfway[3]]) == [.exchangingStatements])
    #expect(bench.nodes[0].mesh.sessions.ids == [live] + halfway.suffix(SessionTable.perDevice - 1))
  }

  @Test("a connection that is given up as a second one takes nobody's place")
  func secondOne() throws {
    let bench = try MeshBench([0, 1, 1, 1])
    let live = (1...3).map { bench.connected($0, 0) }
    _ = bench.connected(0, 1)
    #expect(bench.nodes[0].mesh.sessions.ids == live)
    #expect(phases(bench, live) == [.live, .live, .live])
  }

  @Test("who says hello is not taken for the second connection of one that came at the same time and says nothing")
  func silentSecondOne() throws {
    for isFirst in [true, false] {
      for attempt in 0..<8 {
        let bench = try MeshBench([0, 1, 1])
        // Of two at once the exporter value decides, which is another with every connection.
        for _ in 0..<attempt { bench.cut(bench.connect(1, 0)) }
        if isFirst { _ = silent(2, of: bench) }
        let id = bench.connect(1, 0)
        if !isFirst { bench.nodes[0].deliver(opened(by: 2, as: SessionID(rawValue: 99), of: bench)) }
        bench.run()
        #expect(phases(bench, [id]) == [.live], "\(isFirst) \(attempt)")
      }
    }
  }

  private func opened(by slot: Int, as id: SessionID, of bench: MeshBench) -> Mesh.Event {
    .opened(id, isDialer: false, peer: bench.nodes[slot].key.publicKey, exporter: bench.exporter(of: id))
  }

  // MARK: Statements

  /// Grants that list so much that a few of them fill a window; each of some 15 KB.
  private func say(_ count: Int, at slots: [Int], of bench: MeshBench) throws {
    let chains = (0..<240).map {
      Statement.ChainEnd(
        replica: ReplicaID(high: 1, low: $0), position: ChainPosition(sequence: 1 << 40, tip: TipHash(high: $0, low: 7))
      )
    }
    let ends = [Statement.PartitionEnds(partition: "agency=none", chains: chains)]
    var said: [Statement] = []
    for index in 0..<count {
      let grant = Statement.Grant(
        subject: .everyone, level: .read, pattern: Text("agency=p\(index)"), listing: Statement.Listing(ends: ends))
      said.append(try #require(bench.state(.grant(grant))))
    }
    for slot in slots { bench.nodes[slot].deliver(.statementsStored(said)) }
  }

  private func bytes(_ messages: [Message]) -> Int {
    messages.reduce(0) { sum, message in
      guard case .statements(let list, _) = message else { return sum }
      return sum + list.reduce(0) { $0 + $1.count }
    }
  }

  @Test("a joiner is told more statements than fit a queue as fast as they go, and is admitted behind the last")
  func joiner() throws {
    let bench = try MeshBench([0, 1])
    try say(200, at: [1], of: bench)
    let id = bench.connect(0, 1)
    bench.loseMessages()
    bench.nodes[1].receive(.joinRequest(try MeshJoiningTests.request(bench, id)), on: id)
    let start = bench.transcript.count
    bench.nodes[1].deliver(.joinJudged(id, .accepted(JoinAcceptance(proof: .zero))))
    #expect(bench.nodes[1].admitted == [id])
    let window = MeshConfiguration().statementWindowByteCount
    #expect((window..<window + 65_536).contains(bytes(bench.messages(from: 1, to: 0, since: start))))
    // Nothing more goes while too much waits, however long; the time of a handshake does not end it.
    bench.nodes[1].mesh.pause(id)
    let paused = bench.transcript.count
    for _ in 0..<20 { bench.tick(1, after: 1_000) }
    #expect(bench.transcript.count == paused && bench.nodes[1].mesh.sessions[id] != nil)
    bench.nodes[1].deliver(.writable(id))
    #expect((window..<window + 65_536).contains(bytes(bench.messages(from: 1, to: 0, since: paused))))
    #expect(bench.nodes[1].mesh.nextDeadline == MonotonicTime(milliseconds: 0))
    for _ in 0..<10 { bench.tick(1, after: 1) }
    let messages = bench.messages(from: 1, to: 0, since: start)
    #expect(messages.last == .joinAccepted(JoinAcceptance(proof: .zero)))
    #expect(bytes(messages) == bench.nodes[1].mesh.ledger.statements.values.reduce(0) { $0 + $1.count })
    #expect(bench.nodes[1].mesh.sessions[id] == nil && bench.nodes[1].mesh.nextDeadline == nil)
  }

  @Test("a joiner that takes nothing for half a minute is given up")
  func silentJoiner() throws {
    let bench = try MeshBench([0, 1])
    try say(200, at: [1], of: bench)
    let id = bench.connect(0, 1)
    bench.loseMessages()
    bench.nodes[1].receive(.joinRequest(try MeshJoiningTests.request(bench, id)), on: id)
    bench.nodes[1].deliver(.joinJudged(id, .accepted(JoinAcceptance(proof: .zero))))
    bench.nodes[1].mesh.pause(id)
    bench.tick(1, after: bench.nodes[1].mesh.configuration.deadMilliseconds + 1)
    #expect(!bench.nodes[1].mesh.sessions.ids.contains(id))
  }

  @Test("the exchange of statements stops and goes on with the queue, and what is new goes behind")
  func exchange() throws {
    let bench = try MeshBench([0, 1])
    try say(150, at: [1], of: bench)
    let id = bench.connect(0, 1)
    while bench.nodes[1].mesh.sessions[id]?.outbox.isEmpty != false { bench.run(1) }
    bench.nodes[1].mesh.pause(id)
    bench.run()
    #expect(!bench.said(from: 1, to: 0).contains("statementsComplete"))
    try say(1, at: [1], of: bench)
    bench.run()
    bench.nodes[1].deliver(.writable(id))
    bench.pass(1_000)
    #expect(bench.said(from: 1, to: 0).count { $0 == "statementsComplete" } == 1)
    #expect(bench.nodes[0].mesh.ledger.statements == bench.nodes[1].mesh.ledger.statements)
    #expect(bench.nodes.allSatisfy { $0.mesh.sessions[id]?.phase == .live })
  }

  @Test("what falls out of the set is told to the store, and is kept nowhere")
  func displaced() throws {
    let bench = try MeshBench([0, 1])
    let member = bench.nodes[1].key
    let first = try #require(bench.nodes[0].mesh.authority.fleetStatements.last { $0.issuer == member.publicKey })
    let content = Statement.PartitionEnds(
      partition: "agency=none",
      chains: (0..<240).map {
        Statement.ChainEnd(
          replica: ReplicaID(high: 1, low: $0), position: ChainPosition(sequence: 9, tip: TipHash(high: $0, low: 7)))
      })
    func grant(_ number: Int, after last: Statement?) throws -> Statement {
      let grant = Statement.Grant(
        subject: .everyone, level: .read, pattern: Text("x\(number)"), listing: Statement.Listing(ends: [content]))
      return try #require(member.statement(bench.fleet.id, .grant(grant), after: last))
    }
    var flood = [try grant(0, after: first)]
    for number in 1..<500 { flood.append(try grant(number, after: flood.last)) }
    let id = bench.connected(0, 1)
    let before = bench.nodes[0].mesh.ledger.statements.count
    bench.nodes[0].receive(.statements(flood.map(\.encoded)), on: id)
    func bytesKept() -> Int {
      flood.reduce(0) { bench.nodes[0].mesh.authority.holds($1.id) ? $0 + $1.encoded.count : $0 }
    }
    let limit = AdmittedStatements.byteLimit
    #expect((limit - 16_384...limit + 16_384).contains(bytesKept()))
    let spent = bench.nodes[0].mesh.authority.allowances.filter(\.isNearlySpent)
    #expect(spent.map(\.device) == [member.publicKey] && spent.first?.statements == bench.nodes[0].stored.count + 1)
    let kept = bench.nodes[0].stored.count
    #expect(bench.nodes[0].mesh.ledger.statements.count == before + kept && kept < flood.count - 20)
    // Branches at the start displace what came last, and none of it stays in the store.
    let branches = try (0..<100).map { try grant(1_000 + $0, after: first) }
    bench.nodes[0].receive(.statements(branches.map(\.encoded)), on: id)
    let discarded = Set(bench.nodes[0].discarded)
    #expect(discarded.count >= 90 && bench.nodes[0].mesh.authority.count == bench.nodes[0].mesh.ledger.statements.count)
    #expect(discarded.allSatisfy { !bench.nodes[0].mesh.authority.holds($0) })
    #expect(bench.nodes[0].mesh.ledger.statements.count == before + bench.nodes[0].stored.count - discarded.count)
    #expect(bench.nodes[0].mesh.sessions[id] != nil)
  }

  // MARK: Vectors and contexts

  @Test("contexts of one message are put together one after the other, and so many entries and no more")
  func contexts() throws {
    let bench = try MeshBench([0, 1])
    let run = try bench.nodes[1].write(1)
    let id = bench.connected(0, 1)
    try #require(bench.nodes[0].log.count == 1)
    let entries = 4_096
    var context = VersionVector()
    for index in 0..<entries {
      context[ReplicaID(high: 3, low: UInt64(index))] = ChainPosition(sequence: 1, tip: .zero)
    }
    let honest = try bench.nodes[0].incoming(run)
    let repeated = IncomingRun(
      replica: honest.replica, first: honest.first, hashBefore: honest.hashBefore,
      contextDigest: RunRecord.digest(of: context, FakeCryptography.hash), context: .full(context),
      hashes: honest.hashes, facts: honest.facts, elementDots: honest.elementDots, signer: honest.signer,
      encoded: honest.encoded, documents: honest.documents)
    let batch = RunBatch(name: bench.name, stream: 0, entries: [], isForkEvidence: true)
    let allowed = RunBatch.contextEntryLimit / entries
    bench.nodes[0].deliver(.receivedRuns(id, batch, Array(repeating: repeated, count: allowed)))
    #expect(bench.nodes[0].mesh.sessions[id] != nil)
    bench.nodes[0].deliver(.receivedRuns(id, batch, Array(repeating: repeated, count: allowed + 1)))
    #expect(bench.nodes[0].mesh.sessions[id] == nil)
    #expect(bench.nodes[0].notes.contains(.peerRefused("contexts of one message with too many entries")))
  }

  @Test("what the peers of a device name of chains that are not here is bounded over all its sessions")
  func awaited() throws {
    let bench = try MeshBench([0, 1, 1])
    let sessions = [bench.connected(1, 0), bench.connected(2, 0)]
    let declared = bench.nodes.map(\.replica)
    let perVector = declared.count - 1
    let named = VersionVector(
      Dictionary(declared.map { ($0, ChainPosition(sequence: 3, tip: .zero)) }) { first, _ in first })
    for id in sessions { bench.nodes[0].mesh.awaitChains(AwaitedChains.limit / 2 - perVector, on: id) }
    func streams() -> Int {
      bench.nodes[0].mesh.sessions.values.reduce(0) { $0 + ($1.live?.streams.values.count { !$0.known.isEmpty } ?? 0) }
    }
    bench.nodes[0].mesh.forbidsCounting(now: bench.now)
    for number in 0..<4 {
      let name = try PartitionName(Text("agency=x\(number)"))
      bench.nodes[0].receive(.have(PartitionVector(name: name, vector: named)), on: sessions[number % 2])
    }
    #expect(streams() == 2)
    // What was counted was never there: after a while it is counted anew, and there is room.
    bench.now = bench.now.advanced(byMilliseconds: 5_000)
    bench.nodes[0].receive(.have(PartitionVector(name: try PartitionName("agency=y"), vector: named)), on: sessions[0])
    #expect(streams() == 3)
  }

  @Test("interests are remembered up to so many items: the largest is forgotten first")
  func interests() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    _ = id
    for number in 0..<4 as Range<UInt64> {
      let items = (0..<(number + 1) * 40_000).map { PartitionID(Digest(words: ($0, number, 0, 1))) }
      let device = DeviceID(Digest(words: (number, 0, 0, 3)))
      bench.nodes[0].mesh.interestCache.remember(Interest(partitions: Set(items)), .zero, of: device)
    }
    let cached = bench.nodes[0].mesh.interestCache
    #expect(cached.itemCount <= InterestCache.itemLimit)
    let remembered = (2...3).map { cached[DeviceID(Digest(words: ($0, 0, 0, 3)))] != nil }
    #expect(remembered == [true, false])
  }
}

extension Mesh {
  fileprivate mutating func awaitChains(_ count: Int, on id: SessionID) { sessions[id]?.live?.awaited.count = count }
  fileprivate mutating func forbidsCounting(now: MonotonicTime) {
    for id in sessions.ids { sessions[id]?.live?.awaited.countedAt = now }
  }
}
