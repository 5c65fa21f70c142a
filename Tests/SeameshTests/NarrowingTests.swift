import Foundation
import Identity
import Replication
import Storage
import Testing

@testable import Seamesh

/// What own and foreign changes become where a grant falls and comes back.
@Suite(.serialized) struct NarrowingTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("room=1") }

  private func grant(
    _ level: AccessLevel, ends: [Statement.ChainEnd] = [], on fleet: TestFleet
  ) throws -> Statement {
    let key = try KeyFile.fleetRoot.loadKey(path: fleet.path(of: 0) + "/" + KeyFile.fleetRoot.rawValue)
    let count = try fleet.nodes[0].onEngine { $0.mesh.authority.count }
    let content = Statement.Grant(subject: .everyone, level: level, pattern: "*", ends: ends)
    let fleetID = fleet.nodes[0].endpoints.fleet
    return try StatementSigner(fleet: fleetID, key: key).sign(.grant(content), sequence: UInt64(count) + 1)
  }

  private func fill(_ fleet: TestFleet, _ ids: [Text]) throws {
    for id in ids { try fleet.nodes[0].put(partition, "c", id, body(["n": .int(1)])) }
  }

  /// The end of node 0's chain at a change of its own.
  private func end(at sequence: UInt64, on fleet: TestFleet) throws -> Statement.ChainEnd {
    let id = partition.id(fleet: fleet.nodes[0].endpoints.fleet, hash: SHA256.hash)
    let found = try fleet.nodes[0].onEngine { engine -> (ReplicaID, TipHash)? in
      guard let replica = engine.own.replica?.id,
        let runs = try? LogReader(store: engine.store, fleet: engine.files.fleet, mesh: engine.mesh)
          .summaries(id, replica, from: 1),
        let run = runs.first(where: { $0.first <= sequence && $0.last >= sequence })
      else { return nil }
      return (replica, run.hashes[Int(sequence - run.first)].tip)
    }
    let (replica, tip) = try #require(found)
    return Statement.ChainEnd(
      chain: .changes(partition: partition.text, replica: replica),
      position: ChainPosition(sequence: sequence, tip: tip))
  }

  private func say(_ statement: Statement, on fleet: TestFleet) throws {
    try fleet.nodes[0].onEngine { engine in
      engine.addStatements([statement])
      engine.commit()
    }
  }

  private func shows(_ id: Text, _ fleet: TestFleet) throws -> Bool {
    try fleet.nodes[0].read(partition, "c", id: .string(id)) != nil
  }

  @Test("after a restart an own chain goes on at its last change, also where that did not count")
  func ownChainGoesOn() throws {
    let fleet = try TestFleet(1)
    try fill(fleet, ["a", "b", "c"])
    try say(try grant(.read, ends: [try end(at: 2, on: fleet)], on: fleet), on: fleet)
    #expect(try !shows("c", fleet))
    try fleet.restart(0)
    try say(try grant(.write, on: fleet), on: fleet)
    #expect(try shows("c", fleet))
    try fill(fleet, ["d"])
    #expect(try shows("d", fleet))
    let accepted = try fleet.nodes[0].partitions(withDigests: false).first { $0.name == "room=1" }?.vector
    #expect(accepted?.map(\.sequence) == [4])
  }

  @Test("a node whose own last run does not read starts all the same, and writes under a new replica")
  func ownRunDoesNotRead() throws {
    let fleet = try TestFleet(1)
    try fill(fleet, ["a"])
    let before = try fleet.nodes[0].status().replica
    try fleet.nodes[0].onEngine { engine in
      engine.attempt(()) { try engine.store.database.execute("UPDATE runs SET body=x'00'") }
    }
    try fleet.restart(0)
    try fill(fleet, ["b"])
    #expect(try shows("a", fleet) && shows("b", fleet))
    #expect(try fleet.nodes[0].status().replica != before)
  }

  @Test("a statement and the documents that it takes away reach the disk together or not at all")
  func statementWithDocuments() throws {
    let fleet = try TestFleet(1)
    try fill(fleet, ["a", "b", "c"])
    let narrowed = try grant(.read, ends: [try end(at: 2, on: fleet)], on: fleet)
    try fleet.nodes[0].onEngine { engine in
      engine.attempt(()) {
        try engine.store.database.execute(
          "CREATE TEMP TRIGGER refuse BEFORE DELETE ON documents BEGIN SELECT RAISE(ABORT, 'no room'); END")
      }
    }
    try say(narrowed, on: fleet)
    try fleet.restart(0)
    let isStored = try fleet.nodes[0].onEngine { $0.mesh.authority[narrowed.id] != nil }
    #expect(try isStored == !shows("c", fleet))
  }
}
