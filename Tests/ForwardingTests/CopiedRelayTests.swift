import Foundation
import Replication
import TestSupport
import Testing

@testable import Forwarding
@testable import Seamesh
@testable import SeameshCommand

@Suite(
  "Two machines with one device's key", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct CopiedRelayTests {
  @Test(
    "of a relay's machine and its copy the one that was there first goes on; the other says why it waits, and takes over"
  )
  func copies() throws {
    let (server, admin) = try (TestPostgreSQL(), ForwardingNode())
    try admin.setUp(server)
    try admin.node.subscribe("agency=*")
    let (original, copy) = try admin.clonedMember()
    defer { for path in [original, copy] { try? FileManager.default.removeItem(atPath: path) } }
    // Neither knows of the other.
    let (first, second) = try (ForwardingNode(directory: original), ForwardingNode(directory: copy))
    defer { for node in [first, second] { node.stop() } }
    #expect(first.node.device == second.node.device)
    let connection = try server.owner()
    func shown() throws -> Int64 {
      try connection.number("SELECT count(*) FROM seamesh.documents WHERE body->>'text' = 'first'")
    }
    try first.forward(to: server.relayURL())
    try first.put("agency=G", "r", "first")
    try expectSoon { try shown() == 1 && first.forwarding?.status.state == .caughtUp }
    // It is taken for the next start of the first, until that one goes on.
    try second.forward(to: server.relayURL())
    try second.waitForState(.caughtUp)
    try first.put("agency=G", "more", "first")
    try expectSoon { try shown() == 2 && first.forwarding?.status.state == .caughtUp }
    // As if it had been heard once more, ten seconds later: until then it keeps its place for half a minute only.
    try connection.script("UPDATE seamesh.relays SET is_heard = true")
    try second.put("agency=G", "r", "second")
    try second.waitForState(.refused)
    let status = try #require(second.forwarding?.status)
    #expect(status.reason.contains("a copy of this device forwards to"), "\(status)")
    #expect(status.remedy.contains("join anew") && status.remedy.contains("20 minutes"), "\(status)")
    let finding = try second.node.doctor().first { $0.code == "forward-refused" }
    #expect(finding?.level == .problem && finding?.message.contains("a copy of this device") == true)
    try first.put("agency=G", "still", "first")
    try expectSoon { try shown() == 3 }
    #expect(try connection.number("SELECT count(*) FROM seamesh.documents WHERE body->>'text' = 'second'") == 0)

    // Trying again is of no use, until the other one is gone.
    second.forwarding?.sendNow()
    try second.waitForState(.refused)
    first.stop()
    try connection.script("UPDATE seamesh.relays SET seen = seen - interval '21 minutes'")
    second.forwarding?.sendNow()
    try expectSoon {
      try connection.number("SELECT count(*) FROM seamesh.documents WHERE body->>'text' = 'second'") == 1
        && second.forwarding?.status.state == .caughtUp
    }
  }

  @Test("a relay that starts again, however often and after whatever end, waits for nothing")
  func restarts() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    for round in 0..<20 {
      try relay.forward(to: server.relayURL())
      try relay.put("agency=G", "r\(round)")
      try relay.waitForLedger(server)
    }
    let connection = try server.owner()
    #expect(try connection.number("SELECT cardinality(displaced) + cardinality(evicted) FROM seamesh.relays") == 16)
  }

  @Test("a call of a killed process that a server carries out late keeps the next start away for half a minute, once")
  func lateCall() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let connection = try server.owner()
    let call = "SELECT seamesh.hold_relay(repeat('r', 32)::bytea, '"
    func calls(_ process: String) throws { try connection.script("\(call)\(process)')") }
    func isRefused(_ process: String) -> Bool {
      do { try calls(process) } catch let problem as BackendProblem {
        return problem.sentence.contains("a copy of this device forwards")
      } catch {}
      return false
    }
    func pass(_ seconds: Int) throws {
      try connection.script("UPDATE seamesh.relays SET seen = seen - interval '\(seconds) seconds'")
    }
    for process in ["killed", "next", "killed", "killed"] { try calls(process) }
    try pass(29)
    #expect(isRefused("next"))
    try pass(1)
    try calls("next")

    // It is no call that was left over: whoever comes back a second time goes on.
    try calls("killed")
    try pass(1_100)
    #expect(isRefused("next"))
    try pass(100)
    try calls("next")

    // Nor is one of which more is heard.
    for process in ["started", "next"] { try calls(process) }
    try pass(11)
    try calls("next")
    try pass(1_100)
    #expect(isRefused("started"))
  }

  private func expectSoon(
    _ condition: () throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let came = try waitUntil(within: 30, condition)
    #expect(came, sourceLocation: sourceLocation)
  }
}
