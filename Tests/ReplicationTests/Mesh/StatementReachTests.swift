import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: how far new statements reach") struct StatementReachTests {
  private let bench: MeshBench
  private let room: RoomBook

  init() throws {
    bench = try MeshBench([0, 1], users: ["ana", "ben"])
    bench.state([.rule(Statement.Rule(key: Statement.Rule.Key.conversation))])
    room = try RoomBook(bench, creator: 0)
  }

  /// As if streams of so many other partitions were open on the session.
  private func open(_ count: Int, on session: SessionID) throws {
    for number in 0..<count {
      let name = try PartitionName(Text("shared=\(number)"))
      bench.nodes[0].mesh.sessions[session]?.live?.streams[bench.fleet.partition(name)] = PeerStream(
        name, number: 1, now: bench.now)
    }
  }

  @Test("what is said in a room has no other partition's streams looked at")
  func streams() throws {
    let session = bench.connected(0, 1)
    try open(40, on: session)
    try room.create()
    #expect(bench.nodes[0].mesh.authority.statements(of: room.name.text).count == 1)
    #expect(bench.nodes[0].mesh.sessions[session]?.live?.streams.count == 40)
    // Each look asks what the peer and this node may do there.
    #expect(bench.nodes[0].mesh.authority.levels.count <= 4)
  }

  @Test("what is said in a room moves its chains alone")
  func chains() throws {
    let node = bench.nodes[0]
    try room.create()
    for number in 0..<6 { _ = node.mesh.ledger.begin(try PartitionName(Text("shared=\(number)"))) }
    _ = node.mesh.ledger.begin(room.name)
    let said = node.mesh.authority.statements(of: room.name.text)
    let before = node.mesh.authority
    let reach = try #require(StatementReach(said, before))
    var ledger = node.mesh.ledger
    #expect(ledger.partitions.count == 7)
    #expect(reach.concerned == nil)
    #expect(ledger.takeOver(reach) == [ledger.id(of: room.name)])
  }

  @Test("who is removed from a room is cut off from it at once, and from nothing else")
  func removed() throws {
    let session = bench.connected(0, 1)
    try room.create()
    try room.invite("ben", by: 0)
    bench.name = room.name
    try bench.nodes[0].write(1)
    bench.run()
    try open(3, on: session)
    let id = bench.partition
    let before = bench.nodes[0].mesh.sessions[session]?.live?.streams.keys ?? []
    #expect(before.contains(id))
    try room.remove("ben", by: 0)
    let after = bench.nodes[0].mesh.sessions[session]?.live?.streams.keys ?? []
    #expect(Set(before).subtracting(after) == [id])
  }
}
