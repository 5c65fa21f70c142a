import Testing
import Wire

@testable import Replication
@testable import Simulation

/// Admins name statements of devices that have said all that they may, and who hears it holds others of these devices.
@Suite("Mesh: what admins name of devices that have said all they may") struct NamedStatementTests {
  private let bench: MeshBench

  init() throws { bench = try MeshBench([0, 1]) }

  private func membership(of key: FakeKey) throws -> Statement {
    let admitted = Statement.Membership(
      device: key.publicKey, user: "zoe", label: "", role: "officer", profile: ValueMap())
    return try #require(bench.state(.membership(admitted)))
  }

  /// A chain of so many statements, or as many beside one another.
  private func said(
    _ key: FakeKey, _ count: Int, _ word: String, byteCount: Int = 0, beside: Bool = false
  ) throws -> [Statement] {
    var said: [Statement] = []
    for number in 0..<count {
      let grant = Statement.Grant(subject: .everyone, level: .read, pattern: Text("\(word)\(number)"))
      let note = StatementNotes.Entry(key: 9, content: [UInt8](repeating: 7, count: byteCount))
      let link = beside ? nil : said.last.map { Statement.Link(sequence: $0.sequence, id: $0.id) }
      let unsigned = try StatementCodec.unsigned(
        fleet: bench.fleet.id, issuer: key.publicKey, after: link, body: .grant(grant), notes: StatementNotes([note]))
      said.append(
        try StatementCodec.assemble(unsigned: unsigned, signature: key.sign(unsigned), FakeCryptography.hash))
    }
    return said
  }

  private func end(_ membership: Statement, naming last: Statement) throws -> Statement {
    let tip = Statement.Tip(issuer: last.issuer, sequence: last.sequence, id: last.id)
    let listing = Statement.Listing(tips: [Statement.ScopeTips(scope: "", tips: [tip])])
    return try #require(
      bench.state(.end(Statement.End(reason: .retire, target: .membership(membership.id), listing: listing))))
  }

  private func holds(_ slot: Int, _ statements: [Statement]) -> Bool {
    statements.allSatisfy { bench.nodes[slot].mesh.authority.holds($0.id) }
  }

  /// What was told of the fleet, in its order.
  private func told(from: Int, to: Int) -> [Digest] {
    bench.messages(from: from, to: to).flatMap { message -> [Digest] in
      guard case .statements(let list, let scope) = message, scope.utf8.isEmpty else { return [] }
      return list.compactMap { FakeCryptography.statement($0).statement?.id }
    }
  }

  /// Five are more than one device may say, and six are kept beside the set.
  private static let largeByteCount = 850_000

  @Test("however much several devices say, ends come in with what they name on one connection", arguments: [0, 1])
  func manyDevices(dialer: Int) throws {
    let keys = (0..<3).map { _ in FakeKey(&bench.random) }
    let admitted = try keys.map(membership)
    let here = try keys.map { try said($0, 5, "a", byteCount: Self.largeByteCount) }
    let there = try keys.map { try said($0, 5, "b", byteCount: Self.largeByteCount) }
    let ends = try zip(admitted, here).map { try end($0, naming: $1[4]) }
    bench.nodes[0].deliver(.statementsStored(admitted + here.joined() + ends))
    bench.nodes[1].deliver(.statementsStored(admitted + there.joined()))
    try #require(bench.nodes.allSatisfy { $0.mesh.authority.fullDevices.count == 3 })
    let id = bench.connected(dialer, 1 - dialer)
    bench.pass(5_000)
    #expect(holds(1, ends + here.joined()))
    let digests = bench.nodes.map { $0.mesh.authority.digest(FakeCryptography.hash) }
    #expect(digests[0] == digests[1] && bench.nodes.allSatisfy { $0.mesh.sessions[id]?.phase == .live })
    #expect(told(from: 0, to: 1).count == Set(told(from: 0, to: 1)).count)
  }

  @Test("what is named of a device that has said much is told also to who has it, once for all that name it")
  func namedTwice() throws {
    let key = FakeKey(&bench.random)
    let admitted = try membership(of: key)
    let all = try said(key, 3, "a", byteCount: Self.largeByteCount)
    let early = try end(admitted, naming: all[0])
    for node in bench.nodes { node.deliver(.statementsStored([admitted] + all + [early])) }
    let ends = try (0..<2).map { _ in try end(admitted, naming: all[2]) }
    bench.nodes[0].deliver(.statementsStored(ends))
    _ = bench.connected(0, 1)
    bench.pass(1_000)
    // What the first end names stays there, whatever comes.
    #expect(told(from: 0, to: 1) == [all[1].id, all[2].id] + ends.map(\.id))
    #expect(holds(1, ends))
  }

  @Test("an admin's word comes first, each right behind what it names, and what members say besides at the end")
  func order() throws {
    let keys = [FakeKey(&bench.random), FakeKey(&bench.random)]
    let admitted = try keys.map(membership)
    let lines = try keys.map { try said($0, 4, "a") }
    let others = try keys.map { try said($0, 3, "b") }
    let ends = try zip(admitted, lines).map { try end($0, naming: $1[2]) }
    let all = admitted + lines.joined() + others.joined() + ends
    bench.nodes[0].deliver(.statementsStored(all))
    let authority = bench.nodes[0].mesh.authority
    let told = TellingOrder(of: Set(all.map(\.id)), lacking: Set(all.map(\.id)), authority).told
    let first = admitted + lines[0].prefix(3) + [ends[0]] + lines[1].prefix(3) + [ends[1]]
    #expect(told.prefix(first.count).map(\.id) == first.map(\.id))
    #expect(Set(told.map(\.id)) == Set(all.map(\.id)) && told.count == all.count)
    // Each behind what it goes on from.
    var seen: Set<Digest> = []
    for statement in told where statement.issuer != bench.fleet.root.publicKey {
      #expect(statement.previous.map(seen.contains) ?? true)
      seen.insert(statement.id)
    }
  }

  @Test("what falls out of the set in an exchange is there for what names it, in whatever order a peer tells it")
  func fallenOutMeanwhile() throws {
    let key = FakeKey(&bench.random)
    let admitted = try membership(of: key)
    let large = try said(key, 6, "a", byteCount: Self.largeByteCount, beside: true).sorted { $0.id < $1.id }
    for node in bench.nodes { node.deliver(.statementsStored([admitted, large[5]])) }
    // So that the two have something to exchange.
    bench.nodes[0].deliver(.statementsStored([try #require(bench.state(.rule(Statement.Rule(key: "a"))))]))
    let id = bench.connect(0, 1)
    while bench.nodes[1].mesh.sessions[id]?.phase != .exchangingStatements { bench.run(1) }
    for statement in large.prefix(5) { bench.nodes[1].receive(.statements([statement.encoded]), on: id) }
    try #require(!holds(1, [large[5]]) && bench.nodes[1].discarded == [large[5].id])
    let rule = bench.nodes[0].mesh.authority.fleetStatements.last { $0.issuer == bench.fleet.root.publicKey }
    let named = try end(admitted, naming: large[5])
    bench.nodes[1].receive(.statements([try #require(rule).encoded]), on: id)
    bench.nodes[1].receive(.statements([named.encoded]), on: id)
    #expect(holds(1, [named, large[5]]))
  }

  @Test("what falls out of the set does so by number, and not in the order of a table")
  func displacedInOrder() throws {
    let key = FakeKey(&bench.random)
    let said = try said(key, AdmittedStatements.limit + 30, "a", beside: true).sorted { $0.id < $1.id }
    bench.nodes[1].deliver(.statementsStored([try membership(of: key)] + said.dropFirst(30)))
    var ledger = bench.nodes[1].mesh.ledger
    let fresh = Array(said.prefix(30))
    #expect(ledger.admit(fresh, ledger.authority.adding(fresh)) == said.suffix(30))
  }

  @Test("of what an exchange brings the last is kept, within both bounds, and what fell out where there is room")
  func bounds() throws {
    let key = FakeKey(&bench.random)
    let small = try said(key, StatementsAside.limit + 10, "a", beside: true)
    let large = try said(key, 8, "b", byteCount: Self.largeByteCount, beside: true)
    let named = try end(try membership(of: key), naming: large[0])
    let authority = bench.nodes[0].mesh.authority
    let all = Dictionary(uniqueKeysWithValues: (small + large).map { ($0.id, $0) })
    func read(_ id: Digest, _ encoded: [UInt8]) -> Statement? { all[id].flatMap { $0.encoded == encoded ? $0 : nil } }
    func kept(_ aside: StatementsAside) -> [Digest] {
      aside.joining([named], isHeld: { _ in false }, read: read).dropLast().map(\.id)
    }
    var aside = StatementsAside()
    aside.keep(Array(small.prefix(1_000)), besides: authority)
    aside.keep(Array(small.dropFirst(1_000)), besides: authority)
    #expect(kept(aside) == small.suffix(StatementsAside.limit).map(\.id))
    aside.keep(displaced: [large[0]])
    #expect(kept(aside).count == StatementsAside.limit)
    for statement in large { aside.keep([statement, named], besides: authority) }
    #expect(kept(aside) == large.suffix(6).map(\.id))

    aside = StatementsAside()
    aside.keep([large[0]], besides: authority)
    for statement in large { aside.keep(displaced: [statement]) }
    #expect(kept(aside) == large.prefix(6).reversed().map(\.id))
    #expect(aside.joining([small[0]], isHeld: { _ in false }, read: read) == [small[0]])
    #expect(aside.joining([named], isHeld: { _ in true }, read: read) == [named])
  }

  @Test("what is named of a device that has said little in many bytes is told with what names it, in a session, too")
  func bytes() throws {
    let key = FakeKey(&bench.random)
    let admitted = try membership(of: key)
    for node in bench.nodes { node.deliver(.statementsStored([admitted])) }
    _ = bench.connected(0, 1)
    let large = try said(key, 6, "a", byteCount: Self.largeByteCount, beside: true).sorted { $0.id < $1.id }
    bench.nodes[1].deliver(.statementsStored(Array(large.prefix(5))))
    bench.nodes[0].deliver(.statementsStored(Array(large.suffix(3))))
    bench.loseStatements()
    try #require(holds(0, [large[5]]) && !holds(1, [large[5]]))
    let named = try end(admitted, naming: large[5])
    bench.nodes[0].deliver(.statementsStored([named]))
    bench.run()
    #expect(holds(1, [named, large[5]]))
  }

  /// A device's membership, and what it says, of which node 1 holds as much as is little. There is room for so much more there.
  private func filledRoom(leaving left: Int) throws -> (admitted: Statement, said: [Statement]) {
    let key = FakeKey(&bench.random)
    let admitted = try membership(of: key)
    let all = try said(key, 2 * FleetRoom.littleSaid, "a")
    bench.nodes[1].deliver(.statementsStored([admitted] + all.prefix(FleetRoom.littleSaid)))
    let held = bench.nodes[1].mesh.ledger.statements.count
    for number in 0..<UInt64(Statement.countLimit - left - held) {
      bench.nodes[1].mesh.ledger.statements[TipHash(high: 1, low: number)] = []
    }
    return (admitted, all)
  }

  /// What fills the room are no statements, and the core would say so.
  private func receive(_ list: [Statement], on id: SessionID) {
    Invariant.unheard { bench.nodes[1].receive(.statements(list.map(\.encoded)), on: id) }
  }

  @Test("where members have used up the room for statements, what an admin names comes in with his word")
  func room() throws {
    let id = bench.connected(0, 1)
    let (admitted, all) = try filledRoom(leaving: FleetRoom.reserve)
    let named = try end(admitted, naming: all[20])
    receive(all.dropFirst(FleetRoom.littleSaid) + [named], on: id)
    #expect(holds(1, [named, all[20]]) && !holds(1, [all[21]]))
  }

  @Test("what admins name leaves the last of that room to what they say themselves")
  func lastRoom() throws {
    let id = bench.connected(0, 1)
    let (admitted, all) = try filledRoom(leaving: FleetRoom.last)
    let rule = try #require(bench.state(.rule(Statement.Rule(key: "a"))))
    let named = try end(admitted, naming: all[20])
    receive([rule] + all.dropFirst(FleetRoom.littleSaid) + [named], on: id)
    #expect(holds(1, [rule]) && !holds(1, [all[20]]) && !holds(1, [named]))
  }
}
