import Foundation
import Glibc
import LocalAPITestSupport
import Replication
import Seamesh
import Testing
import TestSupport

@testable import LocalAPI

@Suite("Limits")
struct LimitTests {
  let server: TestServer
  let path = "/v1/partitions/p/collections/c/documents/a"

  init() throws { server = try TestServer() }

  private func head(_ method: String, _ length: String, extra: String = "") -> [UInt8] {
    Array("\(method) \(path) HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\(length)\r\n\(extra)\r\n".utf8)
  }

  @Test("a document of exactly the body limit is taken, one byte more answers 413 with the limit")
  func exactLimit() throws {
    let limit = ServerLimit.documentBodyBytes
    let fitting = "{\"a\":\"" + String(repeating: "x", count: limit - 8) + "\"}"
    #expect(try server.ask("PUT", path, fitting).status == 201)
    let answer = try server.ask("PUT", path, fitting + " ")
    #expect(answer.status == 413)
    #expect(answer.json["limit"] == .int(Int64(limit)))
    #expect(answer.json["unit"] == .string("bytes"))
  }

  @Test("100 MB are dropped as they come, not kept, and answered with 413", arguments: ["PUT", "PATCH"])
  func hugeBody(method: String) throws {
    let before = residentBytes()
    let connection = try Connection(unixSocket: server.server.endpoints.socket)
    connection.send(head(method, "Content-Length: 100000000", extra: "Connection: close\r\n"))
    let piece = [UInt8](repeating: UInt8(ascii: " "), count: 1_000_000)
    for _ in 0..<100 { #expect(connection.send(piece)) }
    #expect(try connection.readAnswer().status == 413)
    #expect(residentBytes() - before < 50_000_000)
  }

  @Test("a chunked body without an announced length meets the same limit")
  func chunkedBody() throws {
    let connection = try Connection(unixSocket: server.server.endpoints.socket)
    connection.send(head("PUT", "Transfer-Encoding: chunked", extra: "Connection: close\r\n"))
    let piece = [UInt8](repeating: UInt8(ascii: " "), count: 0x10000)
    for _ in 0..<3_000 { connection.send(Array("10000\r\n".utf8) + piece + Array("\r\n".utf8)) }
    connection.send(Array("0\r\n\r\n".utf8))
    #expect(try connection.readAnswer().status == 413)
    #expect(server.node.writes == 0)
  }

  @Test("a client that waits for 100 Continue is refused before it sends", arguments: ["PUT", "PATCH"])
  func expectation(method: String) throws {
    let connection = try Connection(unixSocket: server.server.endpoints.socket)
    connection.send(head(method, "Content-Length: 100000000", extra: "Expect: 100-continue\r\n"))
    #expect(try connection.readAnswer().status == 413)
  }

  @Test("a body beyond anything that would be dropped is refused at once")
  func absurdBody() throws {
    let connection = try Connection(unixSocket: server.server.endpoints.socket)
    connection.send(head("PUT", "Content-Length: 9000000000000000000"))
    #expect(try connection.readAnswer().status == 413)
  }

  @Test("a request that takes no body refuses one")
  func uselessBody() throws {
    #expect(try server.ask("GET", "/v1/status", "{}").status == 413)
    #expect(try server.ask("PUT", "/v1/subscriptions/x", "{}").status == 413)
  }

  @Test("headers beyond the connection's memory end the request")
  func hugeHeaders() throws {
    let long = String(repeating: "x", count: ServerLimit.connectionMemoryBytes + 1)
    let answer = try? server.ask("GET", "/v1/status", headers: ["X-Long: \(long)"])
    #expect(answer == nil || (400..<500).contains(answer?.status ?? 0))
    let target = try? server.ask("GET", "/v1/\(long)")
    #expect(target == nil || (400..<500).contains(target?.status ?? 0))
    #expect(try server.ask("GET", "/v1/status").status == 200)
  }

  @Test("a limit that the node names is a member of the problem, as those of the interface itself are")
  func limitOfNode() throws {
    server.node.fail(NodeError(.tooLarge, "a document has at most 9 bytes", limit: NodeError.Limit(9, "bytes")))
    let answer = try server.ask("PUT", path, "{}")
    #expect(answer.status == 413 && answer.json["limit"] == .int(9) && answer.json["unit"] == .string("bytes"))
  }

  @Test("a target or headers above the limit are refused as problems that name it")
  func longHeads() throws {
    let (target, header) = (ServerLimit.targetBytes, ServerLimit.headerBytes)
    let refused = try server.ask("GET", "/" + String(repeating: "x", count: target))
    #expect(refused.status == 414 && refused.json["limit"] == .int(Int64(target)), "\(refused.text)")
    #expect(try server.ask("GET", "/" + String(repeating: "x", count: target - 1)).status == 404)
    let large = try server.ask("GET", "/v1/status", headers: ["X-Long: " + String(repeating: "x", count: header)])
    #expect(large.status == 431 && large.json["limit"] == .int(Int64(header)), "\(large.text)")
    for answer in [refused, large] { #expect(answer.headers["content-type"] == "application/problem+json") }
  }

  @Test("a transfer encoding that is not known is refused at once, since nothing tells where the body ends")
  func unknownEncoding() throws {
    let connection = try Connection(unixSocket: server.server.endpoints.socket)
    connection.send(head("PUT", "Transfer-Encoding: gzip"))
    let answer = try connection.readAnswer()
    #expect(answer.status == 400 && answer.headers["connection"] == "close", "\(answer.text)")
  }

  @Test("a body that trickles is cut off after a time, however steadily it comes")
  func slowBody() throws {
    var patience = LocalServerConfiguration.Patience()
    patience.requestMilliseconds = 100
    let impatient = try TestServer(patience: patience)
    let connection = try Connection(unixSocket: impatient.server.endpoints.socket)
    connection.send(head("PUT", "Content-Length: 1000000"))
    eventually("the connection was not closed") { !connection.send([UInt8(ascii: " ")]) }
    #expect(impatient.node.writes == 0)
  }

  @Test("headers that trickle are cut off after a time, however steadily they come", arguments: [false, true])
  func slowHeaders(isSecondRequest: Bool) throws {
    var patience = LocalServerConfiguration.Patience()
    (patience.requestMilliseconds, patience.idleSeconds) = (300, 1)
    let impatient = try TestServer(patience: patience)
    let connection = try Connection(unixSocket: impatient.server.endpoints.socket)
    if isSecondRequest {
      connection.send(Array("GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      #expect(try connection.readAnswer().status == 200)
    }
    connection.send(Array("GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Slow: ".utf8))
    eventually("the connection was not closed") { !connection.send([UInt8(ascii: "y")]) }
    #expect(try impatient.ask("GET", "/v1/status").status == 200)
  }

  enum Idle: CaseIterable { case silent, trickling, answered }

  @Test("however many connections ask for nothing, who asks is answered", arguments: Idle.allCases)
  func idleHouse(of kind: Idle) throws {
    let idle = try (0..<Int(ServerLimit.connections)).map { _ in
      let connection = try Connection(unixSocket: server.server.endpoints.socket)
      if kind == .trickling { connection.send(Array("GET /v1/status HTTP/1.1\r\nX-Slow: ".utf8)) }
      if kind == .answered {
        connection.send(Array("GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        _ = try connection.wait(for: "200 OK")
      }
      return connection
    }
    // Where no room is made, they keep it for three times as long as this waits.
    for _ in 0..<20 { eventually("nobody is answered") { (try? server.ask("GET", "/v1/status").status) == 200 } }
    // Who has waited for longest made room: what it was sent comes to its end.
    while try idle[0].readMore() {}
  }

  @Test("where nobody could go, for what each had sent was not looked at yet, room is made once it has been")
  func roomLater() throws {
    let table = ConnectionTable(limit: 10, .init())
    let pairs = (0..<10).map { _ in
      var ends: [Int32] = [-1, -1]
      _ = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
      return (server: ends[0], client: ends[1])
    }
    defer { for pair in pairs { [pair.server, pair.client].forEach { _ = close($0) } } }
    func ended() -> [Int] {
      var byte: UInt8 = 0
      return pairs.indices.filter { recv(pairs[$0].client, &byte, 1, Int32(MSG_DONTWAIT)) == 0 }
    }
    for pair in pairs {
      try #require(send(pair.client, "G", 1, 0) == 1)
      table.opened(pair.server)
    }
    #expect(ended() == [])
    var byte: UInt8 = 0
    for pair in pairs { try #require(recv(pair.server, &byte, 1, 0) == 1) }
    eventually("no room was made") { ended() == [0] }
  }

  @Test("a request whose headers disagree on its end is refused, and its connection ended")
  func framing() throws {
    for lines in [
      ["Content-Length: 2", "Content-Length: 7"], ["Content-Length: 2", "Transfer-Encoding: chunked"],
    ] {
      let connection = try Connection(unixSocket: server.server.endpoints.socket)
      connection.send(head("PUT", lines[0], extra: lines[1] + "\r\n") + Array("{}".utf8))
      let answer = try connection.readAnswer()
      #expect(answer.status == 400 && answer.headers["connection"] == "close", "\(lines)")
    }
    #expect(server.node.writes == 0)
  }

  @Test("a body with an encoding is refused, not taken for JSON")
  func encodings() throws {
    #expect(try server.ask("PUT", path, "{}", headers: ["Content-Encoding: gzip"]).status == 415)
    #expect(try server.ask("PUT", path, "{}", headers: ["Content-Encoding: identity"]).status == 201)
  }

  @Test("a client that sends nothing, or reads nothing, is cut off")
  func idleness() throws {
    var patience = LocalServerConfiguration.Patience()
    patience.idleSeconds = 1
    let impatient = try TestServer(patience: patience)
    let silent = try Connection(unixSocket: impatient.server.endpoints.socket)
    let deaf = try Connection(unixSocket: impatient.server.endpoints.socket)
    let long = Value.string(Text(String(repeating: "x", count: 100_000)))
    try impatient.put(PartitionName("p"), "c", id: .int(1), ValueMap([.init(key: "t", value: long)]) ?? ValueMap())
    impatient.node.stallExports()
    deaf.send(Array("GET /v1/partitions/p/documents HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
    eventually("the export did not begin") { impatient.node.openExports == 1 }
    #expect(try !silent.readMore())
    eventually("the export goes on for nobody") { impatient.node.openExports == 0 }
  }

  @Test("bytes that are not HTTP do no harm")
  func garbage() throws {
    var generator = SplitMix64(seed: 7)
    for _ in 0..<50 {
      let connection = try Connection(unixSocket: server.server.endpoints.socket)
      connection.send(
        (0..<Int.random(in: 1..<600, using: &generator)).map { _ in
          UInt8.random(in: 0...255, using: &generator)
        })
      shutdown(connection.socket, Int32(SHUT_WR))
      _ = try? connection.readAnswer()
    }
    #expect(try server.ask("GET", "/v1/status").status == 200)
  }

  @Test("a GET changes nothing, whatever it asks for")
  func getsAreReads() throws {
    _ = try server.ask("PUT", path, "{}")
    let (writes, ids) = (server.node.writes, server.node.ids)
    for target in [
      path, "/v1/status", "/v1/peers", "/v1/devices", "/v1/partitions", "/v1/subscriptions", "/v1/subscriptions/x",
      "/v1/doctor", "/metrics", "/v1/openapi.json", "/v1/partitions/p/documents", "/v1/invitations", "/v1/backup",
      "/v1/partitions/p/collections/c/documents", "/v1/partitions/p/collections/c/find",
      "/v1/partitions/p/collections/c/import", "/v1/partitions/p/transaction", "/v1/forwarding/send",
    ] { _ = try server.ask("GET", target) }
    #expect(server.node.writes == writes && server.node.ids == ids)
    #expect(try server.node.subscriptions().isEmpty && server.node.lastInvitation == nil)
    #expect(server.node.sendsAsked == 0)
  }

  private func residentBytes() -> Int {
    let fields = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ") ?? []
    return (fields.dropFirst().first.flatMap { Int($0) } ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }
}
