import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@testable import LocalAPI

@Suite("Documents over HTTP")
struct DocumentTests {
  let server: TestServer
  let path = "/v1/partitions/agency%3DW/collections/Report/documents"

  init() throws { server = try TestServer() }

  @Test("a document is created, read with its ETag, changed and deleted")
  func roundTrip() throws {
    let created = try server.ask("PUT", path + "/a", #"{"n":1,"t":{"$date":"2020-06-01T00:00:00Z"}}"#)
    #expect(created.status == 201)
    #expect(created.json["created"] == .bool(true))
    #expect(created.json["safety"] == .string("local-durable"))
    #expect(created.json["dot"]?.asMap?["sequence"] == .int(1))
    #expect(created.json["dot"]?.asMap?["partition"] == .string("agency=W"))
    #expect(created.headers["etag"] == "\"v1\"")
    let read = try server.ask("GET", path + "/a")
    #expect(read.status == 200)
    #expect(read.headers["etag"] == "\"v1\"")
    #expect(read.text == #"{"_id":"a","n":1,"t":{"$date":"2020-06-01T00:00:00Z"}}"# + "\n")
    #expect(try server.ask("PUT", path + "/a?keepAbsent=true", #"{"m":2}"#).status == 200)
    #expect(try server.ask("GET", path + "/a").json["n"] == .int(1))
    for target in ["/a", "/a?keepAbsent=false"] {
      #expect(try server.ask("PUT", path + target, #"{"m":2}"#).status == 200)
      #expect(try server.ask("GET", path + "/a").text == "{\"_id\":\"a\",\"m\":2}\n")
    }
    #expect(try server.ask("DELETE", path + "/a").status == 200)
    #expect(try server.ask("GET", path + "/a").status == 404)
    #expect(try server.ask("DELETE", path + "/a").status == 404)
  }

  @Test("a read with a known ETag answers 304 without a body")
  func notModified() throws {
    _ = try server.ask("PUT", path + "/a", "{}")
    let known = try server.ask("GET", path + "/a", headers: ["If-None-Match: \"v0\", \"v1\""])
    #expect(known.status == 304)
    #expect(known.body.isEmpty)
    #expect(try server.ask("GET", path + "/a", headers: ["If-None-Match: \"v0\""]).status == 200)
  }

  @Test("HEAD answers as GET does, without the body")
  func head() throws {
    _ = try server.ask("PUT", path + "/a", "{}")
    let answer = try server.ask("HEAD", path + "/a")
    #expect(answer.status == 200 && answer.body.isEmpty && answer.headers["etag"] == "\"v1\"")
  }

  @Test("If-Match lets a write through on the version it names only")
  func ifMatch() throws {
    _ = try server.ask("PUT", path + "/a", "{}")
    #expect(try server.ask("PUT", path + "/a", "{\"x\":1}", headers: ["If-Match: \"v1\""]).status == 200)
    #expect(try server.ask("PUT", path + "/a", "{\"x\":2}", headers: ["If-Match: \"v1\""]).status == 412)
    #expect(try server.ask("DELETE", path + "/a", headers: ["If-Match: \"v1\""]).status == 412)
    for odd in ["v2", "\"v1\" \"v2\"", "\"v2", "*, \"v2\"", ""] {
      #expect(try server.ask("PUT", path + "/a", "{}", headers: ["If-Match: \(odd)"]).status == 400, "\(odd)")
    }
  }

  @Test(
    "If-Match takes a list, and * for any present version; a weak ETag matches no version to write on; If-None-Match holds beside it"
  )
  func ifMatchForms() throws {
    func status(_ match: String) throws -> Int {
      try server.ask("PUT", path + "/a", "{}", headers: ["If-Match: \(match)"]).status
    }
    #expect(try status("*") == 412)
    _ = try server.ask("PUT", path + "/a", "{}")
    #expect(try status("*") == 200)
    #expect(try status("\"v9\",\t\"v2\" , \"a,b\"") == 200)
    #expect(try status("W/\"v3\"") == 412)
    #expect(try status("W/\"v1\", \"v3\"") == 200)
    let doubled = try server.ask("DELETE", path + "/a", headers: ["If-Match: \"v9\"", "If-Match: \"v4\""])
    #expect(doubled.status == 200)
    _ = try server.ask("PUT", path + "/a", "{}")
    #expect(try server.ask("PUT", path + "/a", "{}", headers: ["If-Match: *", "If-None-Match: *"]).status == 412)
    #expect(try server.ask("PUT", path + "/a", "{}", headers: ["If-Match: *", "If-None-Match: \"v1\""]).status == 200)
    #expect(
      try server.ask("PUT", path + "/a", "{}", headers: ["If-Match: \"v1\"", "If-None-Match: \"v2\""]).status == 412)
  }

  @Test("If-None-Match: * creates and never changes, whatever the write is")
  func mustBeNew() throws {
    let new = ["If-None-Match: *"]
    #expect(try server.ask("PUT", path + "/a", "{}", headers: new).status == 201)
    #expect(try server.ask("PUT", path + "/a", "{}", headers: new).status == 412)
    let merge = "application/merge-patch+json"
    for type in [merge, "application/json"] {
      let body = type == merge ? #"{"x":1}"# : #"{"$set":{"x":1}}"#
      #expect(try server.ask("PATCH", path + "/a", body, type: type, headers: new).status == 412)
      #expect(try server.ask("PATCH", path + "/b", body, type: type, headers: new).status == 404)
      #expect(try server.ask("PATCH", path + "/b?upsert=true", body, type: type, headers: new).status == 201)
      #expect(try server.ask("PATCH", path + "/b?upsert=true", body, type: type, headers: new).status == 412)
      #expect(try server.ask("DELETE", path + "/b", headers: new).status == 412)
      #expect(try server.ask("DELETE", path + "/b").status == 200)
    }
    #expect(try server.ask("GET", path + "/a").text == "{\"_id\":\"a\"}\n")
    #expect(try server.ask("PUT", path + "/a", "{}", headers: ["If-None-Match: \"v9\""]).status == 200)
    #expect(try server.ask("PUT", path + "/a", "{}", headers: ["If-None-Match: \"v1\", W/\"v6\""]).status == 412)
  }

  @Test("a patch of a document that is not there answers 404 and writes nothing, with upsert it makes one")
  func patchOfNothing() throws {
    let merge = "application/merge-patch+json"
    for (body, type) in [(#"{"x":1}"#, merge), (#"{"$set":{"x":1}}"#, "application/json")] {
      for target in ["/a", "/a?upsert=false"] {
        let missing = try server.ask("PATCH", path + target, body, type: type)
        #expect(missing.status == 404 && missing.json["type"] == .string("urn:seamesh:problem:not-found"))
      }
      #expect(server.node.ids.isEmpty)
      let made = try server.ask("PATCH", path + "/a?upsert=true", body, type: type)
      #expect(made.status == 201 && made.json["created"] == .bool(true))
      #expect(try server.ask("PATCH", path + "/a?upsert=true", body, type: type).status == 200)
      #expect(try server.ask("GET", path + "/a").json["x"] == .int(1))
      #expect(try server.ask("DELETE", path + "/a").status == 200)
    }
    #expect(try server.ask("PATCH", path + "/a?upsert=maybe", "{}", type: merge).status == 400)
  }

  @Test("an insert makes an id, or takes the document's own, and says where the document is")
  func insert() throws {
    let made = try server.ask("POST", path, #"{"n":1}"#)
    #expect(made.status == 201)
    guard case .objectID? = made.json["id"] else {
      Issue.record("no ObjectId: \(made.text)")
      return
    }
    let location = try #require(made.headers["location"])
    #expect(try server.ask("GET", location).json["n"] == .int(1))
    let own = try server.ask("POST", path, #"{"_id":"x/y","n":2}"#)
    #expect(own.headers["location"] == path + "/x%2Fy")
    #expect(try server.ask("POST", path, #"{"_id":"x/y"}"#).status == 412)
  }

  @Test("an insert that is sent again with its key makes no second document")
  func insertAgain() throws {
    for (key, again) in [("a-1", "a-1"), ("a-2", "\"a-2\""), ("\"a-3\"", "a-3")] {
      let first = try server.ask("POST", path, #"{"n":1}"#, headers: ["Idempotency-Key: \(key)"])
      let second = try server.ask("POST", path, #"{"n":1}"#, headers: ["Idempotency-Key: \(again)"])
      #expect(first.status == 201 && second.status == 200 && second.json["created"] == .bool(false))
      #expect(first.json["id"] == second.json["id"] && first.headers["etag"] == second.headers["etag"])
      #expect(first.headers["location"] == second.headers["location"])
      let other = try server.ask("POST", path, #"{"n":2}"#, headers: ["Idempotency-Key: \(key)"])
      #expect(other.status == 422 && other.detail.contains("used for another document"))
    }
    #expect(server.node.ids.count == 3)
    for lines in [["Idempotency-Key: "], ["Idempotency-Key: ké"], ["Idempotency-Key: a", "Idempotency-Key: b"]] {
      #expect(try server.ask("POST", path, "{}", headers: lines).status == 400)
    }
    let long = "Idempotency-Key: " + String(repeating: "k", count: 256)
    #expect(try server.ask("POST", path, "{}", headers: [long]).status == 400)
  }

  @Test("a patch is a merge patch or update operators, by its content type")
  func patch() throws {
    _ = try server.ask("PUT", path + "/a", #"{"a":1,"b":2}"#)
    let merge = try server.ask("PATCH", path + "/a", #"{"a":null,"c":3}"#, type: "application/merge-patch+json")
    #expect(merge.status == 200)
    #expect(try server.ask("GET", path + "/a").text == "{\"_id\":\"a\",\"b\":2,\"c\":3}\n")
    #expect(try server.ask("PATCH", path + "/a", #"{"$set":{"b":5}}"#).status == 200)
    #expect(try server.ask("GET", path + "/a").json["b"] == .int(5))
    let unbuilt = try server.ask("PATCH", path + "/a", #"{"$push":{"b":5}}"#)
    #expect(unbuilt.status == 422 && unbuilt.detail == "only $set is built")
    #expect(try server.ask("PATCH", path + "/a", #"{"b":5}"#).detail.contains("merge-patch+json"))
    #expect(try server.ask("PATCH", path + "/a", "{}", type: "text/plain").status == 415)
  }

  @Test("the document's own _id must be the one that the path names")
  func ownID() throws {
    #expect(try server.ask("PUT", path + "/a", #"{"_id":"a"}"#).status == 201)
    #expect(try server.ask("PUT", path + "/a", #"{"_id":"b"}"#).status == 422)
    let merge = try server.ask("PATCH", path + "/a", #"{"_id":"b"}"#, type: "application/merge-patch+json")
    #expect(merge.status == 422)
  }

  @Test("a transaction is one change of several documents, or nothing")
  func transaction() throws {
    let operations = """
      {"operations":[{"op":"put","collection":"A","id":"1","document":{"x":1}},
       {"op":"insert","collection":"B","document":{"_id":{"$oid":"5ed554a47527930d67194feb"}}},
       {"op":"patch","collection":"A","id":"1","patch":{"y":2}},
       {"op":"update","collection":"A","id":"1","update":{"$set":{"z":3}}},
       {"op":"delete","collection":"A","id":"1"}]}
      """
    let answer = try server.ask("POST", "/v1/partitions/p/transaction", operations)
    #expect(answer.status == 200)
    #expect(answer.json["results"]?.asArray.count == 5)
    #expect(answer.json["results"]?.asArray.first?.asMap?["created"] == .bool(true))
    #expect(server.node.writes == 1)
    let refused = try server.ask(
      "POST", "/v1/partitions/p/transaction",
      #"{"operations":[{"op":"put","collection":"A","id":"9","document":{}},{"op":"delete","collection":"A","id":"8"}]}"#
    )
    #expect(refused.status == 404)
    #expect(try server.ask("GET", "/v1/partitions/p/collections/A/documents/9").status == 404)
  }

  @Test(
    "a transaction that is not understood is refused by the name of what is wrong",
    arguments: [
      (#"{"operations":[]}"#, "operations"), (#"{"ops":[]}"#, "ops"),
      (#"{"operations":[{"op":"put","collection":"A","id":"1"}]}"#, "document"),
      (#"{"operations":[{"op":"put","collection":"A","id":"1","document":{"$set":{}}}]}"#, "$set"),
      (#"{"operations":[{"op":"move","collection":"A","id":"1"}]}"#, "operation 1"),
      (#"{"operations":[{"op":"delete","collection":"A"}]}"#, "id"),
      (#"{"operations":[{"op":"delete","collection":"A","id":["x"]}]}"#, "id"),
      (#"{"operations":[{"op":"delete","collection":"A","id":"1","why":1}]}"#, "why"),
      (#"{"operations":[{"op":"delete","collection":"A","id":"1","upsert":true}]}"#, "upsert"),
      (#"{"operations":[{"op":"insert","collection":"A","document":{},"ifMatch":"x"}]}"#, "ifMatch"),
      (#"{"operations":[{"op":"put","collection":"A","id":"1","document":{},"keepAbsent":1}]}"#, "keepAbsent"),
      (#"{"operations":[{"op":"patch","collection":"A","id":"1","document":{}}]}"#, "document"),
      (#"{"operations":[{"collection":"A","id":"1"}]}"#, "op is put"), (#"{"operations":[1]}"#, "an object"),
      (#"{"operations":[{"op":"update","collection":"A","id":"1","update":{"x":1}}]}"#, "$set"),
      (#"{"operations":[{"op":"put","collection":"A","id":"1","document":{"_id":"2"}}]}"#, "_id"),
    ])
  func strangeTransaction(body: String, named: String) throws {
    let answer = try server.ask("POST", "/v1/partitions/p/transaction", body)
    #expect(answer.status == 422)
    #expect(answer.detail.contains(named), "\(answer.text)")
  }

  @Test("operations of a transaction keep, make and match as the single requests do")
  func transactionOptions() throws {
    func transact(_ operation: String) throws -> Int {
      try server.ask("POST", "/v1/partitions/agency%3DW/transaction", #"{"operations":[\#(operation)]}"#).status
    }
    let head = #""collection":"Report","id":"a""#
    _ = try server.ask("PUT", path + "/a", #"{"n":1,"m":1}"#)
    #expect(try transact(#"{"op":"put",\#(head),"document":{"n":2},"keepAbsent":true,"ifMatch":"v1"}"#) == 200)
    #expect(try server.ask("GET", path + "/a").text == "{\"_id\":\"a\",\"m\":1,\"n\":2}\n")
    #expect(try transact(#"{"op":"put",\#(head),"document":{"n":3}}"#) == 200)
    #expect(try server.ask("GET", path + "/a").text == "{\"_id\":\"a\",\"n\":3}\n")
    #expect(try transact(#"{"op":"patch",\#(head),"patch":{"n":4},"ifMatch":"v1"}"#) == 412)
    #expect(try transact(#"{"op":"delete",\#(head),"ifMatch":"*"}"#) == 200)
    #expect(try transact(#"{"op":"delete",\#(head),"ifMatch":"*"}"#) == 412)
    for operation in [#""op":"patch",\#(head),"patch":{"x":1}"#, #""op":"update",\#(head),"update":{"$set":{"x":1}}"#] {
      #expect(try transact("{\(operation)}") == 404)
      #expect(try transact("{\(operation),\"upsert\":true}") == 200)
      #expect(try server.ask("DELETE", path + "/a").status == 200)
    }
  }

  @Test("what is wrong with one operation of a transaction is told with its number, for programs too")
  func refusedOperation() throws {
    let put = #"{"op":"put","collection":"A","id":"1","document":{}}"#
    func transact(_ operations: String) throws -> Answer {
      try server.ask("POST", "/v1/partitions/p/transaction", #"{"operations":[\#(operations)]}"#)
    }
    let unread = try transact(#"\#(put),{"op":"update","collection":"A","id":"1","update":{"x":1}}"#)
    #expect(unread.status == 422 && unread.detail.hasPrefix("operation 2: application/json takes"), "\(unread.text)")
    #expect(unread.json["operation"] == .int(2))
    let unnamed = try transact(#"\#(put),\#(put),{"op":"delete","collection":"A"}"#)
    #expect(unnamed.detail == "operation 3 needs the member id" && unnamed.json["operation"] == .int(3))
    server.node.refuse(.string("1"), NodeError(.tooLarge, "operation 1 (A 1): too large", operation: 1))
    let refused = try transact(put)
    #expect(refused.status == 413 && refused.json["operation"] == .int(1) && refused.json["limit"] == nil)
  }

  @Test("a transaction of one operation names it as one of several does, where the refusal is about it")
  func onlyOperation() throws {
    func transact(_ operation: String) throws -> Answer {
      try server.ask("POST", "/v1/partitions/p/transaction", #"{"operations":[\#(operation)]}"#)
    }
    let missing = try transact(#"{"op":"patch","collection":"A","id":"none","patch":{"x":1}}"#)
    #expect(missing.status == 404 && missing.json["operation"] == .int(1), "\(missing.text)")
    #expect(missing.detail.hasPrefix("operation 1 (A none): "), "\(missing.text)")
    server.node.refuse(.string("1"), NodeError(.notPermitted, "no right in p"))
    let right = try transact(#"{"op":"put","collection":"A","id":"1","document":{}}"#)
    #expect(right.status == 403 && right.json["operation"] == nil && right.detail == "no right in p", "\(right.text)")
  }

  @Test("no operation, and too many, are told in words and with a limit that makes sense")
  func operationCount() throws {
    let none = try server.ask("POST", "/v1/partitions/p/transaction", #"{"operations":[]}"#)
    #expect(none.status == 422 && none.detail == "operations is empty: a transaction has one at least")
    #expect(none.json["limit"] == nil && none.json["unit"] == nil)
    let delete = #"{"op":"delete","collection":"A","id":"1"}"#
    let list = Array(repeating: delete, count: BulkLimit.requests + 1).joined(separator: ",")
    let many = try server.ask("POST", "/v1/partitions/p/transaction", #"{"operations":[\#(list)]}"#)
    #expect(many.status == 422 && many.detail == "one transaction: at most \(BulkLimit.requests) operations")
    #expect(many.json["unit"] == .string("operations"))
  }

  @Test("an ETag in a transaction may have the quotes of its header; a weak one can match nothing, and is refused")
  func quotedETags() throws {
    func transact(_ etag: String) throws -> Answer {
      let operation = #"{"op":"patch","collection":"Report","id":"a","patch":{"x":1},"ifMatch":"\#(etag)"}"#
      return try server.ask("POST", "/v1/partitions/agency%3DW/transaction", #"{"operations":[\#(operation)]}"#)
    }
    let written = try server.ask("PUT", path + "/a", #"{"n":1}"#)
    let etag = try #require(written.headers["etag"])
    #expect(etag.hasPrefix("\"") && etag.hasSuffix("\""))
    #expect(try transact(etag.replacing("\"", with: #"\""#)).status == 200)
    #expect(try transact(etag.replacing("\"", with: #"\""#)).status == 412)
    for wrong in [#"W/\"v2\""#, #"\"v2\", \"v3\""#, #"\"v2"#, #"v2\""#] {
      let refused = try transact(wrong)
      #expect(refused.status == 422 && refused.detail.contains("ifMatch takes"), "\(wrong): \(refused.text)")
    }
  }

  @Test("an Idempotency-Key that would do nothing is refused, and nothing is written")
  func idleKeys() throws {
    let insert = #"{"operations":[{"op":"insert","collection":"A","document":{}}]}"#
    let transaction = try server.ask(
      "POST", "/v1/partitions/p/transaction", insert, headers: ["Idempotency-Key: k"])
    let lines = try server.ask(
      "POST", "/v1/partitions/p/collections/A/import", "{}", type: "application/x-ndjson",
      headers: ["Idempotency-Key: k"])
    for answer in [transaction, lines] {
      #expect(answer.status == 422 && answer.detail.contains("give each inserted document an _id"), "\(answer.text)")
    }
    #expect(server.node.ids.isEmpty)
    // Where every document has an id, what is sent again makes no second one, and a client may send its key everywhere.
    let named = try server.ask(
      "POST", "/v1/partitions/p/transaction",
      #"{"operations":[{"op":"insert","collection":"A","document":{"_id":"a"}},"#
        + #"{"op":"insert","collection":"A","id":"b","document":{}},{"op":"delete","collection":"A","id":"b"}]}"#,
      headers: ["Idempotency-Key: k"])
    let line = try server.ask(
      "POST", "/v1/partitions/p/collections/A/import", #"{"_id":"c"}"#, type: "application/x-ndjson",
      headers: ["Idempotency-Key: k"])
    #expect(named.status == 200 && line.status == 200, "\(named.text) \(line.text)")
    let mixed = try server.ask(
      "POST", "/v1/partitions/p/collections/A/import", "{\"_id\":\"d\"}\n{}", type: "application/x-ndjson",
      headers: ["Idempotency-Key: k"])
    #expect(mixed.status == 422 && !server.node.ids.contains(.string("d")))
  }

  @Test("the description says how much one change holds, and of which requests a key makes one")
  func describedBounds() throws {
    func summary(_ name: String) throws -> String { try #require(allRoutes.first { $0.name == name }).summary }
    let transact = try summary("transact")
    #expect(
      transact.contains("\(Run.changePayloadByteLimit) bytes") && transact.contains("\(Run.operationLimit) values"))
    #expect(try transact.contains("no _id") && summary("importDocuments").contains("no _id"))
    #expect(try summary("insertDocument").contains("not in the order of time"))
  }

  @Test("a document in a transaction nests as deep as one that stands alone, and no deeper")
  func depth() throws {
    func nested(_ levels: Int) -> String {
      String(repeating: #"{"a":"#, count: levels - 1) + "{}" + String(repeating: "}", count: levels - 1)
    }
    func status(_ levels: Int) throws -> (Int, Int) {
      let alone = try server.ask("PUT", path + "/d", nested(levels)).status
      let inside = #"{"operations":[{"op":"put","collection":"A","id":"1","document":\#(nested(levels))}]}"#
      return (alone, try server.ask("POST", "/v1/partitions/p/transaction", inside).status)
    }
    #expect(try status(64) == (201, 200))
    #expect(try status(65) == (422, 422))
  }

  @Test("the node's refusals become the status of their kind", arguments: NodeError.Code.allCases)
  func nodeErrors(code: NodeError.Code) throws {
    server.node.fail(NodeError(code, "for this reason"))
    let answer = try server.ask("PUT", path + "/a", "{}")
    let expected: [NodeError.Code: Int] = [
      .badRequest: 400, .notFound: 404, .notPermitted: 403, .preconditionFailed: 412, .tooLarge: 413,
      .unprocessable: 422, .diskFull: 507, .readOnly: 503, .busy: 503, .unanswered: 504, .stopping: 503,
      .failed: 500,
      .damaged: 503, .storeFailed: 503, .otherVersion: 500,
    ]
    #expect(answer.status == expected[code])
    #expect(answer.headers["content-type"] == "application/problem+json")
    #expect(answer.json["type"] == .string(Text("urn:seamesh:problem:\(code.rawValue)")))
    #expect(answer.detail == "for this reason")
  }
}
