import Foundation
import Replication
import TestSupport
import Testing

@testable import Forwarding
@testable import Seamesh

extension LedgerTests {
  @Test(
    "through pgbouncer in transaction mode two relays share two of the server's processes, which end now and then",
    .enabled(if: TestPgBouncer.isThere, "not run: pgbouncer is not here"))
  func pooler() throws {
    let (server, first) = try (TestPostgreSQL(), ForwardingNode())
    try first.setUp(server)
    try first.node.subscribe("agency=*")
    let second = try first.member(label: "second")
    defer { second.remove() }
    let pooler = try TestPgBouncer(server, poolSize: 2)
    try first.forward(to: pooler.relayURL)
    try second.forward(to: pooler.relayURL)
    let connection = try server.owner()
    let serving = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'relay'"
    for round in 0..<4 {
      for index in 0..<25 {
        try first.put("agency=G", "a\(round)-\(index)", #"{"n":\#(index)}"#)
        try second.put("agency=G", "b\(round)-\(index)")
      }
      let all = try waitUntil { try [first, second].allSatisfy { try $0.node.status().changes == 50 * (round + 1) } }
      #expect(all)
      for relay in [first, second] { try relay.waitForLedger(server) }
      #expect(try connection.number(serving) <= 2)
      _ = try connection.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'relay' AND state = 'idle'")
    }
    try [first, second].forEach { try $0.node.sendForwardingNow() }
    try first.waitForLedger(server)
    try second.waitForLedger(server)
    try expectLedger(server, equals: first.node)
    // Each refuses the other's word now and then, until it has the same knowledge.
    let words = try waitUntil(within: 40) {
      try connection.number("SELECT count(*) FROM seamesh.documents WHERE alive") == 200
        && connection.number("SELECT count(*) FROM seamesh.marked_changes WHERE accepted") == 200
    }
    #expect(words)
    try expectMarks(server, equal: first.node)
    // What a session of the server knew is missed by nobody: a call goes on in another one, without a new connection. One may
    // be ended with a call under way.
    #expect(pooler.logins <= 4)
    #expect(try connection.number(serving + " AND client_addr IS NOT NULL") == 0)
  }
}
