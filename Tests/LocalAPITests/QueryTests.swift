import Foundation
import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@Suite("Queries, imports, exports and the rest")
struct QueryTests {
  let server: TestServer
  let collection = "/v1/partitions/p/collections/c"

  init() throws { server = try TestServer() }

  @Test("a find hands over its filter and keeps the order of its sort fields")
  func find() throws {
    _ = try server.ask("PUT", collection + "/documents/a", #"{"n":1}"#)
    let answer = try server.ask(
      "POST", collection + "/find",
      #"{"sort":{"z":-1,"a\u0062":1,"m":1},"filter":{"n":{"$gt":0},"$or":[]},"limit":5,"skip":2,"projection":{"n":1}}"#)
    #expect(answer.text == "{\"documents\":[{\"_id\":\"a\",\"n\":1}]}\n")
    let find = try #require(server.node.lastFind)
    #expect(find.sort.map(\.path) == ["z", "ab", "m"])
    #expect(find.sort.map(\.ascending) == [false, true, true])
    #expect(find.limit == 5 && find.skip == 2)
    #expect(find.filter["n"]?.asMap?["$gt"] == .int(0))
    #expect(find.projection?["n"] == .int(1))
  }

  @Test("damaged documents stand beside those that were found, in a list of their own, and have a problem of theirs")
  func damaged() throws {
    _ = try server.ask("PUT", collection + "/documents/a", #"{"n":1}"#)
    let damaged = DamagedStatus(partition: "p", collection: "c", id: .string("b"), reason: "a flipped bit")
    server.node.damage([damaged])
    let found = try server.ask("POST", collection + "/find", "{}")
    #expect(found.status == 200 && found.text == "{\"documents\":[{\"_id\":\"a\",\"n\":1}],\"damaged\":[\"b\"]}\n")
    let list = try server.ask("GET", "/v1/damaged")
    #expect(
      list.text
        == "{\"damaged\":[{\"collection\":\"c\",\"id\":\"b\",\"partition\":\"p\",\"reason\":\"a flipped bit\"}]}\n")
    server.node.fail(NodeError(.damaged, "document b is damaged on this device"))
    let refusal = try server.ask("GET", collection + "/documents/b")
    #expect(refusal.status == 503 && refusal.json["type"] == .string("urn:seamesh:problem:damaged-document"))
  }

  @Test("a find says where what it found is not of one moment")
  func mixed() throws {
    _ = try server.ask("PUT", collection + "/documents/a", #"{"n":1}"#)
    server.node.mixResults()
    let found = try server.ask("POST", collection + "/find", "{}")
    #expect(found.text == "{\"documents\":[{\"_id\":\"a\",\"n\":1}],\"oneState\":false}\n")
  }

  @Test("sort fields may come as a list, in which order is plain")
  func sortList() throws {
    _ = try server.ask("POST", collection + "/find", #"{"sort":[{"z":1},{"a":-1}]}"#)
    #expect(server.node.lastFind?.sort.map(\.path) == ["z", "a"])
  }

  @Test(
    "a find that is not understood is refused",
    arguments: [
      #"{"sort":{"a":2}}"#, #"{"sort":"a"}"#, #"{"sort":[{"a":1,"b":1}]}"#, #"{"limit":-1}"#, #"{"limit":"1"}"#,
      #"{"filter":[]}"#, #"{"where":{}}"#,
    ])
  func strangeFind(body: String) throws {
    #expect(try server.ask("POST", collection + "/find", body).status == 422)
  }

  @Test("keys with $ in a document come out marked as data")
  func dollarKeys() throws {
    try server.put(
      PartitionName("p"), "c", id: .string("a"), ValueMap([.init(key: "$set", value: .int(1))]) ?? ValueMap())
    let read = try server.ask("GET", collection + "/documents/a")
    #expect(read.text.contains("$literal"))
    let found = try server.ask("POST", collection + "/find", "{}")
    #expect(found.text == "{\"documents\":[\(read.text.dropLast())]}\n")
  }

  @Test("an import answers each record by its line, and a bad one stops no other")
  func importing() throws {
    let lines = """
      {"_id":"a","n":1}

      {"_id":"b",
      {"n":2}
      {"_id":"a","n":1}
      {"_id":[1]}
      """
    let answer = try server.ask("POST", collection + "/import", lines, type: "application/x-ndjson")
    #expect(answer.status == 200)
    #expect(answer.json["imported"] == .int(3))
    #expect(answer.json["failed"] == .int(2))
    let results = answer.json["results"]?.asArray.compactMap(\.asMap) ?? []
    #expect(results.map { $0["line"] } == [1, 3, 4, 5, 6].map { .int($0) })
    #expect(results.map { $0["error"]?.asMap?["status"] } == [nil, .int(400), nil, nil, .int(422)])
    #expect(results.map { $0["created"] } == [.bool(true), nil, .bool(true), .bool(false), nil])
    #expect(Set(server.node.ids).count == 2)
  }

  @Test("an import of more records than one batch may have is refused whole")
  func tooManyRecords() throws {
    let lines = String(repeating: "{\"n\":1}\n", count: BulkLimit.requests + 1)
    let answer = try server.ask("POST", collection + "/import", lines, type: "application/x-ndjson")
    #expect(answer.status == 422)
    #expect(answer.json["limit"] == .int(Int64(BulkLimit.requests)))
    #expect(server.node.writes == 0)
  }

  @Test("an export streams every document as a line, of one collection or of all")
  func exporting() throws {
    for index in 0..<3_000 {
      let id = Value.string(Text(String(format: "%04d", index)))
      let body = ValueMap([.init(key: "t", value: .string(Text(String(repeating: "x", count: 300))))]) ?? ValueMap()
      try server.put(PartitionName("p"), "c", id: id, body)
    }
    try server.put(PartitionName("p"), "d", id: .string("z"), ValueMap())
    let one = try server.ask("GET", collection + "/documents")
    #expect(one.headers["content-type"] == "application/x-ndjson")
    let lines = one.text.split(separator: "\n")
    #expect(lines.count == 3_000)
    #expect(lines.last?.hasPrefix(#"{"_id":"2999","t":"xxx"#) == true)
    let all = try server.ask("GET", "/v1/partitions/p/documents").text.split(separator: "\n")
    #expect(all.count == 3_001)
    #expect(all.contains(#"{"collection":"d","document":{"_id":"z"}}"#))
    #expect(try server.ask("GET", "/v1/partitions/empty/documents").text.isEmpty)
    server.node.fail(NodeError(.busy, "not now"))
    let failed = try server.ask("GET", collection + "/documents")
    #expect(failed.status == 503 && failed.headers["retry-after"] == "1")
  }

  @Test("subscriptions are set, listed and ended")
  func subscriptions() throws {
    #expect(try server.ask("PUT", "/v1/subscriptions/agency%3D*").status == 200)
    #expect(try server.ask("PUT", "/v1/subscriptions/user%3Da%2Fb").status == 200)
    #expect(try server.node.subscriptions() == ["agency=*", "user=a/b"])
    #expect(try server.ask("GET", "/v1/subscriptions").text == "{\"subscriptions\":[\"agency=*\",\"user=a/b\"]}\n")
    #expect(try server.ask("DELETE", "/v1/subscriptions/agency%3D*").status == 200)
    #expect(try server.node.subscriptions() == ["user=a/b"])
    #expect(try server.ask("PUT", "/v1/subscriptions/" + String(repeating: "x", count: 256)).status == 422)
  }

  @Test("the node's state can be read")
  func states() throws {
    _ = try server.ask("PUT", "/v1/subscriptions/p")
    let status = try server.ask("GET", "/v1/status").json
    #expect(status["fleetName"] == .string("test fleet"))
    #expect(status["held"]?.asMap?["no-grant"] == .int(2))
    #expect(try server.ask("GET", "/v1/peers").json["peers"]?.asArray.first?.asMap?["behind"] == .int(3))
    #expect(try server.ask("GET", "/v1/devices").json["devices"]?.asArray.first?.asMap?["isSelf"] == .bool(true))
    let partition = try server.ask("GET", "/v1/partitions").json["partitions"]?.asArray.first?.asMap
    #expect(partition?["digest"] == .string("d1") && partition?["digestState"] == .string("computed"))
    #expect(partition?["digestReason"] == .null)
    #expect(partition?["vector"]?.asArray.first?.asMap?["sequence"] == .int(7))
    let plain = try server.ask("GET", "/v1/partitions?digests=false").json["partitions"]?.asArray.first?.asMap
    #expect(plain?["digest"] == .null && plain?["digestState"] == .string("not asked"))
    #expect(plain?["conflicts"] == .null)
    for (digest, isOpen) in [("00", false), ("10", true)] {
      server.node.show(inboxDigest: digest)
      let row = try server.ask("GET", "/v1/partitions").json["partitions"]?.asArray.first?.asMap
      #expect(row?["conflicts"] == .bool(isOpen))
    }
    server.node.withholdDigests(.notComputed("ask again"))
    let later = try server.ask("GET", "/v1/partitions").json["partitions"]?.asArray.first?.asMap
    #expect(later?["digest"] == .null && later?["digestState"] == .string("not computed"))
    #expect(later?["digestReason"] == .string("ask again"))
    #expect(try server.ask("GET", "/v1/doctor").json["findings"]?.asArray.first?.asMap?["level"] == .string("warning"))
    let metrics = try server.ask("GET", "/metrics")
    #expect(metrics.text == "seamesh_documents 1\n")
    #expect(metrics.headers["content-type"]?.hasPrefix("text/plain; version=0.0.4") == true)
  }

  @Test("invitations are made with a code, listed without, and cancelled by their numbers")
  func invitations() throws {
    let answer = try server.ask("POST", "/v1/invitations", #"{"user":"ann@x","role":"officer","profile":{"a":1}}"#)
    #expect(answer.json["code"] == .string("CODE-1"))
    #expect(server.node.lastInvitation?.user == "ann@x")
    #expect(server.node.lastInvitation?.role == "officer")
    #expect(try server.ask("POST", "/v1/invitations", "{}").status == 422)
    #expect(server.node.lastInvitation?.validMilliseconds == 86_400_000)
    #expect(answer.json["serial"] == .int(1))
    _ = try server.ask("POST", "/v1/invitations", #"{"user":"ben","validMilliseconds":1000}"#)
    #expect(server.node.lastInvitation?.validMilliseconds == 1_000)
    let listed = try server.ask("GET", "/v1/invitations")
    #expect(listed.text.contains("ann@x") && listed.text.contains("ben") && !listed.text.contains("CODE"))
    #expect(try server.ask("DELETE", "/v1/invitations/1").status == 200)
    #expect(try !server.ask("GET", "/v1/invitations").text.contains("ann@x"))
    #expect(try server.ask("DELETE", "/v1/invitations/1").status == 404)
    #expect(try server.ask("DELETE", "/v1/invitations/one").status == 400)
  }

  @Test("a backup shows its progress and names its file")
  func backups() throws {
    let lines = try server.ask("POST", "/v1/backup", #"{"path":"/tmp/x"}"#).text.split(separator: "\n")
    #expect(lines.first == #"{"done":1,"total":2}"#)
    #expect(lines.last == #"{"path":"/tmp/x"}"#)
    #expect(try server.ask("POST", "/v1/backup", #"{"path":"x"}"#).status == 422)
    server.node.fail(NodeError(.diskFull, "no room"))
    #expect(try server.ask("POST", "/v1/backup", #"{"path":"/tmp/x"}"#).status == 507)
  }

  @Test("a backup that fails on the way ends with the problem in place of its file")
  func failingBackups() throws {
    #expect(try server.ask("POST", "/v1/backup", #"{"path":"/b\u0000c"}"#).status == 422)
    server.node.failBackups(NodeError(.diskFull, "no room"))
    let last = try server.ask("POST", "/v1/backup", #"{"path":"/b"}"#).text.split(separator: "\n").last ?? ""
    #expect(last.hasPrefix(#"{"error":{"detail":"no room","status":507"#), "\(last)")
  }

  @Test(
    "of a live query's parameters the one that cannot be read is named",
    arguments: [
      ("filter=%7Bbad", "filter"), ("projection=%7B%22a%22%3A1", "projection"), ("limit=ten", "limit"),
      ("skip=-", "skip"), ("sort=%7B", "sort"), ("limit=1&filter=null", "filter"),
    ])
  func namedParameters(query: String, name: String) throws {
    let answer = try server.ask("GET", "/v1/partitions/p/collections/c/watch?" + query)
    #expect(
      [400, 422].contains(answer.status) && answer.detail.hasPrefix("the query parameter \(name)"), "\(answer.text)")
  }
}
