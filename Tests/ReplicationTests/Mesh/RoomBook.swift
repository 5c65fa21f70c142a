import Testing

@testable import Replication
@testable import Simulation

/// Signs what users say in one room.
final class RoomBook {
  private let bench: MeshBench
  private let creation: Statement
  private var last: [Int: Statement] = [:]
  private var invitations: [Digest] = []
  private var removals: [Digest] = []
  let name: PartitionName

  init(_ bench: MeshBench, creator slot: Int) throws {
    self.bench = bench
    let by = try #require(bench.nodes[slot].membership)
    creation = try #require(bench.nodes[slot].key.statement(bench.fleet.id, .room(Statement.Room(by: by))))
    name = try PartitionName(PartitionName.room(createdBy: creation.id))
    last[slot] = creation
  }

  func create() throws {
    let slot = try #require(last.keys.first)
    bench.nodes[slot].deliver(.statementsStored([creation]))
  }

  func invite(_ user: Text, by slot: Int) throws {
    let by = try #require(bench.nodes[slot].membership)
    invitations.append(try say(.invitation(Statement.Invitation(by: by, user: user, seen: removals)), slot))
  }

  func remove(_ user: Text, by slot: Int) throws {
    let by = try #require(bench.nodes[slot].membership)
    removals.append(
      try say(
        .removal(Statement.Removal(by: by, user: user, seen: invitations, listing: Statement.Listing())), slot))
  }

  func leave(by slot: Int) throws {
    let node = bench.nodes[slot]
    let (by, user) = (
      try #require(node.membership), try #require(node.mesh.authority.member(of: node.key.publicKey)).user
    )
    removals.append(try say(.leave(Statement.Leave(by: by, user: user, seen: invitations)), slot))
  }

  /// An end of the node's membership: what its device said counts up to now, in the fleet and in this room.
  func end(of slot: Int) throws -> Statement.Body {
    let node = bench.nodes[slot]
    let (membership, said) = (try #require(node.membership), try #require(last[slot]))
    let fleet = try #require(node.mesh.authority.lastStatement(of: node.key.publicKey))
    func tips(_ scope: Text, _ sequence: UInt64, _ id: Digest) -> Statement.ScopeTips {
      Statement.ScopeTips(scope: scope, tips: [Statement.Tip(issuer: said.issuer, sequence: sequence, id: id)])
    }
    let listing = Statement.Listing(
      tips: [tips("", fleet.sequence, fleet.id), tips(name.text, said.sequence, said.id)])
    return .end(Statement.End(reason: .retire, target: .membership(membership), listing: listing))
  }

  private func say(_ body: Statement.Body, _ slot: Int) throws -> Digest {
    let node = bench.nodes[slot]
    let statement = try #require(
      node.key.statement(bench.fleet.id, body, after: last[slot], scope: name.text))
    last[slot] = statement
    node.deliver(.statementsStored([statement]))
    return statement.id
  }
}
