import Foundation
import TestSupport
import Testing

@testable import Forwarding
@testable import Seamesh

@Suite(
  "A backend that is put back from a dump", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct PutBackTests {
  private static let surface = ["seamesh_office.documents", "seamesh_office.conflicts", "seamesh_office.edits"]

  @Test(
    "a dump of the tables alone, or of all schemas, is put into a new database; the set-up makes what lacks, and the relay goes on",
    arguments: ["--schema=seamesh", "--schema=seamesh*"])
  func putBack(_ schemas: String) throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try server.owner("postgres").script("CREATE ROLE clerk LOGIN")
    try setUp(server, relay)
    for index in 0..<3 { try relay.put("agency=G", "r\(index)") }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    _ = try server.owner().query("SELECT * FROM seamesh.make_views()")
    try ask(server, "open")
    let dump = try server.dump(schemas)
    try relay.put("agency=G", "later")
    try relay.waitForLedger(server)
    relay.stop()

    // The old one stays beside it.
    try server.owner("postgres").script("ALTER DATABASE fleet RENAME TO fleet_before")
    try server.owner("postgres").script("CREATE DATABASE fleet")
    try server.load(dump)
    try setUp(server, relay)
    try setUp(server, relay)
    #expect(try server.owner().number("SELECT count(*) FROM seamesh_office.documents") == 3)
    #expect(try server.owner().number("SELECT count(*) FROM seamesh_office.edits WHERE why = 'open'") == 1)
    for name in Self.surface {
      #expect(try server.owner().number("SELECT count(*) FROM \(name) WHERE false") == 0, "\(name)")
    }
    try ask(server, "again")
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.edits") == 2)
    // Who is nobody may not write in a function of the owner's.
    let open = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'seamesh_office'::regnamespace AND (proacl IS NULL "
    #expect(try server.owner().number(open + "OR proacl::text ~ '[{,]=X')") == 0)

    try relay.restart()
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.changes") == 4)
    let isShown = try waitUntil { try server.owner().number("SELECT count(*) FROM seamesh_office.documents") == 4 }
    #expect(isShown)
    _ = try server.owner().query("SELECT * FROM seamesh.make_views()")
    #expect(try server.owner().number("SELECT count(*) FROM seamesh_views.reports") == 4)
  }

  private func setUp(_ server: TestPostgreSQL, _ relay: ForwardingNode) throws {
    _ = try PostgreSQLSetUp.perform(
      server.ownerAddress(), fleet: relay.node.fleet, granting: PostgreSQLGrants(relay: "relay", office: "clerk"),
      environment: [:])
  }

  /// As somebody with the office's rights and no other.
  private func ask(_ server: TestPostgreSQL, _ why: String) throws {
    try server.owner().script(
      "SET ROLE clerk; SET seamesh.why = '\(why)'; UPDATE seamesh_office.documents SET body = body || '{\"n\": 1}' "
        + "WHERE id = '\"r1\"'")
  }
}
