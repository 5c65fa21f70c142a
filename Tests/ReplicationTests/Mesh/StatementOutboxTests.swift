import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: statements that wait to be said") struct StatementOutboxTests {
  /// The first byte of each statement that is said at once, by message; "end" where that is said behind them.
  private func said(_ outbox: inout StatementOutbox, _ byteCount: Int) -> [String] {
    let window = outbox.takeWindow(byteCount).map { message in
      guard case .statements(let list, let scope) = message else { return "?" }
      return "\(scope.string)\(list.map { $0[0] })"
    }
    return window + (outbox.takeEnd() == nil ? [] : ["end"])
  }

  private func filled() -> StatementOutbox {
    var outbox = StatementOutbox()
    outbox.put([[1], [2]])
    outbox.put([[3]], of: "a")
    outbox.put([[4], [5]], of: "b")
    outbox.put([[6]], of: "a")
    outbox.put([[7]], then: .complete)
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
}
