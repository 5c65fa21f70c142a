import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: statements that wait to be said") struct StatementOutboxTests {
  private let statements: [Statement]

  init() throws {
    var random = SimulationRandom(seed: 1)
    let key = FakeKey(&random)
    let fleet = FleetID(Digest(words: (1, 2, 3, 4)))
    statements = try (1...7).map { number in
      try #require(key.statement(fleet, .rule(Statement.Rule(key: Text("rule\(number)")))))
    }
  }

  /// So many statements of these, which are of equal length.
  private func bytes(_ count: Int) -> Int { count * statements[0].encoded.count }

  /// The numbers of statements that are said at once, by message; "end" where that is said behind them.
  private func said(_ outbox: inout StatementOutbox, _ count: Int) -> [String] {
    let window = outbox.takeWindow(bytes(count)).map { message in
      guard case .statements(let list, let scope) = message else { return "?" }
      let numbers = list.map { said in (statements.firstIndex { $0.encoded == said } ?? -1) + 1 }
      return "\(scope.string)\(numbers)"
    }
    return window + (outbox.takeEnd() == nil ? [] : ["end"])
  }

  private func filled() -> StatementOutbox {
    func statements(_ numbers: Int...) -> [Statement] { numbers.map { self.statements[$0 - 1] } }
    var outbox = StatementOutbox()
    outbox.put(statements(1, 2))
    outbox.put(statements(3), of: "a")
    outbox.put(statements(4, 5), of: "b")
    outbox.put(statements(6), of: "a")
    outbox.put(statements(7), then: .complete)
    return outbox
  }

  /// Both hold all that a device said; what stands beside that, and makes who hears it drop the last of it, node `hearer` alone.
  /// Answers the last one, and what an admin says of the device that lets it stand, which nobody has heard yet.
  private func spent(_ bench: MeshBench, hearer: Int = 1) throws -> (last: Statement, end: Statement) {
    let flooder = FakeKey(&bench.random)
    let admitted = Statement.Membership(
      device: flooder.publicKey, user: "zoe", label: "", role: "officer", profile: ValueMap())
    let membership = try #require(bench.state(.membership(admitted)))
    func said(_ count: Int, after first: Statement?, _ key: Text) throws -> [Statement] {
      var said: [Statement] = []
      for number in 0..<count {
        let body = Statement.Body.rule(Statement.Rule(key: Text("\(key.string)\(number)")))
        said.append(try #require(flooder.statement(bench.fleet.id, body, after: said.last ?? first)))
      }
      return said
    }
    let all = try said(Allowance.statementLimit, after: nil, "a")
    for node in bench.nodes { node.deliver(.statementsStored([membership] + all)) }
    let last = try #require(all.last)
    let tip = Statement.Tip(issuer: flooder.publicKey, sequence: last.sequence, id: last.id)
    let listing = Statement.Listing(tips: [Statement.ScopeTips(scope: "", tips: [tip])])
    let end = try #require(
      bench.state(.end(Statement.End(reason: .retire, target: .membership(membership.id), listing: listing))))
    // Whom an admin's word lets keep it hears that first.
    if hearer == 0 { bench.nodes[0].deliver(.statementsStored([end])) }
    bench.nodes[hearer].deliver(.statementsStored(try said(600, after: all[0], "b")))
    bench.loseStatements()
    try #require(bench.nodes[0].mesh.authority.holds(last.id))
    try #require(bench.nodes[1].mesh.authority.holds(last.id) == (hearer == 0))
    return (last, end)
  }

  @Test("what an admin names of a device that has said all it may is told with what names it, to who pushed that out")
  func pushedOut() throws {
    let bench = try MeshBench([0, 1])
    _ = bench.connected(0, 1)
    let (last, end) = try spent(bench)
    bench.nodes[0].deliver(.statementsStored([end]))
    bench.run()
    #expect(bench.nodes[1].mesh.authority.holds(end.id) && bench.nodes[1].mesh.authority.holds(last.id))
  }

  @Test("on a new connection it comes in several messages, and with the last of them into the set", arguments: [0, 1])
  func pushedOutBefore(dialer: Int) throws {
    let bench = try MeshBench([0, 1])
    let (last, end) = try spent(bench)
    bench.nodes[0].deliver(.statementsStored([end]))
    let id = bench.connected(dialer, 1 - dialer)
    #expect(bench.said(from: 0, to: 1).count { $0 == "statements" } > 1)
    #expect(bench.nodes[1].mesh.authority.holds(end.id) && bench.nodes[1].mesh.authority.holds(last.id))
    let digests = bench.nodes.map { $0.mesh.authority.digest(FakeCryptography.hash) }
    #expect(digests[0] == digests[1] && bench.nodes.allSatisfy { $0.mesh.sessions[id]?.phase == .live })
  }

  @Test("they are said in order, those of one scope that follow one another in one message, and the end behind them")
  func order() {
    var outbox = filled()
    #expect(outbox.count == 7 && outbox.scopes == ["", "a", "b"])
    let first = said(&outbox, 4)
    #expect(first == ["[1, 2]", "a[3]", "b[4]"] && outbox.count == 3)
    let rest = said(&outbox, 100)
    #expect(rest == ["b[5]", "a[6]", "[7]", "end"] && outbox.isEmpty)
    let more = said(&outbox, 100)
    #expect(more.isEmpty)
  }

  @Test("what is dropped of a scope is not said, and all else is, once and in order, with its end", arguments: 0...7)
  func dropped(saidBefore: Int) {
    var outbox = filled()
    var told = said(&outbox, saidBefore)
    let count = told.count
    outbox.drop(["a", "c"])
    #expect(!outbox.scopes.contains("a"))
    told += said(&outbox, 100)
    #expect(!told.dropFirst(count).contains { $0.hasPrefix("a") } && outbox.isEmpty)
    #expect(told.joined().filter { "12457".contains($0) } == "12457" && told.count { $0 == "end" } == 1)
  }

  @Test("of a room that the peer may carry no longer nothing that waited for it goes out", arguments: [true, false])
  func removedMeanwhile(isRemoved: Bool) throws {
    let bench = try MeshBench([0, 1, 2], users: ["ana", "ben", "eva"])
    bench.state([.rule(Statement.Rule(key: Statement.Rule.Key.conversation))])
    let room = try RoomBook(bench, creator: 0)
    try room.create()
    try room.invite("eva", by: 0)
    try room.invite("ben", by: 0)
    let id = bench.connected(0, 1)
    _ = bench.connected(0, 2)
    func held(_ slot: Int) -> Int { bench.nodes[slot].mesh.authority.statements(of: room.name.text).count }
    try #require(held(1) == 3 && held(2) == 3)
    // Nothing more goes to node 1 for now.
    bench.nodes[0].mesh.pause(id)
    try room.invite("dora", by: 2)
    bench.run()
    try #require(held(0) == 4 && held(1) == 3)
    if isRemoved { try room.remove("ben", by: 0) }
    bench.nodes[0].deliver(.writable(id))
    bench.pass(60_000)
    // The removal, and not what another said before it.
    #expect(held(0) == (isRemoved ? 5 : 4) && held(1) == 4)
    let dora = bench.nodes[1].mesh.authority.statements(of: room.name.text).contains {
      $0.issuer == bench.nodes[2].key.publicKey
    }
    #expect(dora == !isRemoved)
  }

  @Test(
    "of what waits for it who is a member no longer hears what is said of itself, and the rest once it is one again")
  func endedMeanwhile() throws {
    let bench = try MeshBench([0, 1])
    let (teller, peer) = (bench.nodes[0], bench.nodes[1].key.publicKey)
    // Each of some 14 KB, so that a few of them fill a window.
    let chains = (0..<220).map { Statement.ChainEnd(replica: ReplicaID(high: 1, low: $0), position: .start) }
    let listing = Statement.Listing(ends: [Statement.PartitionEnds(partition: "agency=none", chains: chains)])
    var said: [Statement] = []
    for number in 0..<200 {
      let body = Statement.Body.grant(
        Statement.Grant(subject: .everyone, level: .read, pattern: Text("agency=p\(number)"), listing: listing))
      let last = said.last ?? teller.mesh.authority.fleetStatements.last { $0.issuer == teller.key.publicKey }
      said.append(try #require(teller.key.statement(bench.fleet.id, body, after: last)))
    }
    teller.deliver(.statementsStored(said))
    func heard() -> Int { said.count { bench.nodes[1].mesh.authority.holds($0.id) } }
    let id = bench.connect(0, 1)
    while teller.mesh.sessions[id]?.outbox.isEmpty != false { bench.run(1) }
    teller.mesh.pause(id)
    bench.run()
    let before = heard()
    try #require((1..<200).contains(before))

    try bench.endMembership(of: 1, knownBy: 0)
    teller.deliver(.writable(id))
    bench.pass(2_000)
    #expect(heard() == before && bench.nodes[1].mesh.authority.isEnded(peer))
    let admitted = Statement.Membership(device: peer, user: "ana", label: "", role: "officer", profile: ValueMap())
    teller.deliver(.statementsStored([try #require(bench.state(.membership(admitted)))]))
    bench.pass(2_000)
    #expect(heard() == 200)
  }

  @Test("nor does it hear of what is learnt before it has said who it is")
  func endedWhileGreeting() throws {
    let bench = try MeshBench([0, 1])
    _ = bench.connect(0, 1)
    let teller = bench.nodes[0]
    let last = teller.mesh.authority.fleetStatements.last { $0.issuer == teller.key.publicKey }
    let rule = try #require(teller.key.statement(bench.fleet.id, .rule(Statement.Rule(key: "x")), after: last))
    teller.deliver(.statementsStored([rule]))
    try bench.endMembership(of: 1, knownBy: 0)
    bench.run()
    let heard = bench.nodes[1].mesh.authority
    #expect(heard.isEnded(bench.nodes[1].key.publicKey) && !heard.holds(rule.id))
  }
}
