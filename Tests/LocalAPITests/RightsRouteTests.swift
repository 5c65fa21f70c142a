import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@testable import LocalAPI

@Suite("Rights over HTTP")
struct RightsRouteTests {
  @Test("a change of rights reaches the node as it was asked for, and what came of it is answered")
  func changes() throws {
    let server = try TestServer()
    var outcome = RightsOutcome()
    outcome.isNarrowing = true
    (outcome.statements, outcome.says, outcome.signer) = (["00ff"], ["the end of bridge"], "this device")
    outcome.falls = [.init(partition: "agency=W", lostChanges: 3, gainedChanges: 0, documents: 2)]
    (outcome.notCarried, outcome.warnings, outcome.notes) = (["agency=V"], ["careful"], ["note"])
    outcome.effects = ["from then on"]
    server.node.show(rights: outcome)
    let calls: [(String, String, RightsChange)] = [
      (
        "/v1/grants", #"{"who":"role:o","level":"read","pattern":"a*","dryRun":true}"#,
        RightsChange(.grant(who: "role:o", level: "read", pattern: "a*"), isDryRun: true)
      ),
      (
        "/v1/revocations", #"{"device":"b","at":"2026-05-31T12:00:00Z","yes":true}"#,
        RightsChange(.revoke(device: "b", isCompromised: false, at: "2026-05-31T12:00:00Z"), isConfirmed: true)
      ),
      (
        "/v1/revocations", #"{"device":"b","compromised":true}"#,
        RightsChange(.revoke(device: "b", isCompromised: true, at: nil))
      ),
      ("/v1/retirements", #"{"device":"b"}"#, RightsChange(.retire(device: "b"))),
      ("/v1/raises", #"{"what":"b"}"#, RightsChange(.raise("b"))),
      ("/v1/promotions", #"{"device":"b","yes":false}"#, RightsChange(.promote(device: "b"))),
    ]
    for (target, body, change) in calls {
      let answer = try server.ask("POST", target, body)
      #expect(server.node.lastRightsChange == change, "\(target)")
      #expect(answer.json["signed"] == .bool(!change.isDryRun), "\(target)")
    }
    let answer = try server.ask("POST", "/v1/retirements", #"{"device":"b"}"#).json
    let fall = answer["falls"]?.asArray.first?.asMap
    #expect(
      fall?["lostChanges"] == .int(3) && fall?["documents"] == .int(2) && fall?["partition"] == .string("agency=W"))
    #expect(answer["narrowing"] == .bool(true) && answer["notCarried"] == .array([.string("agency=V")]))
    #expect(answer["effects"] == .array([.string("from then on")]))
    #expect(answer["warnings"] == .array([.string("careful")]) && answer["notes"] == .array([.string("note")]))
  }

  @Test("permissions are asked for by partition and person, and answered with every statement")
  func permissions() throws {
    let server = try TestServer()
    var (report, member, right, end) = (PermissionReport(), PermissionStatus(), RightStatus(), RightStatus())
    (end.id, end.words) = ("ee", "the end")
    (right.id, right.level, right.since, right.sinceBy, right.endedBy) = ("aa", "write", 1_000, "arrival", [end])
    right.issuedAt = 900
    (member.label, member.level, member.rights) = ("bridge", "read", [right])
    (report.members, report.rights) = ([member], [right])
    server.node.show(permissions: report)
    let json = try server.ask("GET", "/v1/permissions?partition=agency%3DW&who=role%3Ao").json
    let query = server.node.lastPermissionQuery
    #expect(try query?.partition == PartitionName("agency=W") && query?.who == "role:o")
    let shown = json["members"]?.asArray.first?.asMap
    #expect(shown?["level"] == .string("read") && shown?["label"] == .string("bridge"))
    let statement = shown?["rights"]?.asArray.first?.asMap
    #expect(
      statement?["since"] == .int(1_000) && statement?["issuedAt"] == .int(900) && statement?["inForce"] == .bool(false)
    )
    #expect(statement?["endedBy"]?.asArray.first?.asMap?["id"] == .string("ee"))
    #expect(try server.ask("GET", "/v1/rules").json["rules"]?.asArray.count == 1)
    _ = try server.ask("GET", "/v1/permissions")
    #expect(server.node.lastPermissionQuery?.partition == nil && server.node.lastPermissionQuery?.who == nil)
  }
}
