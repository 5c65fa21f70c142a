import Foundation
import Replication
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Seamesh
@testable import SeameshCommand

@Suite(
  "A relay that ends for good between a batch and its documents",
  .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct EndedRelayTests {
  @Test("another relay sends them; who has not said that all is there is named, until that is forgotten")
  func repaired() throws {
    let (server, first) = try (TestPostgreSQL(), ForwardingNode())
    try first.setUp(server)
    try first.node.subscribe("agency=*")
    let owner = try server.owner()
    func count(_ table: String) throws -> Int64 { try owner.number("SELECT count(*) FROM seamesh.\(table)") }
    func verify() throws -> CommandResult {
      try runCommand(["verify-ledger", "--forward=\(server.ownerURL())"], in: server.directory)
    }
    var second = try first.member(label: "second")
    let path = second.directory
    defer { try? FileManager.default.removeItem(atPath: path) }
    try first.put("agency=G", "known")
    #expect(try waitUntil { try second.holds("agency=G", "known") })
    try second.forward(to: server.relayURL())
    try second.waitForLedger(server)
    second.stop()
    try first.forward(to: server.relayURL())
    try first.waitForState(.caughtUp)
    first.forwarding?.stop()

    // The server takes runs and no documents, as if it went away in between each time.
    try owner.script(
      """
      CREATE FUNCTION public.away() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'away' USING ERRCODE = '57P01'; END $$;
      CREATE TRIGGER away BEFORE INSERT ON seamesh.documents FOR EACH ROW EXECUTE FUNCTION public.away();
      """)
    for index in 0..<20 { try first.put("agency=G", "r\(index)") }
    var limits = ForwarderLimits()
    limits.batchChanges = 5
    try first.forward(to: server.relayURL(), limits: limits)
    // The last page of a backlog has its documents with it.
    #expect(try waitUntil { try count("changes") >= 15 })
    first.forwarding?.stop()
    // A commit that was under way when the relay stopped is the server's to end.
    let serving = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'relay'"
    #expect(try waitUntil { try owner.number(serving) == 0 })
    try owner.script("DROP TRIGGER away ON seamesh.documents")
    let brought = try count("changes")
    #expect(try count("documents") == 1)
    let named = "relay \(hexadecimal(first.node.device.digest.bytes)) said so last at "
    let left = try verify()
    #expect(left.status == 0 && left.output.contains("but for \(brought - 1), which relays"), "\(left)")
    #expect(left.output.contains(named), "\(left)")

    // The other one hears of these changes in the mesh, and finds them in the ledger.
    second = try ForwardingNode(directory: path, peers: [first.address])
    defer { second.stop() }
    try second.forward(to: server.relayURL())
    #expect(try waitUntil(within: 30) { try count("documents") == 21 })
    try second.waitForState(.caughtUp)
    first.stop()
    let repaired = try verify()
    #expect(repaired.status == 0 && !repaired.output.contains("but for"), "\(repaired)")
    #expect(repaired.output.contains("among documents that \(brought - 1) runs wrote"), "\(repaired)")
    #expect(repaired.output.contains(named), "\(repaired)")

    // What the ended one brought is held against the runs once its steps are forgotten.
    try owner.script("UPDATE seamesh.documents SET generation = 7 WHERE id_json = '\"r3\"'")
    try owner.script(
      """
      UPDATE seamesh.documents d SET sum = seamesh.document_sum(
          partition, collection, id, id_json, alive, generation, body, state, refusal) WHERE id_json = '"r3"';
      DELETE FROM seamesh.document_steps WHERE relay = decode('\(hexadecimal(first.node.device.digest.bytes))', 'hex')
      """)
    let spoilt = try verify()
    #expect(spoilt.status == 1 && spoilt.error.contains("generation is not what the runs make"), "\(spoilt)")
  }
}
