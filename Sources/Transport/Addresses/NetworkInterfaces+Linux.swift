import CLinux
import Glibc
import Replication

/// The addresses of this host.
package enum NetworkInterfaces {
  /// Of all interfaces that are up, in order: IPv4 before IPv6. An interface that is down may still have addresses, which
  /// serve again when it comes back.
  package static func addresses(ofInterfacesDown includesDown: Bool = false) -> [SocketAddress.Host] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var found: [SocketAddress.Host] = []
    var next = list
    while let interface = next {
      next = interface.pointee.ifa_next
      guard includesDown || interface.pointee.ifa_flags & UInt32(IFF_UP) != 0, let form = interface.pointee.ifa_addr,
        let address = SocketAddress(form)
      else { continue }
      found.append(address.host)
    }
    return found.sorted()
  }
}
