import Testing

@testable import Replication
@testable import Simulation

/// Nodes 0 and 3 are the creator's, nodes 1 and 2 those of two members. What node 3 said in the room counts up to what the end of
/// its membership lists, for whoever knows that.
@Suite("Mesh: rooms and ended devices") struct MeshRoomEndTests {
  private let bench: MeshBench
  private let room: RoomBook

  init() throws {
    bench = try MeshBench([0, 1, 2, 3], users: ["ana", "ben", "eva", "ana"])
    bench.state([.rule(Statement.Rule(key: Statement.Rule.Key.conversation))])
    room = try RoomBook(bench, creator: 0)
    try room.create()
    try room.invite("ben", by: 0)
  }

  private func level(_ slot: Int, at other: Int? = nil) -> AccessLevel {
    bench.nodes[other ?? slot].mesh.authority.level(of: bench.nodes[slot].key.publicKey, in: room.name)
  }

  private func held(_ slot: Int) -> Set<Digest> {
    Set(bench.nodes[slot].mesh.authority.statements(of: room.name.text).map(\.id))
  }

  private func meet(_ first: Int, _ second: Int) { bench.cut(bench.connected(first, second)) }

  enum Meeting: CaseIterable { case later, justBefore, longBefore }

  @Test(
    "who is removed hears what the remover said later where an end lists that, since the removal counts only with it",
    arguments: [true, false], Meeting.allCases)
  func removedBeforeEnd(isMemberKnown: Bool, meeting: Meeting) throws {
    if isMemberKnown { try room.invite("eva", by: 0) }
    for member in [1, 3] { meet(0, member) }
    try room.remove("ben", by: 3)
    meet(3, 1)
    try room.invite(isMemberKnown ? "dora" : "eva", by: 3)
    meet(3, 0)
    meet(0, 2)
    // Nobody sees the creator again.
    if meeting != .later { _ = bench.connected(1, 2) }
    if meeting == .longBefore { bench.pass(60_000) }
    try #require(level(1) == .none && level(2) == .write && held(1).count < held(2).count)
    bench.state([try room.end(of: 3)])
    try #require(level(1) == .write && level(1, at: 2) == .none)
    if meeting == .later { _ = bench.connected(1, 2) }
    bench.run()
    // Of one room a session answers once in each comparison.
    if meeting == .justBefore { bench.pass(60_000) }
    #expect(level(1) == .none && held(1) == held(2))
    #expect(bench.nodes.allSatisfy { $0.brokenRules.isEmpty })
  }

  @Test("who is removed hears nothing of what is said behind all that an end lists")
  func unlisted() throws {
    try room.invite("eva", by: 0)
    for member in [1, 3] { meet(0, member) }
    try room.remove("ben", by: 3)
    let end = try room.end(of: 3)
    try room.invite("dora", by: 3)
    for member in [0, 1] { meet(3, member) }
    meet(0, 2)
    bench.state([end])
    try #require(held(2).count == 5)
    _ = bench.connected(1, 2)
    bench.pass(60_000)
    #expect(level(1) == .none && held(1).count == 4)
  }
}
