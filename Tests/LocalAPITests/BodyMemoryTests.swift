import Foundation
import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@testable import LocalAPI

@Suite("Memory of bodies", .serialized)
struct BodyMemoryTests {
  let server: TestServer
  let collection = "/v1/partitions/p/collections/c"

  init() throws { server = try TestServer() }

  /// The most that this process has taken, in bytes.
  private func peakBytes() -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") } ?? ""
    return (Int(line.filter(\.isNumber)) ?? 0) * 1_024
  }

  private func values(_ count: Int) -> String { "[" + String(repeating: "1,", count: max(0, count - 2)) + "1]" }

  private func imported(_ body: String) throws -> Answer {
    try server.ask("POST", collection + "/import", body, type: "application/x-ndjson")
  }

  private func errors(_ answer: Answer) -> [ValueMap?] {
    (answer.json["results"]?.asArray ?? []).map { $0.asMap?["error"]?.asMap }
  }

  @Test("a body of nothing but line breaks takes no more memory than itself, and is refused with the limit")
  func blankLines() throws {
    let body = String(repeating: "\n", count: ServerLimit.importBodyBytes)
    let before = peakBytes()
    let answer = try imported(body)
    #expect(peakBytes() - before < 160 << 20)
    #expect(answer.status == 422 && answer.json["limit"] == .int(Int64(ServerLimit.importLines)), "\(answer.text)")
    #expect(answer.json["unit"] == .string("lines"))
    #expect(try imported(String(repeating: "\n", count: ServerLimit.importLines)).status == 200)
    let records = String(repeating: "{}\n", count: BulkLimit.requests + 1)
    let tooMany = try imported(records)
    #expect(tooMany.status == 422 && tooMany.json["unit"] == .string("records") && server.node.writes == 0)
  }

  @Test("a document of more values than one can have is refused with the limit, and where it was passed")
  func valuesOfDocument() throws {
    let limit = ServerLimit.documentValues
    for (method, type) in [("PUT", "application/json"), ("PATCH", "application/json")] {
      let body = "{\"$set\":{\"a\":" + values(limit) + "}}"
      let text = method == "PUT" ? String(body.dropFirst(8).dropLast()) : body
      let answer = try server.ask(method, collection + "/documents/a", text, type: type)
      #expect(answer.status == 413 && answer.json["limit"] == .int(Int64(limit)), "\(method): \(answer.text)")
      #expect(answer.json["unit"] == .string("values") && answer.json["offset"] != nil)
      #expect(answer.detail.contains("more than \(limit) values"), "\(answer.detail)")
    }
    #expect(server.node.writes == 0)
  }

  @Test("a transaction of more values than a change can hold is refused with the limit")
  func valuesOfTransaction() throws {
    let limit = ServerLimit.transactionValues
    let body = "{\"operations\":" + values(limit) + "}"
    let answer = try server.ask("POST", "/v1/partitions/p/transaction", body)
    #expect(answer.status == 413 && answer.json["limit"] == .int(Int64(limit)), "\(answer.text)")
    #expect(answer.json["unit"] == .string("values"))
  }

  @Test("of an import each line may have as many values as a document, and one that has more is told by its line")
  func valuesOfLines() throws {
    let large = values(ServerLimit.documentValues - 2)
    let lines = ["a", "b", "c"].map {
      "{\"_id\":\"\($0)\",\"n\":" + ($0 == "b" ? values(.init(1 << 20) + 70_000) : large) + "}"
    }
    let answer = try imported(lines.joined(separator: "\n") + "\n{\"_id\":\"e\"}")
    #expect(answer.status == 200 && answer.json["imported"] == .int(3), "\(answer.text.prefix(2_000))")
    #expect(errors(answer).map { $0?["status"] } == [nil, .int(413), nil, nil])
    #expect(errors(answer)[1]?["limit"] == .int(Int64(ServerLimit.documentValues)))
    #expect(Set(server.node.ids) == [.string("a"), .string("c"), .string("e")])
  }

  @Test("what a node refuses of an import that went in by half is told of each record that did not")
  func halfAnImport() throws {
    let large = values(ServerLimit.documentValues - 2)
    let body = ["a", "b"].map { "{\"_id\":\"\($0)\",\"n\":\(large)}" }.joined(separator: "\n") + "\n{}\n{\"_id\":[]}"
    server.node.beBusy(times: 1, after: 1)
    let answer = try imported(body)
    #expect(answer.status == 200 && answer.json["imported"] == .int(1) && answer.json["failed"] == .int(3))
    #expect(errors(answer).map { $0?["status"] } == [nil, .int(503), .int(503), .int(422)], "\(answer.text)")
    #expect(server.node.ids == [.string("a")])
  }

  @Test(
    "values of all bodies together are bounded, little ones are read all the same, and each gives back what it took")
  func together() throws {
    let values = BodyBudget(limit: 10_000)
    let streams = StreamSupervisor()
    let service = RequestService(
      node: server.node, admission: Admission(channel: .unixSocket, token: nil, port: 0),
      router: Router(routes: allRoutes), budget: BodyBudget(limit: 1), values: values, streams: streams,
      connections: ConnectionTable(limit: 10, .init()), patience: .init())
    func put(_ count: Int) throws -> Response {
      let target = try RequestTarget(raw: collection + "/documents/a")
      let match = try service.router.match(method: "PUT", target: target)
      let body = Array(("{\"a\":" + self.values(count) + "}").utf8)
      return service.answer(
        match.route,
        Request(
          channel: .unixSocket, target: target, parameters: match.parameters, headers: HeaderList(), body: body,
          contentType: .json, socket: -1))
    }
    #expect(values.reserve(5_000))
    let refused = try put(6_000)
    #expect(refused.status == 503 && refused.headers.contains(Header("Retry-After", "1")))
    #expect(try put(ServerLimit.littleValues - 2).status == 201 && put(4_900).status == 200)
    values.release(5_000)
    #expect(try put(9_000).status == 200 && values.reserve(10_000))
  }

  @Test("the description says how many values and lines a body may have, where its bytes allow more")
  func described() throws {
    let paths = openAPI(allRoutes).asMap?["paths"]?.asMap
    func extent(_ path: String, _ method: Text) -> String {
      let operation = paths?[Text(path)]?.asMap?[method]?.asMap
      guard case .string(let text)? = operation?["requestBody"]?.asMap?["description"] else { return "" }
      return text.string
    }
    let collection = "/v1/partitions/{partition}/collections/{collection}"
    #expect(extent(collection + "/import", "post").contains(" \(ServerLimit.importLines) lines"))
    #expect(extent(collection + "/documents/{id}", "put").contains(" \(ServerLimit.documentValues) values"))
    #expect(
      extent("/v1/partitions/{partition}/transaction", "post").contains(" \(ServerLimit.transactionValues) values"))
    #expect(extent(collection + "/find", "post") == "At most \(ServerLimit.smallBodyBytes) bytes.")
  }
}
