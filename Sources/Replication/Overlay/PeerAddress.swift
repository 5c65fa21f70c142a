/// Where a node listens: an IP address and a port, as a value that compares by its bytes.
package struct SocketAddress: Hashable, Comparable, Sendable {
  package enum Host: Hashable, Comparable, Sendable {
    /// The address as a number: 127.0.0.1 is 0x7f00_0001.
    case ipv4(UInt32)
    /// The halves of the address as numbers. `scope` is an interface index for link-local addresses (N7), else 0.
    case ipv6(high: UInt64, low: UInt64, scope: UInt32)

    /// fe80::/10: meaningless without the interface it was learned on.
    package var isLinkLocal: Bool {
      guard case .ipv6(let high, _, _) = self else { return false }
      return high >> 54 == 0xfe80 >> 6
    }

    /// 0.0.0.0 and ::, which stand for every address of a host.
    package var isUnspecified: Bool {
      switch self {
      case .ipv4(let address): address == 0
      case .ipv6(let high, let low, _): high == 0 && low == 0
      }
    }

    package var isLoopback: Bool {
      switch self {
      case .ipv4(let address): address >> 24 == 127
      case .ipv6(let high, let low, _): high == 0 && low == 1
      }
    }
  }

  package var host: Host
  package var port: UInt16

  package init(_ host: Host, port: UInt16) { (self.host, self.port) = (host, port) }

  package static func < (a: SocketAddress, b: SocketAddress) -> Bool { (a.host, a.port) < (b.host, b.port) }
}

/// Something that can be dialled: an address, or a host name as the operator wrote it (`--peer HOST:PORT`).
package enum PeerAddress: Hashable, Comparable, Sendable {
  case socket(SocketAddress)
  case name(Text, port: UInt16)
}
