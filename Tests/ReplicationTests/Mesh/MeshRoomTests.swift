import Testing

@testable import Replication
@testable import Simulation

/// Node 0's user makes a room. Node 1 is another user's, node 2 a third one's; each knows what it is told.
@Suite("Mesh: statements of rooms") struct MeshRoomTests {
  private let bench: MeshBench
  private let room: RoomBook

  init() throws {
    bench = try MeshBench([0, 1, 2], users: ["ana", "ben", "eva"])
    bench.state([.rule(Statement.Rule(key: Statement.Rule.Key.conversation))])
    room = try RoomBook(bench, creator: 0)
  }

  private func level(_ slot: Int, at other: Int? = nil) -> AccessLevel {
    bench.nodes[other ?? slot].mesh.authority.level(of: bench.nodes[slot].key.publicKey, in: room.name)
  }

  private func held(_ slot: Int) -> Set<Digest> {
    Set(bench.nodes[slot].mesh.authority.statements(of: room.name.text).map(\.id))
  }

  private func roomMessages(_ from: Int, _ to: Int, since start: Int = 0) -> [Message] {
    bench.messages(from: from, to: to, since: start).filter { message in
      switch message {
      case .statementSet(let set): set.scope == room.name.text
      case .statements(_, let scope): scope == room.name.text
      default: false
      }
    }
  }

  @Test("who is invited while he is connected hears of the room at once, and nobody else does")
  func invitedWhileConnected() throws {
    _ = (bench.connected(0, 1), bench.connected(0, 2), bench.connected(1, 2))
    try room.create()
    try room.invite("ben", by: 0)
    bench.run()
    #expect(held(1) == held(0) && held(0).count == 2 && level(1) == .write)
    #expect(held(2).isEmpty && roomMessages(0, 2).isEmpty && roomMessages(1, 2).isEmpty)
  }

  @Test("who was away learns of the room when they meet, whoever dials", arguments: [(0, 1), (1, 0)])
  func learntWhenMet(dialer: Int, listener: Int) throws {
    try room.create()
    try room.invite("ben", by: 0)
    _ = bench.connected(dialer, listener)
    #expect(held(1) == held(0) && level(1) == .write)
  }

  @Test(
    "a room in which nobody has written is compared where both have taken all that they may of a device, if he has not made it",
    arguments: [0, 2])
  func besidesSpent(spent slot: Int) throws {
    let spent = SpentDevices(places: [bench.nodes[slot].key.publicKey], branches: [])
    try room.create()
    try room.invite("ben", by: 0)
    let id = bench.connected(0, 1)
    for end in 0...1 {
      _ = bench.nodes[end].mesh.sessions[id]?.spared.tell(spent)
      _ = bench.nodes[end].mesh.sessions[id]?.spared.hear(spent)
      let mesh = bench.nodes[end].mesh
      #expect(mesh.sessions[id]?.isCompared(mesh.ledger.id(of: room.name), mesh.ledger) == (slot != 0))
    }
  }

  @Test("what was written in the room follows its statements")
  func contentFollows() throws {
    try room.create()
    try room.invite("ben", by: 0)
    bench.name = room.name
    try bench.nodes[0].write(1)
    _ = bench.connected(1, 0)
    bench.pass(1_000)
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 1)
    #expect(bench.nodes.allSatisfy { $0.brokenRules.isEmpty })
  }

  @Test(
    "a room that both hold alike costs no word when they meet again, with work in it or without",
    arguments: [true, false])
  func alikeCostsNothing(hasWork: Bool) throws {
    try room.create()
    try room.invite("ben", by: 0)
    bench.name = room.name
    if hasWork { try bench.nodes[0].write(1) }
    let id = bench.connected(0, 1)
    bench.pass(1_000)
    try #require(bench.nodes[1].holds(bench.nodes[0]) == (hasWork ? 1 : 0))
    bench.cut(id)
    let start = bench.transcript.count
    _ = bench.connected(0, 1)
    #expect(bench.said(from: 0, to: 1, since: start) == ["hello", "summary"])
    #expect(bench.said(from: 1, to: 0, since: start) == ["hello", "summary"])
  }

  @Test("each learns what the other said in the room while they were apart")
  func bothWays() throws {
    try room.create()
    try room.invite("ben", by: 0)
    bench.cut(bench.connected(0, 1))
    try room.invite("eva", by: 0)
    try room.invite("dora", by: 1)
    let start = bench.transcript.count
    _ = bench.connected(0, 1)
    #expect(held(0) == held(1) && held(0).count == 4)
    let told = (roomMessages(0, 1, since: start) + roomMessages(1, 0, since: start)).map(statementCount).reduce(0, +)
    #expect(told == 2, "nothing is said twice")
  }

  private func statementCount(_ message: Message) -> Int {
    if case .statements(let list, _) = message { list.count } else { 0 }
  }

  @Test("who is removed hears of it, connected or not, and of nothing that is said later", arguments: [true, false])
  func removed(isConnected: Bool) throws {
    try room.create()
    try room.invite("ben", by: 0)
    let id = bench.connected(0, 1)
    if !isConnected { bench.cut(id) }
    try room.remove("ben", by: 0)
    try room.invite("eva", by: 0)
    bench.run()
    if !isConnected { _ = bench.connected(0, 1) }
    bench.pass(60_000)
    #expect(level(1) == .none && held(1).count == 3 && held(0).count == 4)
  }

  @Test(
    "who is removed hears of it from a member, too, of whom he does not know that he is one", arguments: [true, false])
  func removedByStranger(isDialer: Bool) throws {
    try room.create()
    try room.invite("ben", by: 0)
    bench.cut(bench.connected(0, 1))
    try room.invite("eva", by: 0)
    try room.remove("ben", by: 0)
    // Nobody sees the creator again.
    bench.cut(bench.connected(0, 2))
    try #require(level(2) == .write && level(2, at: 1) == .none)
    let id = isDialer ? bench.connected(1, 2) : bench.connected(2, 1)
    bench.pass(1_000)
    #expect(level(1) == .none)
    #expect(held(2).subtracting(held(1)).isEmpty, "a line has all that it goes on from")
    // Alike by now, it costs the ends of the lines when they meet again, and nothing else.
    bench.cut(id)
    let start = bench.transcript.count
    _ = bench.connected(1, 2)
    #expect(roomMessages(2, 1, since: start).count == 1 && roomMessages(1, 2, since: start).isEmpty)
  }

  @Test("he hears of it on a standing connection where the member hears of both at once")
  func removedByStrangerWhileConnected() throws {
    try room.create()
    try room.invite("ben", by: 0)
    bench.cut(bench.connected(0, 1))
    let id = bench.connected(1, 2)
    try room.invite("eva", by: 0)
    try room.remove("ben", by: 0)
    _ = bench.connected(0, 2)
    bench.pass(1_000)
    #expect(level(2) == .write && level(1) == .none && bench.nodes[1].mesh.sessions[id] != nil)
  }

  @Test("who is removed and does not know it yet still brings what he said before")
  func removedBrings() throws {
    try room.create()
    try room.invite("ben", by: 0)
    bench.cut(bench.connected(0, 1))
    try room.remove("ben", by: 0)
    try room.invite("dora", by: 1)
    _ = bench.connected(1, 0)
    bench.pass(60_000)
    #expect(held(0).count == 4 && level(1, at: 1) == .none)
  }

  @Test("who leaves is taken for one who has left, connected or not", arguments: [true, false])
  func left(isConnected: Bool) throws {
    try room.create()
    try room.invite("ben", by: 0)
    let id = bench.connected(0, 1)
    if !isConnected { bench.cut(id) }
    try room.leave(by: 1)
    bench.run()
    if !isConnected { _ = bench.connected(0, 1) }
    bench.pass(60_000)
    #expect(level(1) == .none && level(1, at: 0) == .none)
  }

  @Test("the other devices of a user hear that one of them has left", arguments: [true, false])
  func leftElsewhere(isConnected: Bool) throws {
    let bench = try MeshBench([0, 1, 2], users: ["ana", "ben", "ben"])
    bench.state([.rule(Statement.Rule(key: Statement.Rule.Key.conversation))])
    let room = try RoomBook(bench, creator: 0)
    try room.create()
    try room.invite("ben", by: 0)
    let (first, second) = (bench.connected(0, 1), bench.connected(0, 2))
    if !isConnected { bench.cut(second) }
    try room.leave(by: 1)
    bench.run()
    if !isConnected { _ = bench.connected(2, 0) }
    bench.pass(60_000)
    for node in bench.nodes {
      #expect(node.mesh.authority.level(of: bench.nodes[2].key.publicKey, in: room.name) == .none)
    }
    _ = first
  }

  @Test("who came in through somebody who is removed with all that he said hears of it", arguments: [true, false])
  func removedThrough(isConnected: Bool) throws {
    try room.create()
    try room.invite("ben", by: 0)
    bench.cut(bench.connected(0, 1))
    try room.invite("eva", by: 1)
    bench.cut(bench.connected(1, 0))
    let id = bench.connected(0, 2)
    #expect(level(2) == .write)
    if !isConnected { bench.cut(id) }
    try room.remove("ben", by: 0)
    bench.run()
    if !isConnected { _ = bench.connected(0, 2) }
    bench.pass(60_000)
    #expect(level(2, at: 0) == .none && level(2) == .none)
  }

  @Test("a relay that a grant lets carry rooms passes on what it may not read")
  func relayed() throws {
    let relay = Statement.Subject.device(bench.nodes[2].key.publicKey)
    bench.state([.grant(Statement.Grant(subject: relay, level: .carry, pattern: "conversation=*"))])
    try room.create()
    try room.invite("ben", by: 0)
    bench.cut(bench.connected(0, 2))
    #expect(held(2) == held(0))
    _ = bench.connected(2, 1)
    #expect(held(1) == held(0) && level(1) == .write)
  }

  @Test("nothing of a room is kept by who does not want it, nor of a scope that is no room's")
  func unwanted() throws {
    let other = try MeshBench([0, 1], wants: ["*", "agency=*"], users: ["ana", "ben"])
    other.state([.rule(Statement.Rule(key: Statement.Rule.Key.conversation))])
    let room = try RoomBook(other, creator: 0)
    try room.create()
    try room.invite("ben", by: 0)
    let id = other.connected(0, 1)
    let said = other.nodes[0].mesh.authority.statements(of: room.name.text).map(\.encoded)
    for scope in [room.name.text, "conversation=1"] {
      other.nodes[1].deliver(.received(id, .statements(said, of: scope)))
      other.nodes[1].deliver(.received(id, .statementSet(StatementSet(scope: scope, .tips(listed: .max, [])))))
    }
    #expect(other.nodes[1].mesh.authority.statements(of: room.name.text).isEmpty)
    // Nor is it told there what is said later.
    let start = other.transcript.count
    try room.invite("eva", by: 0)
    other.pass(60_000)
    #expect(!other.said(from: 0, to: 1, since: start).contains { $0.hasPrefix("statement") })
    #expect(other.nodes[1].brokenRules.isEmpty && other.nodes[1].mesh.sessions[id] != nil)
  }

  @Test("who may not carry the room gets nothing for asking")
  func askedByStranger() throws {
    try room.create()
    let id = bench.connected(0, 2)
    let start = bench.transcript.count
    let creator = IssuerTips(issuer: bench.nodes[0].key.publicKey, tips: [])
    for step in [.wanted([creator]), .tips(listed: .max, []), .wanted([creator])] as [StatementSet.Step] {
      bench.post(.statementSet(StatementSet(scope: room.name.text, step)), from: 2, on: id)
    }
    bench.run()
    #expect(roomMessages(0, 2, since: start).isEmpty && bench.nodes[0].mesh.sessions[id] != nil)
  }

  @Test("what the fleet is told does not wait behind statements of rooms, since runs that stand on it do not")
  func fleetGoesAhead() throws {
    try room.create()
    try room.invite("ben", by: 0)
    let id = bench.connected(0, 1)
    bench.nodes[0].mesh.pause(id)
    try room.invite("eva", by: 0)
    try #require(bench.nodes[0].mesh.sessions[id]?.outbox.scopes == [room.name.text])
    let start = bench.transcript.count
    let rule = try #require(bench.state(.rule(Statement.Rule(key: "agency"))))
    bench.nodes[0].deliver(.statementsStored([rule]))
    #expect(bench.messages(from: 0, to: 1, since: start) == [.statements([rule.encoded])])
  }

  @Test("who may carry the room is told once what it asks for, where it was told of it, and answered once")
  func askedAgain() throws {
    try room.create()
    try room.invite("ben", by: 0)
    let id = bench.connected(0, 1)
    let start = bench.transcript.count
    let creator = IssuerTips(issuer: bench.nodes[0].key.publicKey, tips: [])
    func ask(_ step: StatementSet.Step) {
      bench.nodes[0].receive(.statementSet(StatementSet(scope: room.name.text, step)), on: id)
    }
    // It was told of nothing that it lacks.
    ask(.wanted([creator]))
    #expect(roomMessages(0, 1, since: start).isEmpty)
    for _ in 0..<2 { ask(.tips(listed: .max, [])) }
    #expect(roomMessages(0, 1, since: start).count == 1)
    for _ in 0..<2 { ask(.wanted([creator])) }
    #expect(roomMessages(0, 1, since: start).map(statementCount).reduce(0, +) == 2)
  }

  @Test("more than a device may have said of rooms is passed over, and not asked for again")
  func allowance() throws {
    try room.create()
    try room.invite("ben", by: 0)
    _ = bench.connected(0, 1)
    let said = try #require(bench.nodes[1].mesh.authority.statements(of: room.name.text).first)
    for _ in 0..<RoomAllowance.statementsPerDevice - 2 { bench.nodes[1].mesh.ledger.roomAllowance.add(said) }
    let start = bench.transcript.count
    try room.invite("eva", by: 0)
    Invariant.unheard { bench.pass(120_000) }
    #expect(held(1).count == 2 && held(0).count == 3)
    #expect(roomMessages(1, 0, since: start).isEmpty)
    #expect(roomMessages(0, 1, since: start).map(statementCount).reduce(0, +) == 1)
  }

  @Test("what a peer says several times in a message is counted once")
  func saidSeveralTimes() throws {
    try room.create()
    let id = bench.connected(0, 1)
    let before = bench.nodes[1].mesh.ledger.roomAllowance.count
    try room.invite("ben", by: 0)
    let said = bench.nodes[0].mesh.authority.statements(of: room.name.text).map(\.encoded)
    bench.loseMessages()
    bench.nodes[1].receive(.statements(said + said + said, of: room.name.text), on: id)
    #expect(held(1) == held(0))
    #expect(bench.nodes[1].mesh.ledger.roomAllowance.count == before + said.count)
  }
}
