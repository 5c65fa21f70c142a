import Foundation
import Glibc
import LocalAPI
import LocalAPITestSupport
import Replication
import Seamesh
import Synchronization
import Testing

@testable import SeameshCommand

/// Answers every connection with the same bytes, and closes it.
private final class CannedServer: Sendable {
  let directory = NSTemporaryDirectory() + "/seamesh-canned-" + String(UUID().uuidString.prefix(8))
  private let listener: Int32
  private let received = Mutex<[UInt8]>([])
  private let ended = DispatchSemaphore(value: 0)

  init(_ answer: String) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: Array((directory + "/api.sock").utf8)) }
    let bound = withUnsafePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(bound == 0 && listen(listener, 8) == 0)
    Thread.detachNewThread { [self] in serve(Array(answer.utf8)) }
  }

  var request: String { received.withLock { String(decoding: $0, as: UTF8.self) } }

  private func serve(_ answer: [UInt8]) {
    defer { ended.signal() }
    while true {
      let peer = accept(listener, nil, nil)
      guard peer >= 0 else { return }
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let count = recv(peer, &buffer, buffer.count, 0)
      received.withLock { $0 = Array(buffer.prefix(max(0, count))) }
      _ = answer.withUnsafeBytes { send(peer, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      close(peer)
    }
  }

  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    // The next server's listener may get the number of this one.
    ended.wait()
    close(listener)
    try? FileManager.default.removeItem(atPath: directory)
  }
}

@Suite("How the command speaks with a node")
struct ClientTests {
  private func failure(_ answer: String, _ target: String = "/v1/status") throws -> Failure? {
    let server = try CannedServer(answer)
    defer { server.stop() }
    do throws(Failure) {
      _ = try NodeClient(directory: server.directory).ask(.init(target: target)).json()
      return nil
    } catch {
      return error
    }
  }

  private func problem(_ status: Int, _ body: String) -> String {
    "HTTP/1.1 \(status) X\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
  }

  @Test(
    "a refusal's status becomes the exit status, its sentence the message",
    arguments: [
      (400, 1), (401, 4), (403, 4), (404, 3),
      (409, 1),
      (412, 1), (413, 1), (422, 1), (500, 1), (503, 1), (507, 1),
    ] as [(Int, Int32)])
  func refusals(status: Int, expected: Int32) throws {
    let failure = try failure(problem(status, #"{"type":"urn:seamesh:problem:x","detail":"for this\u0007 reason"}"#))
    #expect(failure?.status.rawValue == expected && failure?.message == "for this? reason")
  }

  @Test("a busy node is told from one in trouble")
  func busy() throws {
    #expect(try failure(problem(503, #"{"type":"urn:seamesh:problem:busy","detail":"d"}"#))?.isBusy == true)
    #expect(try failure(problem(503, #"{"type":"urn:seamesh:problem:stopping","detail":"d"}"#))?.isBusy == false)
  }

  @Test("an answer without a sentence, or that is no JSON, is told by its status or its place")
  func oddAnswers() throws {
    #expect(try failure(problem(418, "<html>"))?.message == "the node answered with status 418")
    #expect(try failure(problem(500, ""))?.message == "the node answered with status 500")
    #expect(try failure(problem(414, ""))?.message.contains("shorten the filter") == true)
    #expect(try failure(problem(200, "{"))?.message.contains("the node's answer cannot be read: Line 1") == true)
    #expect(try failure(problem(200, "{\"a\":1}")) == nil)
  }

  @Test("a node that goes away before or within its answer is not reachable")
  func goneAway() throws {
    for answer in [
      "", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ] {
      let failure = try failure(answer)
      #expect(failure?.status == .unreachable && failure?.message.contains("went away") == true, "\(answer)")
    }
    let directory = NSTemporaryDirectory() + "/none-" + UUID().uuidString
    let none = #expect(throws: Failure.self) { try NodeClient(directory: directory).ask(.init(target: "/")) }
    #expect(none?.status == .unreachable && none?.message.contains("no node is running on \(directory)") == true)
  }

  @Test("a request goes out as it was made: method, target as it is, headers and type of its body")
  func requests() throws {
    let server = try CannedServer("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
    defer { server.stop() }
    let client = try NodeClient(directory: server.directory)
    let answer = try client.ask(
      .init(
        method: "PATCH", target: "/v1/a%2F../b?x=%20", body: Array("{\"n\":1}".utf8), contentType: "x/y",
        headers: ["If-Match: \"v0\""]))
    #expect(answer.etag == "v1")
    let lines = server.request.split(separator: "\r\n").map(String.init)
    #expect(lines.first == "PATCH /v1/a%2F../b?x=%20 HTTP/1.1")
    #expect(lines.contains("If-Match: \"v0\"") && lines.contains("Content-Type: x/y") && lines.last == "{\"n\":1}")
    #expect(lines.contains("Content-Length: 7") && !server.request.contains("Expect"))
    _ = try client.ask(.init(method: "DELETE", target: "/v1/x"))
    #expect(server.request.hasPrefix("DELETE /v1/x HTTP/1.1\r\n") && !server.request.contains("Content-Length"))
    _ = try client.ask(.init(target: "/v1/x"))
    #expect(server.request.hasPrefix("GET /v1/x HTTP/1.1\r\n"))
  }

  @Test("a reader that has enough ends the request, and that is no failure")
  func enough() throws {
    let body = String(repeating: "x", count: 200_000)
    let server = try CannedServer("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    defer { server.stop() }
    var pieces = 0
    try NodeClient(directory: server.directory).stream(.init(target: "/")) { _ in
      pieces += 1
      return false
    }
    #expect(pieces == 1)
  }

  @Test("the socket is found through the link of a directory whose path is too long")
  func longDirectory() throws {
    let base = NSTemporaryDirectory() + "/" + String(repeating: "d", count: 120)
    let runtime = NSTemporaryDirectory() + "/rt-" + String(UUID().uuidString.prefix(8))
    for path in [base, runtime] {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    defer { for path in [base, runtime] { try? FileManager.default.removeItem(atPath: path) } }
    let server = try LocalServer.start(
      node: FakeNode(), configuration: LocalServerConfiguration(directory: base, runtimeDirectory: runtime))
    defer { server.stop() }
    #expect(try NodeClient(directory: base).ask(.init(target: "/v1/status")).json().text("fleetName") == "test fleet")
  }

  @Test("a file is read in pieces up to its limit; what cannot be read is told with the exit status that fits")
  func files() throws {
    let path = NSTemporaryDirectory() + "/file-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: path) }
    let content = [UInt8](repeating: 7, count: InputFile.pieceBytes + 1)
    try Data(content).write(to: URL(fileURLWithPath: path))
    let file = try InputFile(path)
    #expect(
      file.byteCount == Int64(content.count) && file.name == path && InputFileName.standardInput == "standard input")
    #expect(try file.next().count == InputFile.pieceBytes && file.next().count == 1 && file.next().isEmpty)
    #expect(try InputFile(path).readAll(limit: content.count) == content)
    let large = #expect(throws: Failure.self) { try InputFile(path).readAll(limit: content.count - 1) }
    #expect(large?.status == .failed && large?.message.contains("larger than \(content.count - 1) bytes") == true)
    #expect(#expect(throws: Failure.self) { try InputFile(path + "x") }?.status == .notFound)
    #expect(#expect(throws: Failure.self) { try InputFile("/").next() }?.status == .failed)
    #expect(try readFile(path + "x", limit: 1, ifMissing: "{}") == Array("{}".utf8))
    #expect(isFile(path) && !isFile("/") && !isFile(path + "x") && isFile("/dev/null"))
  }
}

private enum InputFileName {
  static var standardInput: String { (try? InputFile("-").name) ?? "" }
}
