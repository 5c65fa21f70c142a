import CLinux
import Glibc
import Kernel
import Replication

/// A network interface of this host that is up.
struct NetworkInterface: Hashable {
  let index: UInt32
  let name: String
  var hasIPv6 = false
  /// IPv4 addresses, each with the address of all its neighbours where there is one.
  var ipv4: [UInt32: UInt32?] = [:]
  /// Where its neighbours are.
  var networks: Set<Network> = []

  /// More than this no host of a fleet has; containers and tunnels may make hundreds.
  static let limit = 32
  static let addressLimit = 4

  /// In order of their index.
  static func all() -> [NetworkInterface] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0, let first = list else { return [] }
    defer { freeifaddrs(first) }
    var found: [UInt32: NetworkInterface] = [:]
    var entry: UnsafeMutablePointer<ifaddrs>? = first
    while let current = entry {
      entry = current.pointee.ifa_next
      guard current.pointee.ifa_flags & UInt32(IFF_UP) != 0, let form = current.pointee.ifa_addr,
        let address = SocketAddress(form), let rawName = current.pointee.ifa_name
      else { continue }
      let index = if_nametoindex(rawName)
      guard index != 0, found[index] != nil || found.count < limit else { continue }
      var interface = found[index] ?? NetworkInterface(index: index, name: String(cString: rawName))
      switch address.host {
      case .ipv4(let number):
        if interface.ipv4.count < addressLimit { interface.ipv4[number] = .some(broadcast(of: current.pointee)) }
      case .ipv6: interface.hasIPv6 = true
      }
      if interface.networks.count < 2 * addressLimit {
        interface.networks.formUnion(networks(of: current.pointee, address))
      }
      found[index] = interface
    }
    return found.values.sorted { $0.index < $1.index }
  }

  /// Whether who has this address is a neighbour, who is reached by no router.
  func reaches(_ host: SocketAddress.Host) -> Bool { networks.contains { $0.contains(host) } }

  /// Of an address the network around it, and where there are only two ends the other one.
  private static func networks(of entry: ifaddrs, _ address: SocketAddress) -> [Network] {
    var found: [Network] = []
    if let form = entry.ifa_netmask, let mask = SocketAddress(form) {
      found.append(Network(address.host, mask: mask.host))
    }
    if entry.ifa_flags & UInt32(IFF_POINTOPOINT) != 0, let form = entry.ifa_ifu.ifu_dstaddr,
      let other = SocketAddress(form)
    {
      found.append(Network(other.host, mask: nil))
    }
    return found
  }

  private static func broadcast(of entry: ifaddrs) -> UInt32? {
    guard entry.ifa_flags & UInt32(IFF_BROADCAST) != 0, let form = entry.ifa_ifu.ifu_broadaddr,
      case .ipv4(let address)? = SocketAddress(form)?.host, address != 0
    else { return nil }
    return address
  }
}

/// The addresses that differ from one only where a mask has zeros.
struct Network: Hashable {
  private let isIPv6: Bool
  private let bits: Words
  private let mask: Words

  private struct Words: Hashable {
    let high: UInt64
    let low: UInt64

    init(_ host: SocketAddress.Host) {
      (high, low) =
        switch host {
        case .ipv4(let address): (0, UInt64(address))
        case .ipv6(let high, let low, _): (high, low)
        }
    }

    init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
    func masked(_ mask: Words) -> Words { Words(high: high & mask.high, low: low & mask.low) }
  }

  /// `mask` nil: this address alone.
  init(_ host: SocketAddress.Host, mask: SocketAddress.Host?) {
    if case .ipv6 = host { isIPv6 = true } else { isIPv6 = false }
    self.mask = mask.map(Words.init) ?? Words(high: .max, low: .max)
    bits = Words(host).masked(self.mask)
  }

  func contains(_ host: SocketAddress.Host) -> Bool {
    if case .ipv6 = host { guard isIPv6 else { return false } } else { guard !isIPv6 else { return false } }
    return Words(host).masked(mask) == bits
  }
}

/// Tells by netlink that interfaces or addresses changed. Confined to discovery's thread.
final class InterfaceWatch {
  private let socket: Descriptor
  var descriptor: Int32 { socket.number }

  init() throws(SystemError) {
    let kind = Int32(SOCK_RAW.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let number = Glibc.socket(AF_NETLINK, kind, NETLINK_ROUTE)
    guard number >= 0 else { throw SystemError("socket") }
    socket = Descriptor(number)
    var address = sockaddr_nl()
    address.nl_family = sa_family_t(AF_NETLINK)
    address.nl_groups = UInt32(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR)
    let size = socklen_t(MemoryLayout<sockaddr_nl>.size)
    let result = withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(number, $0, size) }
    }
    guard result == 0 else { throw SystemError("bind") }
  }

  /// Throws away what came: that something changed is all that counts, and an overflow says so as well (ENOBUFS).
  func drain() {
    withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 8) { buffer in
      while recv(socket.number, buffer.baseAddress, buffer.count, 0) > 0 || errno == ENOBUFS || errno == EINTR {}
    }
  }
}
