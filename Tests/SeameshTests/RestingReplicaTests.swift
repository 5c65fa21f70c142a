import Identity
import Replication
import Testing

@testable import Engine
@testable import Seamesh

/// A device that writes by turns by the rights of two memberships, over stops and starts (rule C20).
@Suite(.serialized) struct RestingReplicaTests {
  private let rooms: [PartitionName]
  private let fleet: TestFleet

  /// Officers alone write in one room and masters in the other; the second node is both, and has written in both.
  init() throws {
    rooms = try [PartitionName("room=1"), PartitionName("room=2")]
    fleet = try TestFleet(2)
    let node = fleet.nodes[1]
    var said = [try fleet.grant(.carry)]
    for (role, room) in [("officer", rooms[0]), ("master", rooms[1])] as [(Text, PartitionName)] {
      said.append(
        try fleet.statement(.grant(Statement.Grant(subject: .role(role), level: .write, pattern: room.text))))
    }
    said.append(
      try fleet.statement(
        .membership(
          Statement.Membership(
            device: node.files.deviceKey.publicKey, user: "user", label: "tablet", role: "master",
            profile: ValueMap()))))
    for statement in said { try node.say(statement) }
    for room in rooms { try write(in: room, node) }
  }

  private func write(in room: PartitionName, _ node: Node) throws {
    // A write that changes nothing would be under no id.
    let count = try node.status().changes
    try node.put(room, "reports", "report", body(["n": .int(Int64(count))]))
    try #require(try node.status().changes == count + 1)
  }

  private func start(_ path: String) throws -> Node {
    try Node.start(directory: path, configuration: fleet.configuration([]) { _ in })
  }

  private func replicas(_ node: Node) throws -> Set<ReplicaID> {
    try node.engine.ask { engine in
      Set(engine.state.mesh.authority.replicas(of: engine.state.identity.device))
    }
  }

  @Test("ten starts that write now in one room and now in the other cost no other replica id") func byTurns() throws {
    let before = try replicas(fleet.nodes[1])
    #expect(before.count == 2)
    for turn in 0..<10 {
      try fleet.restart(1, peers: [])
      try write(in: rooms[turn % 2], fleet.nodes[1])
    }
    #expect(try replicas(fleet.nodes[1]) == before)
  }

  @Test("the file beside the store names the id that rests, beside the present one alone") func noted() throws {
    let node = fleet.nodes[1]
    let (present, left, beside, elsewhere) = try node.engine.ask { engine in
      Result {
        let (own, mark) = (engine.state.own, engine.state.mark)
        let (present, left) = (try #require(own.replica), try #require(own.resting.first?.noted))
        return (
          present, left, try mark.resting(beside: present), try mark.resting(beside: left.incarnation)
        )
      }.mapError { $0 as any Error }
    }.get()
    #expect(try Set([present.id, left.incarnation.id]) == replicas(node))
    #expect(beside == [left] && elsewhere.isEmpty)
  }

  @Test("nor does a kill, as it costs no other for the present id") func killed() throws {
    let (node, path) = (fleet.nodes[1], try fleet.directory())
    let before = try replicas(node)
    try NodeImage(of: node).write(to: path, namesInode: true)
    let killed = try start(path)
    defer { killed.stop() }
    for room in rooms { try write(in: room, killed) }
    #expect(try replicas(killed) == before)
  }

  @Test(
    "what was put back from before goes on under neither id: the database alone, or all of the directory",
    arguments: [false, true])
  func putBack(isWhole: Bool) throws {
    let (path, copy) = (fleet.path(of: 1), try fleet.directory())
    let known = try replicas(fleet.nodes[1])
    fleet.nodes[1].stop()
    let older = try NodeImage(of: path)
    try fleet.restart(1, peers: [])
    for room in rooms { try write(in: room, fleet.nodes[1]) }
    fleet.nodes[1].stop()
    try (isWhole ? older : NodeImage(of: path)).write(to: copy)
    if !isWhole { try older.write(to: copy, names: ["seamesh.db"], namesInode: true) }
    let node = try start(copy)
    defer { node.stop() }
    #expect(try node.engine.ask { $0.state.own.resting.isEmpty })
    try write(in: rooms[0], node)
    let present = try node.engine.ask { $0.state.own.replica?.id }
    #expect(try !known.contains(#require(present)))
  }
}
