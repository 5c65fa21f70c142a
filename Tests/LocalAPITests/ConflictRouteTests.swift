import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@testable import LocalAPI

@Suite("Requests about conflicts")
struct ConflictRouteTests {
  private let target = "/v1/partitions/p/conflicts"

  @Test("a list says of each conflict where it is, what is shown and what is not; nothing is told from null")
  func list() throws {
    let server = try TestServer()
    var page = ConflictPage()
    var conflict = ConflictStatus()
    (conflict.id, conflict.collection, conflict.document) = ("63.0661.v1.1", "c", .string("a"))
    (conflict.place, conflict.shown) = ("n.x", .null)
    var value = ConflictStatus.Candidate()
    (value.path, value.kind, value.value) = ("n.x", "set", .map(ValueMap(members: ["$oid": .string("no id")])))
    (value.writer.user, value.writer.label, value.writer.writtenMilliseconds) = ("ann", "tablet", 5)
    conflict.shownBy = value.writer
    conflict.shownBy?.user = "bo"
    var removal = ConflictStatus.Candidate()
    (removal.path, removal.kind) = ("n.x", "remove")
    conflict.values = [value, removal]
    var absent = ConflictStatus()
    absent.isDeleted = true
    (page.conflicts, page.next, page.examined, page.untold) = ([conflict, absent], "63.0661", 7, 2)
    server.node.show(conflicts: [page])
    let answer = try server.ask("GET", target + "?limit=2").json
    #expect(server.node.lastConflictQuery == ConflictQuery(limit: 2))
    #expect(answer["next"] == .string("63.0661") && answer["examined"] == .int(7) && answer["untold"] == .int(2))
    let conflicts = (answer["conflicts"]?.asArray ?? []).compactMap(\.asMap)
    try #require(conflicts.count == 2)
    #expect(conflicts[0]["shown"] == .null && conflicts[1]["shown"] == nil)
    #expect(conflicts[0]["place"] == .string("n.x") && conflicts[1]["deleted"] == .bool(true))
    let author = conflicts[0]["shownBy"]?.asMap
    #expect(author?["user"] == .string("bo") && author?["written"] == .date(5) && conflicts[1]["shownBy"] == .null)
    let values = (conflicts[0]["values"]?.asArray ?? []).compactMap(\.asMap)
    try #require(values.count == 2)
    #expect(values.map { $0["number"] } == [.int(1), .int(2)] && values[0]["user"] == .string("ann"))
    #expect(values[0]["value"] == value.value, "keys with $ are data there")
    #expect(values[1]["value"] == nil && values[1]["kind"] == .string("remove"))
    _ = try server.ask("GET", target + "?after=63.0661")
    #expect(server.node.lastConflictQuery == ConflictQuery(after: "63.0661"))
  }

  @Test("a decision keeps, takes or names another value, null too; any other is refused in one sentence")
  func decisions() throws {
    let server = try TestServer()
    let resolve = target + "/63.0661.v1.1/resolve"
    for (body, choice) in [
      (#"{"keep":true}"#, .keep), (#"{"take":[2,1]}"#, .take([2, 1])),
      (#"{"value":{"a":1}}"#, .value(.map(ValueMap(members: ["a": .int(1)])))),
      (#"{"value":null}"#, .value(.null)),
    ] as [(String, ConflictChoice)] {
      let answer = try server.ask("POST", resolve, body)
      #expect(
        answer.status == 200 && answer.headers["etag"] == "\"v1\"" && answer.json["safety"] == .string("local-durable"))
      #expect(
        server.node.resolutions.last?.conflict == "63.0661.v1.1" && server.node.resolutions.last?.choice == choice)
    }
    let alive = try server.ask("POST", target + "/gone.1/resolve", #"{"take":[1]}"#).json
    #expect(
      try alive["created"] == .bool(true)
        && server.ask("POST", resolve, #"{"keep":true}"#).json["created"] == .bool(false))
    for (body, words) in [
      (#"{}"#, "one of the members"), (#"{"keep":false}"#, "must be true"), (#"{"keep":1}"#, "must be true or false"),
      (#"{"take":["a"]}"#, "whole numbers"), (#"{"take":1}"#, "an array"), (#"{"drop":1}"#, "no member drop"),
    ] {
      let answer = try server.ask("POST", resolve, body)
      #expect(answer.status == 422 && answer.detail.contains(words), "\(body): \(answer.text)")
    }
    #expect(server.node.resolutions.count == 6)
  }
}
