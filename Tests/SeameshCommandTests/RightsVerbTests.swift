import Foundation
import LocalAPITestSupport
import Replication
import Seamesh
import Testing
import Wire

@testable import SeameshCommand

@Suite("The verbs of rights", .enabled(if: isCommandBuilt), .serialized)
struct RightsVerbTests {
  private func narrowing() -> RightsOutcome {
    var outcome = RightsOutcome()
    outcome.isNarrowing = true
    (outcome.statements, outcome.says, outcome.signer) = (["00ff"], ["the end of bridge"], "this device")
    outcome.falls = [
      .init(partition: "agency=W", lostChanges: 3, gainedChanges: 0, documents: 2),
      .init(partition: "agency=X", lostChanges: 0, gainedChanges: 0, documents: 0),
    ]
    (outcome.notCarried, outcome.effects) = (["agency=V"], ["from then on bridge may no longer write"])
    return outcome
  }

  @Test("a narrowing is shown and asked for on a terminal; only a yes signs it", TestedServer.onTerminal)
  func asking() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    node.show(rights: narrowing())
    for (answer, isSigned) in [("y\n", true), ("yes\n", true), ("n\n", false), ("\n", false)] {
      let result = try server.runOnTerminal("revoke bridge", input: answer)
      #expect(result.output.contains("would sign the end of bridge"))
      #expect(result.output.contains("agency=W: 3 changes would count no longer; documents: 2"))
      #expect(result.output.contains("not carried here: agency=V") && result.output.contains("Sign this? [y/N]"))
      #expect(
        !result.output.contains("agency=X") && result.output.contains("  from then on bridge may no longer write"))
      #expect((result.status == 0) == isSigned, "\(answer): \(result.output)")
      #expect(node.lastRightsChange?.isDryRun == !isSigned && node.lastRightsChange?.isConfirmed == isSigned)
      #expect(result.output.contains("nothing was signed") == !isSigned)
    }
  }

  @Test("without a terminal a narrowing needs --yes; --dry-run signs nothing; what takes nothing away is not asked for")
  func withoutTerminal() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    node.show(rights: narrowing())
    for json in [[], ["--json"]] {
      let refused = try server.run(["retire", "bridge"] + json)
      #expect(refused.status == 1 && refused.error.contains("confirm with --yes"), "\(refused.error)")
      #expect(node.lastRightsChange?.isDryRun == true)
      let dry = try server.run(["retire", "bridge", "--dry-run"] + json)
      #expect(dry.status == 0 && node.lastRightsChange?.isDryRun == true)
    }
    #expect(try server.run(["retire", "bridge", "--yes"]).output.contains("signed the end of bridge"))
    #expect(node.lastRightsChange == RightsChange(.retire(device: "bridge"), isConfirmed: true))
    var wider = RightsOutcome()
    (wider.statements, wider.says) = (["aa"], ["the grant role:officer write agency=*"])
    node.show(rights: wider)
    let granted = try server.run(["grant", "role:officer", "write", "agency=*"])
    #expect(granted.output == "signed the grant role:officer write agency=*\n", "\(granted.output)\(granted.error)")
    #expect(
      node.lastRightsChange == RightsChange(.grant(who: "role:officer", level: "write", pattern: "agency=*")))
  }

  @Test("without a terminal an ended device is not promoted: what ended it is said, and that --yes confirms it")
  func promotion() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    var outcome = RightsOutcome()
    (outcome.statements, outcome.says) = (["00ff"], ["the membership of b"])
    outcome.warnings = ["b is no member any more: it was retired by a"]
    node.show(rights: outcome)
    let refused = try server.run(["promote", "b"])
    #expect(refused.status == 1 && node.lastRightsChange?.isDryRun == true)
    #expect(
      refused.error.contains("nothing was signed: b is no member any more: it was retired by a; look with --dry-run"),
      "\(refused.error)")
    let signed = try server.run(["promote", "b", "--yes"])
    #expect(signed.status == 0 && signed.output.contains("b is no member any more: it was retired by a"), "\(signed)")
    #expect(node.lastRightsChange == RightsChange(.promote(device: "b"), isConfirmed: true))
  }

  @Test("one change that a narrowing takes away counts no longer, several count no longer")
  func countedFalls() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    var outcome = narrowing()
    outcome.falls = [.init(partition: "agency=W", lostChanges: 1, gainedChanges: 2, documents: 1)]
    node.show(rights: outcome)
    let (dry, signed) = (try server.run(["retire", "b", "--dry-run"]), try server.run(["retire", "b", "--yes"]))
    #expect(dry.output.contains("1 change would count no longer, 2 changes would count again"), "\(dry.output)")
    #expect(signed.output.contains("1 change counts no longer, 2 changes count again"), "\(signed.output)")
  }

  @Test("what the verbs ask for reaches the node, and a level that is none is a mistake of usage")
  func requests() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    let moment = "2026-05-31T12:00:00Z"
    _ = try server.run(["revoke", "b", "--compromised", "--at", moment, "--yes"])
    #expect(
      node.lastRightsChange
        == RightsChange(.revoke(device: "b", isCompromised: true, at: moment), isConfirmed: true))
    _ = try server.run(["raise", "b"])
    #expect(node.lastRightsChange == RightsChange(.raise("b")))
    _ = try server.run(["promote", "b"])
    #expect(node.lastRightsChange == RightsChange(.promote(device: "b")))
    #expect(try server.run(["grant", "everyone", "all", "*"]).status == 2)
    node.fail(NodeError(.notPermitted, "this device may not decide this"))
    let refused = try server.run(["raise", "b"])
    #expect(refused.isRefusal && refused.status == 4 && refused.error.contains("may not decide this"))
  }

  @Test("over HTTP a real node signs what takes something away only with yes, and says so in one sentence")
  func overHTTP() throws {
    let whole = try WholeNode()
    let client = try NodeClient(directory: whole.server.directory)
    func close(_ flag: String) throws(Failure) -> ValueMap {
      let body = #"{"who":"everyone","level":"read","pattern":"*"\#(flag)}"#
      return try client.ask(.init(method: "POST", target: "/v1/grants", body: Array(body.utf8))).json()
    }
    let refused = #expect(throws: Failure.self) { try close("") }
    #expect(refused?.message.contains(#"nothing was signed; confirm it with "yes": true"#) == true)
    #expect(try close(#","dryRun":true"#).flag("narrowing"))
    #expect(try whole.seamesh("permissions", "agency=W").output.contains("this device): write"))
    #expect(try close(#","yes":true"#).flag("signed"))
  }

  @Test("whom, what for and when, not written as they have to be, are mistakes of usage, and no node is asked")
  func malformed() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    func usage(_ words: String..., says: String) throws {
      let refused = try server.run(words)
      #expect(refused.isRefusal && refused.status == 2 && refused.error.contains(says), "\(words): \(refused.error)")
    }
    for who in ["nobody", "user:", "role:", "device:", ":x", "group:x", "user", "everyone:"] {
      try usage("grant", who, "read", "room=1", "--yes", says: "names nobody")
      try usage("permissions", "--who", who, says: "names nobody")
    }
    for pattern in ["a*b", "**", "*a", String(repeating: "x", count: 256), "room=\u{1}"] {
      try usage("grant", "everyone", "read", pattern, says: "is no pattern")
    }
    try usage("revoke", "b", "--at", "noon", says: "noon is no time")
    #expect(node.lastRightsChange == nil && node.lastPermissionQuery == nil)
    for who in ["everyone", "user:a:b", "role:officer", "device:bridge"] {
      #expect(try server.run(["grant", who, "read", "room=*", "--yes"]).status == 0, "\(who)")
    }
  }

  @Test("devices and permissions say when a statement was issued and when it arrived here, and which time is which")
  func times() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    var (end, device, report, member) = (RightStatus(), DeviceStatus(), PermissionReport(), PermissionStatus())
    (end.words, end.issuer, end.issuedAt) = ("the end of bridge", "office", 1_700_000_000_000)
    (end.since, end.sinceBy) = (1_700_000_060_000, "arrival")
    (device.label, device.endedBy, member.label, member.endedBy) = ("bridge", [end], "bridge", [end])
    (report.members, report.rights) = ([member], [end])
    node.show(devices: [device])
    node.show(permissions: report)
    let times = "issued 2023-11-14T22:13:20Z, arrived here 2023-11-14T22:14:20Z"
    #expect(try server.run(["devices"]).output.contains("ended by office, \(times)"))
    #expect(try server.run(["permissions", "agency=W"]).output.contains("ended by the end of bridge, \(times)"))
    let table = try server.run(["permissions"]).output
    #expect(table.contains("ISSUED") && table.contains("2023-11-14T22:13:20Z  2023-11-14T22:14:20Z"), "\(table)")
    // Of a statement that is not in the store, as of one that did not say when it was issued, one time is known.
    (end.since, end.sinceBy) = (end.issuedAt, "issuer")
    device.endedBy = [end]
    node.show(devices: [device])
    #expect(try server.run(["devices"]).output.contains("ended by office, issued 2023-11-14T22:13:20Z\n"))
  }

  @Test("permissions are shown with every statement, since when, and what ended it")
  func permissions() throws {
    let whole = try WholeNode()
    #expect(
      try whole.seamesh("grant", "user:bob@x", "read", "agency=*").output.contains("no device of user:bob@x is known"))
    let grants = try whole.seamesh("permissions").lines
    #expect(
      grants.count == 3
        && grants.contains { $0.contains("the grant everyone write *") && $0.contains("the fleet's root") })
    let own = try whole.seamesh("permissions", "agency=W").output
    #expect(own.contains("bridge (ann@test.example, admin, this device): write"), "\(own)")
    #expect(own.contains("write by the grant everyone write *") && own.contains(", arrived here 20"))
    #expect(try whole.seamesh("grant", "everyone", "read", "*", "--yes").output.contains("the end of"))
    let lowered = try whole.seamesh("permissions", "agency=W", "--who=device:bridge").output
    #expect(lowered.contains("this device): read") && lowered.contains("ended by the end of"), "\(lowered)")
    let refused = try whole.seamesh("put", "agency=W", "c", "a", "-", input: "{}")
    #expect(refused.status == 4 && refused.error.contains("it may only read there, by the grant everyone read *"))
    #expect(try whole.seamesh("rules").lines.count == 5)
    #expect(try whole.seamesh("permissions", "agency=W", "--who=device:nobody").status == 3)
    let json = try ExtendedJSON.parseMap(Array(whole.seamesh("permissions", "agency=W", "--json").output.utf8))
    #expect(json.list("members").first?.text("level") == "read")
    #expect(try whole.seamesh("permissions", "--who=user:nobody").output == "nothing of the kind has been said\n")
  }
}
