import CLinux
import Glibc
import Replication

extension SocketAddress: CustomStringConvertible {
  /// `127.0.0.1:7000`, `[fe80::1%eth0]:7000`.
  package var description: String {
    switch host {
    case .ipv4: "\(host):\(port)"
    case .ipv6: "[\(host)]:\(port)"
    }
  }

  /// Reads ``description``'s form. An interface is named or numbered; one that does not exist here gives nil.
  package init?(_ text: String) {
    guard let (host, port) = SplitAddress.split(text), let host = Host(host) else { return nil }
    self.init(host, port: port)
  }
}

extension SocketAddress.Host: CustomStringConvertible {
  package var description: String {
    SocketAddress(self, port: 0).withKernelForm { form, length in
      withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { text in
        let code = getnameinfo(form, length, text.baseAddress, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
        guard code == 0, let start = text.baseAddress else { return "?" }
        return String(cString: start)
      }
    }
  }

  /// A numeric IPv4 or IPv6 address, the latter with an optional `%interface`. Nil for host names.
  package init?(_ text: String) {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(text, nil, &hints, &list) == 0, let first = list else { return nil }
    defer { freeaddrinfo(first) }
    guard let form = first.pointee.ai_addr, let address = SocketAddress(form) else { return nil }
    self = address.host
  }
}

extension PeerAddress: CustomStringConvertible {
  package var description: String {
    switch self {
    case .socket(let address): address.description
    case .name(let name, let port): "\(name.string):\(port)"
    }
  }

  /// `HOST:PORT`, HOST a name, an IPv4 address or an IPv6 address in brackets; the port 1–65535.
  package init?(_ text: String) {
    guard let (host, port) = SplitAddress.split(text), port > 0 else { return nil }
    if let numeric = SocketAddress.Host(host) {
      self = .socket(SocketAddress(numeric, port: port))
    } else if SplitAddress.isHostName(host) {
      self = .name(Text(host), port: port)
    } else {
      return nil
    }
  }
}

private enum SplitAddress {
  /// RFC 1035: a name has at most 253 characters.
  private static let nameByteLimit = 253

  static func split(_ text: String) -> (host: String, port: UInt16)? {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    let host = text[..<colon]
    if host.hasPrefix("[") {
      guard host.hasSuffix("]"), host.count > 2 else { return nil }
      return (String(host.dropFirst().dropLast()), port)
    }
    return host.isEmpty || host.contains(":") ? nil : (String(host), port)
  }

  static func isHostName(_ text: String) -> Bool {
    text.utf8.count <= nameByteLimit
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
      }
  }
}
