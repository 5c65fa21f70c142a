import Replication

/// What a link is to its owner.
package enum LinkClass: String, CaseIterable, Hashable, Comparable, Sendable {
  case harbour
  case mobile
  case satellite
  /// Nothing passes: no connection is made or taken.
  case closed = "none"

  package static func < (a: LinkClass, b: LinkClass) -> Bool { a.rawValue < b.rawValue }

  /// Where the operator names no other number; nil: no limit.
  package var usualBytesPerDay: UInt64? {
    switch self {
    case .harbour, .closed: nil
    case .mobile: 200_000_000
    case .satellite: 10_000_000
    }
  }
}

/// Addresses that begin alike, such as 10.20.0.0/16.
package struct LinkRoute: Hashable, Sendable {
  package let host: SocketAddress.Host
  package let bitCount: Int

  /// Nil where the address has fewer bits.
  package init?(_ host: SocketAddress.Host, bitCount: Int) {
    guard 0...LinkRoute.bitCount(of: host) ~= bitCount else { return nil }
    (self.host, self.bitCount) = (host, bitCount)
  }

  package static func bitCount(of host: SocketAddress.Host) -> Int {
    switch host {
    case .ipv4: 32
    case .ipv6: 128
    }
  }

  package func contains(_ other: SocketAddress.Host) -> Bool {
    switch (host, other) {
    case (.ipv4(let mine), .ipv4(let theirs)): LinkRoute.agree(mine, theirs, bitCount)
    case (.ipv6(let high, let low, _), .ipv6(let otherHigh, let otherLow, _)):
      LinkRoute.agree(high, otherHigh, min(bitCount, 64)) && LinkRoute.agree(low, otherLow, max(bitCount - 64, 0))
    default: false
    }
  }

  private static func agree<Number: FixedWidthInteger & UnsignedInteger>(
    _ a: Number, _ b: Number, _ bitCount: Int
  ) -> Bool {
    (a ^ b) >> Number(Number.bitWidth - bitCount) == 0
  }
}

/// Which links are of a class, what they may cost, and what passes.
package struct LinkRule: Equatable, Sendable {
  package let linkClass: LinkClass
  /// Names of interfaces; one that ends with `*` stands for all that begin so.
  package var interfaces: [Text] = []
  package var routes: [LinkRoute] = []
  /// Nil: no limit.
  package var bytesPerDay: UInt64?
  /// Partitions, or beginnings of their names with `*` behind, in the order in which they go; nil: all, in no order.
  package var carries: [Text]?

  package static let carriesLimit = 64

  package init(_ linkClass: LinkClass) {
    (self.linkClass, bytesPerDay) = (linkClass, linkClass.usualBytesPerDay)
  }

  package func matches(route path: LinkPath) -> Bool { routes.contains { $0.contains(path.remote) } }

  package func matches(interface path: LinkPath) -> Bool {
    interfaces.contains { name in
      name.utf8.last == UInt8(ascii: "*")
        ? path.interface.utf8.starts(with: name.utf8.dropLast()) : path.interface == name
    }
  }
}
