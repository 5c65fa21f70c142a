import Foundation
import Replication
import Storage
import TestSupport
import Testing

@testable import Engine
@testable import Forwarding
@testable import Seamesh
@testable import SeameshCommand
@testable import Storage

@Suite(
  "A relay whose own log is damaged, with a real PostgreSQL",
  .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct DamagedLogTests {
  private let (server, relay): (TestPostgreSQL, ForwardingNode)

  init() throws {
    (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
  }

  private func execute(_ sql: String) throws {
    let isDone = try relay.node.engine.ask { engine in
      (try? (engine.state.store as? Store)?.database.execute(sql)) != nil
    }
    #expect(isDone)
  }

  private static let ofA =
    "chain IN (SELECT c.id FROM chains c JOIN partitions p ON p.id=c.partition WHERE name='agency=A')"

  /// A text of a document that lies in its run alone.
  private static let marked = "MARK" + String(repeating: "x", count: 100)

  private func replace(_ old: String, by new: String) throws {
    try execute("UPDATE runs SET body=CAST(replace(CAST(body AS TEXT),'\(old)','\(new)') AS BLOB)")
  }

  /// The node reads its log over, soon.
  private func scrub() throws {
    try relay.node.engine.ask { engine in engine.state.scrub.demandPass(engine.state.clock.now) }
  }

  private func living() throws -> Int64 {
    try server.owner().number("SELECT count(*) FROM seamesh.documents WHERE alive")
  }

  private func expectSoon(
    _ what: Comment, _ condition: () throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let came = try waitUntil {
      relay.forwarding?.sendNow()
      return try condition()
    }
    #expect(came, "\(what): \(String(describing: relay.forwarding?.status))", sourceLocation: sourceLocation)
  }

  @Test(
    "a run that this device's log does not give keeps no other chain, and goes in once it reads",
    arguments: [
      ("UPDATE runs SET sum=sum+1 WHERE last=2 AND \(ofA)", "UPDATE runs SET sum=sum-1 WHERE last=2 AND \(ofA)"),
      ("UPDATE large_payloads SET sum=sum+1", "UPDATE large_payloads SET sum=sum-1"),
      (
        "CREATE TEMP TABLE kept AS SELECT * FROM large_payloads; DELETE FROM large_payloads",
        "INSERT INTO large_payloads SELECT * FROM kept"
      ),
    ])
  func unreadRun(damage: String, mend: String) throws {
    try relay.put("agency=A", "first")
    try relay.put("agency=A", "large", String(repeating: "a long report ", count: 5_000))
    try relay.put("agency=A", "third")
    for index in 0..<10 { try relay.put("agency=B", "b\(index)") }
    try execute(damage)
    try relay.forward(to: server.relayURL())
    let connection = try server.owner()
    let came = try waitUntil { try connection.number("SELECT count(*) FROM seamesh.changes") == 11 }
    #expect(came, "all of the other, and what lies before it: \(relay.forwarding?.status.reason ?? "")")
    let documents = try waitUntil { try connection.number("SELECT count(*) FROM seamesh.documents") >= 12 }
    #expect(documents, "documents do not come from the log")
    let told = waitUntil { relay.forwarding?.status.putAside == 1 && relay.forwarding?.status.state == .lagging }
    #expect(told)
    let refused = try relay.node.refusedRuns()
    #expect(refused.map(\.partition) == ["agency=A"] && refused.map(\.first) == [2] && refused.map(\.last) == [2])
    #expect(refused.first?.reason.contains("own log does not read") == true)
    #expect(try relay.node.doctor().contains { $0.code == "forward-put-aside" && $0.message.contains("own log") })
    try execute(mend)
    let interface = try LocalAPIServer(relay)
    defer { interface.stop() }
    _ = try runCommand(["forward", "--now"], in: relay.directory)
    try relay.waitForLedger(server)
    try LedgerTests().expectLedger(server, equals: relay.node)
    #expect(try living() == 13)
  }

  @Test(
    "a document that does not read here stays at the backend as it is, whoever sent it", arguments: ["a", "b", "d"])
  func unreadDocument(damaged: String) throws {
    for id in ["a", "b", "c", "d"] { try relay.put("agency=A", id, id == damaged ? DamagedLogTests.marked : "x") }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(try living() == 4)
    try replace("MARK", by: "MARC")
    // All documents are sent anew.
    let connection = try server.owner()
    try connection.script(
      """
      DELETE FROM seamesh.document_positions;
      UPDATE seamesh.documents SET body='{}', state='' WHERE id_json='"c"';
      """)
    try expectSoon("all but that one") {
      try connection.number("SELECT count(*) FROM seamesh.documents WHERE body->>'text'='x'") == 3
        && connection.number("SELECT count(*) FROM seamesh.document_positions") == 1
    }
    #expect(try living() == 4)
  }

  @Test("a document whose run did not read when it was to be sent goes in once that reads", arguments: [true, false])
  func mendedDocument(byItself: Bool) throws {
    let vessel = try relay.member()
    defer { vessel.remove() }
    for id in ["a", "b", "c"] { try relay.put("agency=A", id, id == "b" ? DamagedLogTests.marked : "x") }
    let came = try waitUntil { try vessel.holds("agency=A", "c") }
    #expect(came)
    vessel.stop()
    // The backend has the run, and not the document.
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    relay.forwarding?.stop()
    let connection = try server.owner()
    try connection.script("DELETE FROM seamesh.documents; DELETE FROM seamesh.document_positions")
    try replace("MARK", by: "MARC")
    try scrub()
    let found = try waitUntil { try !relay.node.engine.ask { $0.state.damagedRuns.isEmpty } }
    #expect(found)
    try relay.forward(to: server.relayURL())
    try expectSoon("the others") { try living() == 2 && relay.forwarding?.status.state == .caughtUp }
    if byItself {
      try replace("MARC", by: "MARK")
      try scrub()
    } else {
      try vessel.restart()
    }
    try expectSoon("it goes in") { try living() == 3 }
  }

  @Test("where the ledger's last run of a chain does not read here, what follows goes in all the same")
  func unreadEnd() throws {
    for id in ["a", "b"] { try relay.put("agency=A", id) }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    relay.forwarding?.stop()
    try relay.put("agency=A", "c")
    try execute("UPDATE runs SET sum=sum+1 WHERE last=2 AND \(DamagedLogTests.ofA)")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(try living() == 3)
  }

  @Test("a run whose number does not read, which so is passed over, holds back what follows it, and nothing else")
  func unreadNumber() throws {
    for id in ["a", "b", "c"] { try relay.put("agency=A", id) }
    try execute("UPDATE runs SET last=1 WHERE last=2 AND \(DamagedLogTests.ofA)")
    try relay.forward(to: server.relayURL())
    let told = waitUntil { relay.forwarding?.status.putAside == 1 && relay.forwarding?.status.state == .lagging }
    #expect(told)
    // The ledger is read anew, and what is told of it.
    try relay.put("agency=B", "b")
    let connection = try server.owner()
    for count in 1...3 {
      try expectSoon("the other") { try connection.number("SELECT count(*) FROM seamesh.changes") == 1 + Int64(count) }
      let isStill = waitUntil { relay.forwarding?.status.putAside == 1 && relay.forwarding?.status.state == .lagging }
      #expect(isStill, "\(String(describing: relay.forwarding?.status))")
      try relay.put("agency=B", "more\(count)")
    }
    #expect(try connection.number("SELECT count(*) FROM seamesh.marked_changes WHERE sequence > 1") >= 1)
  }
}
