import Testing
import Wire

@testable import Replication
@testable import Simulation

@Suite("Mesh: what rooms cost") struct MeshRoomCostTests {
  private let bench: MeshBench

  init() throws {
    bench = try MeshBench([0], users: ["ana"])
    bench.state([.rule(Statement.Rule(key: Statement.Rule.Key.conversation))])
  }

  /// Statements of so many rooms of node 0's user.
  private func statements(ofRooms count: Int, each said: Int) throws -> [Statement] {
    let node = bench.nodes[0]
    let by = try #require(node.membership)
    return try (0..<count).flatMap { number in
      let nonce = StatementNotes.Entry(key: StatementNotes.Key.roomNonce, content: Text("\(number)").bytes)
      let unsigned = try StatementCodec.unsigned(
        fleet: bench.fleet.id, issuer: node.key.publicKey, body: .room(Statement.Room(by: by)),
        notes: StatementNotes([nonce]))
      var last = try StatementCodec.assemble(
        unsigned: unsigned, signature: node.key.sign(unsigned), FakeCryptography.hash)
      let scope = PartitionName.room(createdBy: last.id)
      return try [last]
        + (1..<said).map { user in
          let invitation = Statement.Invitation(by: by, user: Text("user \(user)"), seen: [])
          last = try #require(node.key.statement(bench.fleet.id, .invitation(invitation), after: last, scope: scope))
          return last
        }
    }
  }

  /// What the core of a node takes to begin with these statements, beside their evaluation.
  private func secondsOfStart(_ statements: [Statement]) -> Double {
    let before = bench.nodes[0].mesh
    let authority = before.authority.adding(statements)
    return (0..<3).map { _ in
      let start = threadSeconds()
      let mesh = Mesh(
        local: before.local, authority: authority, statements: Array(authority.allStatements), partitions: [],
        interest: before.interest, cryptography: before.cryptography)
      let seconds = threadSeconds() - start
      #expect(mesh.ledger.roomAllowance.count == statements.count)
      return seconds
    }.min() ?? 0
  }

  @Test("a start with six times as many rooms takes some six times as long, and not rooms times statements")
  func start() throws {
    let (few, many) = (try statements(ofRooms: 60, each: 6), try statements(ofRooms: 360, each: 6))
    let (one, six) = (secondsOfStart(few), secondsOfStart(many))
    #expect(six < one * 14, "\(one) s, then \(six) s")
  }
}
