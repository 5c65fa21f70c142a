import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: how much is kept of the statements of rooms") struct RoomAllowanceTests {
  /// By the device with this number, in the room with that one.
  private func statement(_ device: Int, _ room: Int, byteCount: Int = 1) -> Statement {
    Statement(
      fleet: FleetID(.zero), issuer: PublicKey(Digest(words: (UInt64(device), 0, 0, 0))), sequence: 1, previous: nil,
      scope: Text("conversation=\(room)"), body: .leave(Statement.Leave(by: .zero, user: "ana", seen: [])),
      signature: Signature(first: .zero, second: .zero), id: .zero, encoded: [UInt8](repeating: 0, count: byteCount))
  }

  /// How many of these are taken.
  private func taken(_ allowance: inout RoomAllowance, _ count: Int = 1, _ next: (Int) -> Statement) -> Int {
    (0..<count).count { allowance.take(next($0)) }
  }

  @Test("of one device so many are taken over all rooms, and others' all the same")
  func device() {
    var allowance = RoomAllowance()
    let limit = RoomAllowance.statementsPerDevice
    let own = taken(&allowance, limit + 9) { statement(1, $0) }
    #expect(own == limit && allowance.isSpent(by: statement(1, 0).issuer))
    let others = taken(&allowance) { _ in statement(2, 0) }
    #expect(others == 1 && !allowance.isSpent(by: statement(2, 0).issuer) && allowance.count == limit + 1)
  }

  @Test("of one device so many bytes are taken, the last statement reaching beyond them")
  func bytes() {
    var allowance = RoomAllowance()
    let byteCount = RoomAllowance.bytesPerDevice / 2 - 1
    let own = taken(&allowance, 9) { statement(1, $0, byteCount: byteCount) }
    let others = taken(&allowance) { statement(2, $0, byteCount: byteCount) }
    #expect(own == 3 && others == 1)
  }

  @Test("in one room so many are taken, and in others all the same")
  func room() {
    var allowance = RoomAllowance()
    let limit = RoomAllowance.statementsPerRoom
    let here = taken(&allowance, limit + 9) { statement($0 / 1_000, 1) }
    let elsewhere = taken(&allowance) { _ in statement(100, 2) }
    #expect(here == limit && elsewhere == 1)
  }

  @Test("of all devices in all rooms so many are taken and no more")
  func all() {
    var allowance = RoomAllowance()
    let limit = RoomAllowance.statements
    let taken = taken(&allowance, limit + 9) { statement($0 / 1_000, $0 / 10_000) }
    #expect(taken == limit && allowance.count == limit)
  }

  @Test("what falls out of the set leaves its place to others")
  func removed() {
    var allowance = RoomAllowance()
    let limit = RoomAllowance.statementsPerDevice
    for device in 1...4 { _ = taken(&allowance, limit) { _ in statement(device, 1) } }
    let beyond = taken(&allowance) { _ in statement(1, 2) } + taken(&allowance) { _ in statement(5, 1) }
    #expect(beyond == 0 && allowance.count == 4 * limit)
    allowance.remove(statement(1, 1))
    allowance.remove(statement(2, 1))
    // There is a place for the device in any room, and in the room for any device.
    let again = [statement(1, 2), statement(5, 1), statement(2, 1)].map { next in taken(&allowance) { _ in next } }
    #expect(again == [1, 1, 1] && allowance.count == 4 * limit + 1)
    let more = [statement(1, 3), statement(6, 1), statement(2, 3)].map { next in taken(&allowance) { _ in next } }
    #expect(more == [0, 0, 0])
  }

  @Test("what falls out of rooms because their author says something else there leaves its place to others of his")
  func saidOtherwise() throws {
    let bench = try MeshBench([0, 1])
    let (node, id) = (bench.nodes[0], bench.connected(0, 1))
    let (key, by) = (bench.nodes[1].key, try #require(bench.nodes[1].membership))
    let scopes = (0..<4).map { PartitionName.room(createdBy: Digest(words: ($0, 0, 0, 9))) }
    func say(_ count: Int, in scope: Text, _ user: String) throws {
      var said: [Statement] = []
      for number in 0..<count {
        let invitation = Statement.Invitation(by: by, user: Text("\(user)\(number)"), seen: [])
        said.append(
          try #require(key.statement(bench.fleet.id, .invitation(invitation), after: said.last, scope: scope)))
      }
      node.receive(.statements(said.map(\.encoded), of: scope), on: id)
    }
    func held(_ scope: Text) -> Int { node.mesh.authority.statements(of: scope).count }
    // Three rooms take what one device may say in each, and leave room in a fourth for as much.
    for scope in scopes.dropLast() { try say(AdmittedStatements.limit, in: scope, "one") }
    for scope in scopes.prefix(2) { try say(AdmittedStatements.limit / 2, in: scope, "two") }
    try #require(scopes.dropLast().allSatisfy { held($0) == AdmittedStatements.limit })
    try say(AdmittedStatements.limit, in: scopes[3], "one")
    #expect(held(scopes[3]) == RoomAllowance.statementsPerDevice - 3 * AdmittedStatements.limit)
  }
}
