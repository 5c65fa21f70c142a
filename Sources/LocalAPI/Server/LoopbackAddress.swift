/// Where the TCP listener binds: an address of this machine alone.
package struct LoopbackAddress: Sendable, Equatable {
  package enum Host: String, Sendable {
    case v4 = "127.0.0.1"
    case v6 = "::1"
  }

  package let host: Host
  /// 0 lets the system pick one.
  package let port: UInt16

  package init(host: Host = .v4, port: UInt16) { (self.host, self.port) = (host, port) }

  /// `PORT`, `127.0.0.1:PORT`, `localhost:PORT` or `[::1]:PORT`.
  package init(_ text: String) throws(LocalServerError) {
    let colon = text.utf8.lastIndex(of: UInt8(ascii: ":"))
    let name = colon.map { String(text[..<$0]) } ?? "127.0.0.1"
    let digits = colon.map { text[text.index(after: $0)...] } ?? text[...]
    guard let port = UInt16(digits) else { throw .notLoopback(text) }
    switch name {
    case "127.0.0.1", "localhost": self.init(host: .v4, port: port)
    case "[::1]": self.init(host: .v6, port: port)
    default: throw .notLoopback(text)
    }
  }

  /// As it stands in a URL.
  package var authority: String {
    switch host {
    case .v4: "127.0.0.1:\(port)"
    case .v6: "[::1]:\(port)"
    }
  }
}
