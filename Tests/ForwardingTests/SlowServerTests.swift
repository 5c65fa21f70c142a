import Foundation
import Replication
import TestSupport
import Testing

@testable import Forwarding

@Suite(
  "A server that grants less time than a batch takes", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason),
  .serialized)
struct SlowServerTests {
  @Test("what statement_timeout ends is tried in smaller batches, without a pause, until the ledger has all")
  func statementTimeout() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    for number in 0..<40 { try relay.put("agency=G", "r\(number)") }
    // Two seconds for all of the changes, and as much for all of the documents.
    try server.owner().script(
      """
      CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END $$;
      CREATE TRIGGER slow BEFORE INSERT ON seamesh.changes FOR EACH ROW EXECUTE FUNCTION slow();
      CREATE TRIGGER slow BEFORE INSERT ON seamesh.documents FOR EACH ROW EXECUTE FUNCTION slow();
      ALTER ROLE relay SET statement_timeout = '700ms'
      """)
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let owner = try server.owner()
    #expect(try owner.number("SELECT count(*) FROM seamesh.documents") == 40)
    let log = try String(contentsOfFile: server.directory + "/log", encoding: .utf8)
    #expect(log.contains("canceling statement due to statement timeout"), "nothing was too slow")
  }
}
