import Foundation
import Replication
import TestSupport
import Testing

@testable import Forwarding
@testable import Seamesh

extension LedgerTests {
  /// Commits stand from then on and are confirmed to nobody.
  private func confirmNothing(_ server: TestPostgreSQL) throws {
    let owner = try server.owner("postgres")
    try owner.script("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    try owner.script("SELECT pg_reload_conf()")
    let came = try waitUntil {
      try owner.query("SHOW synchronous_standby_names").rows.first?.first == Array("nobody".utf8)
    }
    #expect(came)
  }

  @Test(
    "a server that is killed when a batch stands and is not confirmed yet has it once, and nothing is said to be lost")
  func killedInCommit() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    try relay.put("agency=G", "before")
    try relay.waitForLedger(server)
    try confirmNothing(server)
    try relay.put("agency=G", "unknown")
    let owner = try server.owner()
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'relay' AND wait_event = 'SyncRep'"
    let came = try waitUntil { try owner.number(waiting) == 1 }
    #expect(came)
    server.stop(SIGKILL)
    try server.write("", server.directory + "/data/postgresql.auto.conf")
    try relay.put("agency=G", "meanwhile")
    try server.start()
    let connection = try server.owner()
    #expect(
      try connection.number("SELECT count(*) FROM seamesh.changes") >= 2, "it stands, though the relay was not told")
    relay.forwarding?.sendNow()
    try relay.waitForLedger(server)
    #expect(try connection.number("SELECT count(*) FROM seamesh.changes") == 3)
    #expect(relay.forwarding?.status.lostChanges == 0)
    #expect(relay.forwarding?.status.forwardedChanges == 2, "what stands was found there, and not sent again")
    try expectLedger(server, equals: relay.node)
    try expectMarks(server, equal: relay.node)
  }

  @Test("a relay holds nothing locked between its calls: each is a transaction of its own, over whatever link")
  func noOpenTransaction() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let owner = try server.owner("postgres")
    for setting in ["log_statement = 'all'", "log_line_prefix = '%u: '"] {
      try owner.script("ALTER SYSTEM SET \(setting)")
    }
    try owner.script("SELECT pg_reload_conf()")
    for index in 0..<50 { try relay.put("agency=\(index % 2)", "r\(index)") }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let log = try String(contentsOfFile: server.directory + "/log", encoding: .utf8)
    let said = log.components(separatedBy: "\nrelay: LOG:  execute <unnamed>: ").dropFirst()
    #expect(said.contains { $0.contains("seamesh.append(") })
    #expect(said.allSatisfy { $0.hasPrefix("SELECT ") })
    // Nothing comes another way, which would be logged as a statement.
    #expect(!log.contains("relay: LOG:  statement: ") && !log.contains("advisory"))
  }

  @Test(
    "where the address names two servers the one that takes changes is forwarded to, and the other once that is gone")
  func failover() throws {
    let (first, second, relay) = try (TestPostgreSQL(), TestPostgreSQL(), ForwardingNode())
    for server in [first, second] { try relay.setUp(server) }
    try second.owner("postgres").script("ALTER ROLE relay PASSWORD '\(first.relayPassword)'")
    try first.owner("postgres").script("ALTER DATABASE fleet SET default_transaction_read_only = on")
    let roots = relay.directory + "/roots.crt"
    let certificates = try [first, second].map {
      try String(contentsOfFile: $0.directory + "/root.crt", encoding: .utf8)
    }
    try certificates.joined().write(toFile: roots, atomically: true, encoding: .utf8)
    let url =
      "postgresql://relay:\(first.relayPassword)@localhost:\(first.port),localhost:\(second.port)/fleet"
      + "?target_session_attrs=read-write&sslrootcert=\(roots)"
    try relay.put("agency=G", "one")
    try relay.forward(to: url)
    try relay.waitForLedger(second)
    #expect(try first.owner().number("SELECT count(*) FROM seamesh.changes") == 0)
    try first.owner("postgres").script("ALTER DATABASE fleet RESET default_transaction_read_only")
    second.stop(SIGINT)
    try relay.put("agency=G", "two")
    relay.forwarding?.sendNow()
    try relay.waitForLedger(first)
    try expectLedger(first, equals: relay.node)
    #expect(relay.forwarding?.status.backend.contains(first.relayPassword) == false)
  }
}
