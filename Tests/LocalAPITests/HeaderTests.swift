import LocalAPI
import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@Suite("Methods, headers and connections")
struct HeaderTests {
  let server: TestServer
  let document = "/v1/partitions/p/collections/c/documents/a"

  init() throws { server = try TestServer() }

  @Test("HEAD answers wherever GET does, with the same headers and no body")
  func heads() throws {
    _ = try server.ask("PUT", document, #"{"n":1}"#)
    for target in ["/v1/status", "/v1/peers", "/metrics", "/v1/openapi.json", document, "/v1/partitions/p/documents"] {
      let (get, head) = (try server.ask("GET", target), try server.ask("HEAD", target))
      #expect(head.status == get.status && head.body.isEmpty, "\(target)")
      for name in ["content-type", "etag", "cache-control"] { #expect(head.headers[name] == get.headers[name]) }
    }
    #expect(try server.ask("HEAD", document + "b").status == 404)
    #expect(try server.ask("HEAD", "/v1/backup").status == 405)
  }

  @Test(
    "a method that a path does not take answers 405 with those that it takes",
    arguments: [
      ("POST", "/v1/status", "GET"), ("GET", "/v1/backup", "POST"), ("DELETE", "/v1/subscriptions", "GET"),
      ("POST", "/v1/subscriptions/x", "DELETE, PUT"), ("TRACE", "/v1/status", "GET"),
      ("POST", "/v1/partitions/p/collections/c/documents/a", "DELETE, GET, PATCH, PUT"),
      ("PUT", "/v1/partitions/p/collections/c/documents", "GET, POST"),
    ])
  func methods(method: String, target: String, allowed: String) throws {
    let answer = try server.ask(method, target)
    #expect(answer.status == 405)
    #expect(answer.headers["allow"]?.split(separator: ", ").sorted().joined(separator: ", ") == allowed)
    #expect(answer.json["type"] == .string("urn:seamesh:problem:method-not-allowed"))
  }

  @Test("one connection takes request after request, also when they were sent before the first answer")
  func pipelining() throws {
    let connection = try Connection(unixSocket: server.server.endpoints.socket)
    let body = "{}"
    func request(_ id: Int, last: Bool = false) -> String {
      "PUT /v1/partitions/p/collections/c/documents/\(id) HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        + (last ? "Connection: close\r\n" : "") + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }
    connection.send(Array((0..<20).map { request($0, last: $0 == 19) }.joined().utf8))
    while try connection.readMore() {}
    #expect(server.node.ids.count == 20)
  }

  @Test("a busy node says when to come again, a refusal for good does not")
  func retryAfter() throws {
    for (code, seconds) in [(.busy, "1"), (.stopping, nil), (.readOnly, nil), (.diskFull, nil)]
      as [(NodeError.Code, String?)]
    {
      server.node.fail(NodeError(code, "not now"))
      #expect(try server.ask("PUT", document, "{}").headers["retry-after"] == seconds, "\(code)")
    }
  }

  @Test("a content type that is missing, doubled or another one answers 415 with those that are taken")
  func contentTypes() throws {
    let none = try Connection(unixSocket: server.server.endpoints.socket)
    none.send(Array("PUT \(document) HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}".utf8))
    #expect(try none.readAnswer().status == 415)
    let doubled = try server.ask("PUT", document, "{}", headers: ["Content-Type: application/json"])
    #expect(doubled.status == 415 && doubled.headers["accept"] == "application/json")
    let patch = try server.ask("PATCH", document, "{}", type: "application/x-ndjson")
    #expect(patch.headers["accept"] == "application/merge-patch+json or application/json")
    #expect(try server.ask("POST", "/v1/partitions/p/collections/c/import", "{}").status == 415)
    #expect(try server.ask("PUT", document, "{}", type: "APPLICATION/JSON ; charset=\"UTF-8\"").status == 415)
    #expect(try server.ask("PUT", document, "{}", type: "Application/JSON; Charset=UTF-8").status == 201)
    #expect(server.node.writes == 1)
  }

  @Test("the interface over TCP answers on IPv6's loopback as on IPv4's")
  func loopback6() throws {
    let six = try? TestServer(loopback: LoopbackAddress(host: .v6, port: 0))
    // A machine without IPv6 has nothing to show.
    guard let six else { return }
    #expect(six.server.endpoints.url?.hasPrefix("http://[::1]:") == true && six.port > 0)
  }
}
