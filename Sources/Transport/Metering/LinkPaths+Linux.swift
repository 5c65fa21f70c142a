import CLinux
import Glibc
import Links
import Replication

/// Which way the packets of a connection go. Confined to one thread.
struct LinkPaths {
  /// Addresses that moved to another interface are noticed after so long: a flood of connections must not have the
  /// system list its interfaces for each.
  private static let ageLimitMilliseconds: UInt64 = 2_000

  private var table = InterfaceAddresses()
  private var readAt: MonotonicTime?

  /// The way of a socket that has its local address.
  mutating func path(of descriptor: Int32, to remote: SocketAddress.Host) -> LinkPath {
    LinkPath(interface: interface(local: TCP.localAddress(descriptor)?.host, remote: remote), remote: remote)
  }

  /// The way that a connection would take, without a packet sent; nil where the system knows none.
  mutating func path(to remote: SocketAddress) -> LinkPath? {
    // To connect a socket for datagrams only asks the routing table.
    let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let number = Glibc.socket(remote.family, kind, 0)
    guard number >= 0 else { return nil }
    let probe = Descriptor(number)
    guard remote.withKernelForm({ connect(probe.number, $0, $1) }) == 0 else { return nil }
    return path(of: probe.number, to: remote.host)
  }

  private mutating func interface(local: SocketAddress.Host?, remote: SocketAddress.Host) -> Text {
    refresh()
    // What this host sends to any address of its own stays inside.
    if table.names[remote] != nil { return table.loopback }
    return local.flatMap { table.names[$0] } ?? ""
  }

  private mutating func refresh() {
    let now = ElapsedClock.now()
    if let readAt, now >= readAt, now.millisecondsSince(readAt) < LinkPaths.ageLimitMilliseconds { return }
    (table, readAt) = (InterfaceAddresses.read(), now)
  }
}

/// Whose the addresses of this host are.
struct InterfaceAddresses {
  var names: [SocketAddress.Host: Text] = [:]
  var loopback: Text = ""

  static func read() -> InterfaceAddresses {
    var found = InterfaceAddresses()
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0, let first = list else { return found }
    defer { freeifaddrs(first) }
    var next: UnsafeMutablePointer<ifaddrs>? = first
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let form = entry.ifa_addr, let address = SocketAddress(form), let rawName = entry.ifa_name else { continue }
      let name = withoutLabel(String(cString: rawName))
      found.names[address.host] = found.names[address.host] ?? name
      if entry.ifa_flags & UInt32(IFF_LOOPBACK) != 0 { found.loopback = name }
    }
    return found
  }

  /// An address of IPv4 may have a label of its own, such as `eth0:1`.
  private static func withoutLabel(_ name: String) -> Text { Text(String(name.prefix { $0 != ":" })) }
}
