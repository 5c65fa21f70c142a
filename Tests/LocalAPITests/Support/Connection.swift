import Glibc
import Replication
import Wire

struct ConnectionError: Error { let what: String }

struct Answer {
  let status: Int
  let headers: [String: String]
  let body: [UInt8]

  var text: String { String(decoding: body, as: UTF8.self) }
  var json: ValueMap { (try? ExtendedJSON.parse(body, operators: .allowed)).flatMap(\.asMap) ?? ValueMap() }
  var detail: String { if case .string(let text)? = json["detail"] { text.string } else { "" } }
}

extension Value {
  var asMap: ValueMap? { if case .map(let map) = self { map } else { nil } }
  var asArray: [Value] { if case .array(let items) = self { items } else { [] } }
}

/// A client that sends exactly the bytes it is given.
final class Connection {
  let socket: Int32
  private var received: [UInt8] = []

  init(unixSocket path: String) throws {
    socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    try connect(&name)
  }

  init(port: UInt16) throws {
    socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_port = port.bigEndian
    name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    try connect(&name)
  }

  deinit { close(socket) }

  private func connect<Name>(_ name: inout Name) throws {
    let result = withUnsafeMutablePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(socket, $0, socklen_t(MemoryLayout<Name>.size))
      }
    }
    guard result == 0 else { throw ConnectionError(what: "connect: \(errno)") }
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  /// False once the other end takes no more.
  @discardableResult func send(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  func ask(
    _ method: String, _ target: String, _ body: [UInt8]?, type: String, host: String = "localhost",
    headers: [String] = []
  ) throws -> Answer {
    var head = "\(method) \(target) HTTP/1.1\r\nConnection: close\r\n"
    if !host.isEmpty { head += "Host: \(host)\r\n" }
    for header in headers { head += header + "\r\n" }
    if let body { head += "Content-Type: \(type)\r\nContent-Length: \(body.count)\r\n" }
    send(Array("\(head)\r\n".utf8) + (body ?? []))
    return try readAnswer()
  }

  /// Everything until the other end closes.
  func readAnswer() throws -> Answer {
    while try readMore() {}
    let separator = Array("\r\n\r\n".utf8)
    guard let end = received.firstRange(of: separator) else {
      throw ConnectionError(what: "no answer: \(String(decoding: received, as: UTF8.self))")
    }
    let lines = String(decoding: received[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      let sides = line.split(separator: ":", maxSplits: 1)
      headers[sides[0].lowercased()] = sides.count == 2 ? String(sides[1].drop { $0 == " " }) : ""
    }
    let body = Array(received[end.upperBound...])
    let status = Int(lines.first?.split(separator: " ").dropFirst().first ?? "") ?? 0
    let isChunked = headers["transfer-encoding"] == "chunked"
    return Answer(status: status, headers: headers, body: isChunked ? try dechunked(body) : body)
  }

  /// Reads until `text` has come; what was read stays.
  func wait(for text: String) throws -> String {
    let deadline = ContinuousClock.now + .seconds(20)
    while ContinuousClock.now < deadline {
      let all = String(decoding: received, as: UTF8.self)
      if all.contains(text) { return all }
      guard try readMore() else { throw ConnectionError(what: "closed before \(text): \(all)") }
    }
    throw ConnectionError(what: "\(text) did not come within 20 s")
  }

  /// False at the end.
  func readMore() throws -> Bool {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(socket, &buffer, buffer.count, 0)
    if count < 0 && errno == EAGAIN { throw ConnectionError(what: "nothing came for 20 s") }
    guard count > 0 else { return false }
    received += buffer.prefix(count)
    return true
  }

  private func dechunked(_ body: [UInt8]) throws -> [UInt8] {
    var (rest, out) = (body[...], [UInt8]())
    while let end = rest.firstRange(of: Array("\r\n".utf8)) {
      guard let size = Int(String(decoding: rest[..<end.lowerBound], as: UTF8.self), radix: 16) else { break }
      if size == 0 { return out }
      out += rest[end.upperBound...].prefix(size)
      rest = rest[end.upperBound...].dropFirst(size + 2)
    }
    throw ConnectionError(what: "the chunked body has no end")
  }
}
