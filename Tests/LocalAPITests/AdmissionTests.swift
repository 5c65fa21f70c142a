import Foundation
import LocalAPITestSupport
import Testing

@testable import LocalAPI

@Suite("Who may ask")
struct AdmissionTests {
  let server: TestServer

  init() throws { server = try TestServer(loopback: LoopbackAddress(port: 0)) }

  @Test("socket and token file are their owner's alone")
  func modes() throws {
    for path in [server.server.endpoints.socket, server.directory + "/api.token"] {
      let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      #expect(mode == 0o600)
    }
    #expect(server.token.count == 64)
  }

  @Test("the token admits, and nothing near it does")
  func tokens() throws {
    #expect(try server.askLoopback("GET", "/v1/status").status == 200)
    let wrong = String(server.token.dropLast()) + (server.token.hasSuffix("0") ? "1" : "0")
    for token in [wrong, "", server.token + "0", String(server.token.dropLast()), server.token.uppercased() + "x"] {
      let answer = try server.askLoopback("GET", "/v1/status", token: token)
      #expect(answer.status == 401)
      #expect(answer.headers["www-authenticate"]?.hasPrefix("Bearer") == true)
    }
    let bare = try Connection(port: server.port)
    #expect(
      try bare.ask("GET", "/v1/openapi.json", nil, type: "", host: "127.0.0.1:\(server.port)").status == 401)
  }

  @Test("two Authorization headers admit nobody")
  func doubledToken() throws {
    #expect(try server.askLoopback("GET", "/v1/status", headers: ["Authorization: Bearer x"]).status == 401)
  }

  @Test("a forged Host is turned away, token or not")
  func forgedHost() throws {
    for host in ["evil.example", "evil.example:\(server.port)", "127.0.0.1:1", "127.0.0.1.evil.example", "0.0.0.0"] {
      #expect(try server.askLoopback("GET", "/v1/status", host: host).status == 421, "\(host)")
      #expect(try server.askLoopback("GET", "/v1/status", host: host, token: "x").status == 421, "\(host)")
    }
    for host in ["localhost:\(server.port)", "LOCALHOST:\(server.port)", "[::1]:\(server.port)", "localhost"] {
      #expect(try server.askLoopback("GET", "/v1/status", host: host).status == 200, "\(host)")
    }
    let doubled = try server.askLoopback("GET", "/v1/status", headers: ["Host: 127.0.0.1:\(server.port)"])
    #expect(doubled.status == 421 || doubled.status == 400)
  }

  @Test("a request with an Origin is refused on both listeners, and no answer ever allows one")
  func origins() throws {
    for origin in ["https://evil.example", "null", "http://127.0.0.1:\(server.port)"] {
      let answer = try server.askLoopback("PUT", "/v1/subscriptions/x", headers: ["Origin: \(origin)"])
      #expect(answer.status == 403)
      #expect(!answer.headers.keys.contains { $0.hasPrefix("access-control") })
      #expect(try server.ask("PUT", "/v1/subscriptions/x", headers: ["Origin: \(origin)"]).status == 403)
    }
    #expect(try server.node.subscriptions().isEmpty)
    let good = try server.askLoopback("GET", "/v1/status")
    #expect(!good.headers.keys.contains { $0.hasPrefix("access-control") })
  }

  @Test("a write without a JSON content type is refused before it is read")
  func contentTypes() throws {
    for type in [
      "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json; charset=latin-1",
    ] {
      let answer = try server.ask("PUT", "/v1/partitions/p/collections/c/documents/a", "{}", type: type)
      #expect(answer.status == 415)
    }
    let charset = try server.ask(
      "PUT", "/v1/partitions/p/collections/c/documents/a", "{}", type: "application/json; charset=utf-8")
    #expect(charset.status == 201)
  }

  @Test("invitations and backups are given over the Unix socket only")
  func unixSocketOnly() throws {
    #expect(try server.askLoopback("POST", "/v1/invitations", #"{"user":"a"}"#).status == 403)
    #expect(try server.askLoopback("POST", "/v1/backup", #"{"path":"/x"}"#).status == 403)
    #expect(server.node.lastInvitation == nil)
  }

  @Test("a second start takes the token that is there; a damaged one is not replaced")
  func tokenIsKept() throws {
    let token = server.token
    server.server.stop()
    let configuration = LocalServerConfiguration(directory: server.directory, loopback: LoopbackAddress(port: 0))
    try LocalServer.start(node: server.node, configuration: configuration).stop()
    #expect(server.token == token)
    try "not a token".write(toFile: server.directory + "/api.token", atomically: false, encoding: .utf8)
    #expect(throws: LocalServerError.damagedToken(server.directory + "/api.token")) {
      try LocalServer.start(node: server.node, configuration: configuration)
    }
    #expect(!FileManager.default.fileExists(atPath: server.directory + "/api.sock"))
  }

  @Test("a token that others could read admits nobody from the next start on", arguments: [0o644, 0o640, 0o604, 0o620])
  func tokenInTheOpen(mode: mode_t) throws {
    let (file, old) = (server.directory + "/api.token", server.token)
    #expect(!server.server.endpoints.isTokenReplaced)
    server.server.stop()
    try #require(chmod(file, mode) == 0)
    let reader = try #require(FileHandle(forReadingAtPath: file))
    let configuration = LocalServerConfiguration(directory: server.directory, loopback: LoopbackAddress(port: 0))
    let second = try LocalServer.start(node: server.node, configuration: configuration)
    #expect(second.endpoints.isTokenReplaced && server.token != old && server.token.count == 64)
    #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
    #expect(try reader.readToEnd().map { String(decoding: $0, as: UTF8.self) } == old + "\n")
    for (token, status) in [(old, 401), (server.token, 200)] {
      let port = second.endpoints.url.flatMap { UInt16($0.split(separator: ":").last ?? "") } ?? 0
      let answer = try Connection(port: port).ask(
        "GET", "/v1/status", nil, type: "", host: "127.0.0.1:\(port)", headers: ["Authorization: Bearer \(token)"])
      #expect(answer.status == status)
    }
    second.stop()
    let third = try LocalServer.start(node: server.node, configuration: configuration)
    #expect(!third.endpoints.isTokenReplaced)
    third.stop()
  }

  @Test(
    "TCP is opened on this machine's own addresses only",
    arguments: ["0.0.0.0:80", "192.168.1.4:80", "example.com:80", "[::]:80", "127.0.0.1", "127.0.0.1:70000", "::1:80"])
  func otherAddresses(text: String) {
    #expect(throws: LocalServerError.notLoopback(text)) { try LoopbackAddress(text) }
  }

  @Test("loopback addresses are read in all their forms")
  func addresses() throws {
    #expect(try LoopbackAddress("8080") == LoopbackAddress(port: 8_080))
    #expect(try LoopbackAddress("localhost:0") == LoopbackAddress(port: 0))
    #expect(try LoopbackAddress("[::1]:7") == LoopbackAddress(host: .v6, port: 7))
  }

  @Test("a directory where the socket belongs is named, and left as it is")
  func occupiedSocket() throws {
    let directory = NSTemporaryDirectory() + "/seamesh-api-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: directory + "/api.sock", withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let error = #expect(throws: LocalServerError.self) {
      try LocalServer.start(node: FakeNode(), configuration: LocalServerConfiguration(directory: directory))
    }
    #expect(error?.description.contains("is in the way of the socket") == true, "\(String(describing: error))")
  }

  @Test("a token has its name once it is whole: what a cut-off start left is no hindrance")
  func wholeToken() throws {
    let path = NSTemporaryDirectory() + "/seamesh-token-" + UUID().uuidString
    defer { unlink(path) }
    #expect(FileManager.default.createFile(atPath: path + ".new", contents: Data("abc".utf8)))
    let token = try BearerToken(path: path)
    #expect(try BearerToken(path: path).hexadecimal == token.hexadecimal)
    #expect(!FileManager.default.fileExists(atPath: path + ".new"))
  }
}
