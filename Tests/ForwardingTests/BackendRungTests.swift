import Foundation
import Replication
import TestSupport
import Testing

@testable import Forwarding
@testable import Seamesh

@Suite(
  "The rung of the backend, by a real PostgreSQL", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason),
  .serialized)
struct BackendRungTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("agency=G") }

  private func report(_ vessel: ForwardingNode, asking: Bool = false) throws -> ReceiptReport {
    try vessel.node.receipts(partition, asking: asking)
  }

  @Test(
    "what a vessel wrote is in the backend once its relay has read it there, and no more where the ledger went back")
  func rung() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.node.subscribe("agency=*")
    let vessel = try ForwardingNode(joining: relay, role: "officer")
    defer { vessel.remove() }
    for index in 0..<5 { try vessel.put("agency=G", "r\(index)") }
    try vessel.put("agency=G", "large", String(repeating: "a long report ", count: 5_000))
    let came = try waitUntil { try relay.node.status().changes == 6 }
    #expect(came)
    #expect(try report(vessel, asking: true).forwarders.isEmpty)
    try relay.forward(to: server.relayURL())
    let isLit = try waitUntil { try report(vessel).forwarders.map(\.label) == ["relay"] }
    #expect(isLit)
    #expect(try report(vessel).forwarders.allSatisfy { $0.ageMilliseconds < 30_000 })
    let judged = try vessel.node.safeToWipe(WipeRules(), asking: false)
    #expect(judged.isSafe && judged.evidence.contains(where: \.isOfBackend), "\(judged)")
    #expect(try relay.node.safeToWipe(WipeRules(), asking: false).isSafe, "it has read it there itself")
    // An older copy, which takes nothing more.
    let connection = try server.owner()
    try connection.script("DELETE FROM seamesh.changes WHERE sequence > 2; DELETE FROM seamesh.runs WHERE last > 2")
    try connection.script(
      "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        + "RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$;"
        + "CREATE TRIGGER no_room BEFORE INSERT ON seamesh.changes FOR EACH STATEMENT EXECUTE FUNCTION no_room()")
    try relay.node.sendForwardingNow()
    let isTakenBack = try waitUntil(within: 30) { try report(vessel, asking: true).forwarders.isEmpty }
    #expect(isTakenBack)
    #expect(try report(vessel).words.filter(\.isOfBackend).map(\.lacking) == [4])
    #expect(relay.forwarding?.status.lostChanges == 4)
    #expect(try vessel.node.safeToWipe(WipeRules(), asking: false).lostChanges == 4)
    #expect(try relay.node.safeToWipe(WipeRules(), asking: false).lostChanges == 4)
    try connection.script("DROP TRIGGER no_room ON seamesh.changes")
    try relay.node.sendForwardingNow()
    let isLitAgain = try waitUntil(within: 30) { try report(vessel, asking: true).forwarders.map(\.label) == ["relay"] }
    #expect(isLitAgain)
  }

  @Test(
    "what is nowhere else is sent to the backend by safe-to-wipe --send, which does not wait for the next try, and says yes"
  )
  func sending() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let interface = try LocalAPIServer(relay)
    defer { interface.stop() }
    server.stop(SIGINT)
    var limits = ForwarderLimits()
    (limits.firstPauseMilliseconds, limits.longestPauseMilliseconds) = (3_600_000, 3_600_000)
    try relay.forward(to: server.relayURL(), limits: limits)
    for index in 0..<3 { try relay.put("agency=G", "r\(index)") }
    try relay.waitForState(.refused)
    let before = try runCommand(["safe-to-wipe", "--send", "--timeout=1s"], in: relay.directory)
    #expect(before.status == 1 && before.output.contains("not safe: 3 changes of agency=G"), "\(before)")
    try server.start()
    #expect(try runCommand(["safe-to-wipe"], in: relay.directory).status == 1, "nobody has sent it")
    let after = try runCommand(["safe-to-wipe", "--send", "--timeout=30s"], in: relay.directory)
    #expect(after.status == 0 && after.output.hasPrefix("yes  3 changes here"), "\(after)")
    #expect(after.output.contains("the backend") && after.output.contains("read by this device"), "\(after)")
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.changes") == 3)
  }
}
