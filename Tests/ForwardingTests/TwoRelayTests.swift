import Engine
import Foundation
import Identity
import Replication
import TestSupport
import Testing

@testable import Forwarding
@testable import Seamesh

@Suite(
  "Two relays that do not know the same", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct TwoRelayTests {
  private func expectSoon(
    _ condition: () throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let came = try waitUntil(within: 30, condition)
    #expect(came, sourceLocation: sourceLocation)
  }

  private func counting(_ server: TestPostgreSQL) throws -> Int64 {
    try server.owner().number("SELECT count(*) FROM seamesh.marked_changes WHERE accepted")
  }

  @Test("of two relays the one that lacks a statement leaves the other's marks alone, until it has learnt")
  func marks() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.node.subscribe("agency=*")
    let lost = try relay.member(label: "lost", user: "eve@test.example")
    defer { lost.remove() }
    var second = try relay.member(label: "second")
    let path = second.directory
    defer { try? FileManager.default.removeItem(atPath: path) }
    for index in 0..<3 { try lost.put("agency=G", "r\(index)") }
    try expectSoon { try relay.holds("agency=G", "r2") && second.holds("agency=G", "r2") }
    second.stop()
    lost.stop()
    _ = try relay.node.change(
      RightsChange(.revoke(device: "lost", isCompromised: false, at: "2020-01-01T00:00:00Z"), isConfirmed: true))
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(try counting(server) == 0)
    relay.stop()
    // Away from the others it knows of no end, and takes for good what was taken back.
    second = try ForwardingNode(directory: path)
    try second.put("agency=G", "own")
    try second.forward(to: server.relayURL())
    try second.waitForLedger(server)
    try expectSoon { try counting(server) == 1 }
    #expect(try server.owner().number("SELECT count(DISTINCT judge) FROM seamesh.accepted") == 2)
    second.stop()
    // Who has both has the last word.
    try relay.restart()
    second = try ForwardingNode(directory: path, peers: [relay.address])
    defer { second.stop() }
    try second.put("agency=G", "later")
    try second.forward(to: server.relayURL())
    try expectSoon { try counting(server) == 2 }
    _ = try relay.node.change(RightsChange(.raise("lost")))
    try expectSoon { try counting(server) == 5 }
  }

  @Test("what a relay wrote that is gone for good is brought up to date by one that is not in a room of that one's")
  func roomOfOne() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.node.subscribe("agency=*")
    let gone = try relay.member(label: "gone")
    defer { gone.remove() }
    let key = gone.node.files.deviceKey
    let membership = try gone.node.engine.ask { $0.state.mesh.authority.member(of: key.publicKey)?.id }
    let creation = try StatementSigner(fleet: gone.node.fleet, key: key)
      .sign(.room(Statement.Room(by: try #require(membership))))
    let isSaid = try gone.node.engine.ask { $0.add([creation]) }
    #expect(isSaid)
    try gone.put("agency=G", "r", "before")
    try gone.forward(to: server.relayURL())
    try gone.waitForLedger(server)
    let body = "SELECT count(*) FROM seamesh.documents WHERE body ->> 'text' = 'after'"
    try expectSoon { try relay.holds("agency=G", "r") }
    gone.stop()
    let brought = "SELECT count(*) FROM seamesh.statements WHERE id = \(hexadecimal(creation.id))"
    #expect(try server.owner().number(brought) == 1)
    try relay.put("agency=G", "r", "after")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    try expectSoon { try server.owner().number(body) == 1 }
    #expect(relay.forwarding?.status.staleDocuments == 0)
    // What is said in that room it does not know.
    let isHeld = try relay.node.engine.ask { $0.state.mesh.authority.holds(creation.id) }
    #expect(!isHeld)
  }

  private func hexadecimal(_ id: Digest) -> String {
    "'\\x" + id.bytes.map { String($0 / 16, radix: 16) + String($0 % 16, radix: 16) }.joined() + "'"
  }

  @Test("who may forward still may when the tables were brought up to date")
  func migration() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    let address = try server.ownerAddress()
    let before = PostgreSQLSchema.marksStep.number - 1
    let made = try PostgreSQLSetUp.perform(
      address, fleet: relay.node.fleet, granting: PostgreSQLGrants(relay: "relay"), environment: [:], through: before)
    #expect(made == PostgreSQLSetUp.Outcome(formatBefore: 0, format: before))
    let brought = try PostgreSQLSetUp.perform(address, fleet: relay.node.fleet, environment: [:])
    #expect(brought == PostgreSQLSetUp.Outcome(formatBefore: before, format: PostgreSQLSchema.format))
    try relay.put("agency=G", "r")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(try counting(server) == 1)
  }
}
