import LocalAPI
import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@Suite("Imports over HTTP")
struct ImportTests {
  let server: TestServer
  let collection = "/v1/partitions/p/collections/c"

  init() throws { server = try TestServer() }

  private func post(_ body: String, query: String = "") throws -> Answer {
    try server.ask("POST", collection + "/import" + query, body, type: "application/x-ndjson")
  }

  private func results(_ answer: Answer) -> [ValueMap] { answer.json["results"]?.asArray.compactMap(\.asMap) ?? [] }

  @Test("a record replaces the document of its _id; with keepAbsent the fields that it leaves out stay")
  func replacing() throws {
    #expect(try post(#"{"_id":"a","n":1,"m":1}"#).status == 200)
    #expect(try post(#"{"_id":"a","n":2}"#, query: "?keepAbsent=true").status == 200)
    #expect(try server.ask("GET", collection + "/documents/a").text == "{\"_id\":\"a\",\"m\":1,\"n\":2}\n")
    #expect(try post(#"{"_id":"a","n":3}"#).status == 200)
    #expect(try server.ask("GET", collection + "/documents/a").text == "{\"_id\":\"a\",\"n\":3}\n")
    #expect(try post("{}", query: "?keepAbsent=1").status == 400)
    #expect(try post("{}", query: "?eraseAbsent=true").status == 400)
  }

  @Test("lines end with LF or CRLF, the last one with the body; empty ones and white space count, and are no records")
  func lineEnds() throws {
    let answer = try post("{\"_id\":1}\r\n\r\n \t\n{\"_id\":2}\n{\"_id\":3}")
    #expect(answer.json["imported"] == .int(3) && answer.json["failed"] == .int(0))
    #expect(results(answer).map { $0["line"] } == [1, 4, 5].map { .int($0) })
    #expect(try post("").json["results"] == .array([]))
    #expect(try post("\n\n").json["imported"] == .int(0))
  }

  @Test("what the node refuses of one record is told of that record, with its problem")
  func refusals() throws {
    server.node.refuse(.string("b"), NodeError(.tooLarge, "too many bytes"))
    server.node.refuse(.string("d"), NodeError(.notPermitted, "not yours"))
    let answer = try post("{\"_id\":\"a\"}\n{\"_id\":\"b\"}\n{\"_id\":\"c\"}\n{\"_id\":\"d\"}\n")
    #expect(answer.status == 200 && answer.json["imported"] == .int(2) && answer.json["failed"] == .int(2))
    let errors = results(answer).map { $0["error"]?.asMap }
    #expect(errors.map { $0?["status"] } == [nil, .int(413), nil, .int(403)])
    #expect(errors[1]?["type"] == .string("urn:seamesh:problem:too-large"))
    #expect(errors[3]?["detail"] == .string("not yours"))
    #expect(Set(server.node.ids) == [.string("a"), .string("c")])
  }

  @Test("where every record is bad, the node is not asked at all")
  func allBad() throws {
    server.node.fail(NodeError(.failed, "asked"))
    let answer = try post("[1]\n\"x\"\n{\"_id\":{}}\n")
    #expect(answer.status == 200 && answer.json["failed"] == .int(3))
    #expect(results(answer).map { $0["error"]?.asMap?["status"] } == [.int(400), .int(400), .int(422)])
  }

  @Test("a node in trouble refuses the whole batch")
  func trouble() throws {
    server.node.beBusy(times: 1)
    let busy = try post("{\"_id\":\"a\"}")
    #expect(busy.status == 503 && busy.headers["retry-after"] == "1")
    #expect(try post("{\"_id\":\"a\"}").status == 200)
  }

  @Test("a record is as large as a document may be, and its own error tells the place in its line")
  func recordLimits() throws {
    let long = "{\"_id\":\"a\",\"t\":\"" + String(repeating: "x", count: ServerLimit.documentBodyBytes) + "\"}"
    let answer = try post("{\"_id\":\"b\",\"a\":tru}\n" + long)
    let errors = results(answer).compactMap { $0["error"]?.asMap }
    #expect(errors.map { $0["status"] } == [.int(400), .int(413)])
    #expect(errors.first?["line"] == .int(1) && errors.first?["column"] == .int(16), "\(answer.text)")
    #expect(errors.last?["limit"] == .int(Int64(ServerLimit.documentBodyBytes)))
  }

  @Test("a record's result says its id, whether it was made, and the ETag that it has now")
  func members() throws {
    let answer = try post("{\"_id\":{\"$oid\":\"5ed554a47527930d67194feb\"}}\n{\"x\":1}")
    let first = results(answer)[0]
    #expect(first["id"] == .objectID(ObjectID(high: 0x5ed5_54a4_7527_930d, low: 0x6719_4feb)))
    #expect(first["created"] == .bool(true) && first["changed"] == .bool(true) && first["etag"] == .string("v1"))
    guard case .objectID? = results(answer)[1]["id"] else {
      Issue.record("a record without _id got no ObjectId")
      return
    }
  }
}
