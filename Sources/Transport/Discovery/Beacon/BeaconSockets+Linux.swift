import CLinux
import Glibc
import Replication

/// The beacon's UDP sockets, one for each family, joined to its groups on every interface. Confined to discovery's thread.
///
/// Bound with SO_REUSEADDR: Linux delivers multicast and broadcast to every socket on the port, so that several nodes of
/// one machine hear each other, on loopback too.
final class BeaconSockets {
  /// 239.255.0.0/16 is for local use (RFC 2365).
  static let ipv4Group: UInt32 = 0xefff_534d
  /// ff12::/16: transient and link-local (RFC 4291 §2.7).
  static let ipv6Group = SocketAddress.Host.ipv6(high: 0xff12 << 48, low: 0x7365_616d_6573_68, scope: 0)

  private let ipv4: Descriptor?
  private let ipv6: Descriptor?
  private let port: UInt16

  init(port: UInt16) {
    self.port = port
    ipv4 = BeaconSockets.open(SocketAddress(.ipv4(0), port: port))
    ipv6 = BeaconSockets.open(SocketAddress(.ipv6(high: 0, low: 0, scope: 0), port: port))
  }

  var descriptors: [Int32] { [ipv4, ipv6].compactMap { $0?.number } }

  private static func open(_ address: SocketAddress) -> Descriptor? {
    let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let number = socket(address.family, kind, 0)
    guard number >= 0 else { return nil }
    let descriptor = Descriptor(number)
    set(number, SOL_SOCKET, SO_REUSEADDR, 1)
    switch address.host {
    case .ipv4:
      set(number, SOL_SOCKET, SO_BROADCAST, 1)
      set(number, Int32(IPPROTO_IP), IP_MULTICAST_TTL, 1)
      set(number, Int32(IPPROTO_IP), IP_MULTICAST_ALL, 0)
    case .ipv6:
      set(number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1)
      set(number, Int32(IPPROTO_IPV6), IPV6_MULTICAST_HOPS, 1)
    }
    let isIPv6 = address.family == AF_INET6
    guard seamesh_tell_destinations(number, isIPv6 ? 1 : 0) == 0 else { return nil }
    return address.withKernelForm { bind(number, $0, $1) } == 0 ? descriptor : nil
  }

  /// Joins on what is there now. The kernel itself leaves on interfaces that vanish; one that went down and came back
  /// may need it again, so every call joins everywhere and lets the kernel refuse what it has.
  func join(_ interfaces: [NetworkInterface]) {
    for interface in interfaces {
      if !interface.ipv4.isEmpty, let ipv4 {
        var request = ip_mreqn()
        request.imr_multiaddr.s_addr = BeaconSockets.ipv4Group.bigEndian
        request.imr_ifindex = Int32(bitPattern: interface.index)
        setsockopt(
          ipv4.number, Int32(IPPROTO_IP), IP_ADD_MEMBERSHIP, &request, socklen_t(MemoryLayout<ip_mreqn>.size))
      }
      if interface.hasIPv6, let ipv6 { joinIPv6(ipv6.number, interface.index) }
    }
  }

  private func joinIPv6(_ descriptor: Int32, _ index: UInt32) {
    guard case .ipv6(let high, let low, _) = BeaconSockets.ipv6Group else { return }
    var request = ipv6_mreq()
    request.ipv6mr_interface = index
    withUnsafeMutableBytes(of: &request.ipv6mr_multiaddr) { bytes in
      bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
      bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    setsockopt(
      descriptor, Int32(IPPROTO_IPV6), IPV6_JOIN_GROUP, &request, socklen_t(MemoryLayout<ipv6_mreq>.size))
  }

  /// Sends on every interface by every way it has. Failures are left aside: an interface may be on its way down.
  func send(_ packet: [UInt8], on interfaces: [NetworkInterface]) {
    for interface in interfaces {
      if let ipv4 { sendIPv4(packet, ipv4.number, interface) }
      if interface.hasIPv6, let ipv6, case .ipv6(let high, let low, _) = BeaconSockets.ipv6Group {
        BeaconSockets.set(
          ipv6.number, Int32(IPPROTO_IPV6), IPV6_MULTICAST_IF, Int32(bitPattern: interface.index))
        send(packet, ipv6.number, SocketAddress(.ipv6(high: high, low: low, scope: 0), port: port))
      }
    }
  }

  /// From each of the interface's addresses: the receiver takes the source as the place to dial.
  private func sendIPv4(_ packet: [UInt8], _ descriptor: Int32, _ interface: NetworkInterface) {
    for (address, broadcast) in interface.ipv4.sorted(by: { $0.key < $1.key }) {
      var request = ip_mreqn()
      request.imr_ifindex = Int32(bitPattern: interface.index)
      request.imr_address.s_addr = address.bigEndian
      setsockopt(
        descriptor, Int32(IPPROTO_IP), IP_MULTICAST_IF, &request, socklen_t(MemoryLayout<ip_mreqn>.size))
      send(packet, descriptor, SocketAddress(.ipv4(BeaconSockets.ipv4Group), port: port))
      if let broadcast { send(packet, descriptor, SocketAddress(.ipv4(broadcast), port: port)) }
    }
  }

  private func send(_ packet: [UInt8], _ descriptor: Int32, _ target: SocketAddress) {
    _ = target.withKernelForm { form, length in
      sendto(descriptor, packet, packet.count, Int32(MSG_DONTWAIT), form, length)
    }
  }

  struct Datagram {
    let bytes: [UInt8]
    let source: SocketAddress
    let destination: SocketAddress.Host?
    /// The index of the interface that it came by.
    let interface: UInt32

    /// From somebody on the link that it came by, as far as its source says: the source is dialled, and whoever is on a link
    /// can write any. So a beacon names neighbours alone, whom its sender could disturb without help.
    func isFromNeighbour(on interfaces: [NetworkInterface]) -> Bool {
      interfaces.contains { $0.index == interface && $0.reaches(source.host) }
    }

    /// Sent to whoever listens on a link. What is sent to this host alone may come from anywhere, with any source: it would
    /// have this node dial whom the sender names.
    func isForAll(on interfaces: [NetworkInterface]) -> Bool {
      switch destination {
      case .ipv4(let address)?:
        address == BeaconSockets.ipv4Group || address == .max
          || interfaces.contains { $0.ipv4.values.contains(.some(address)) }
      case .ipv6(let high, let low, _)?: .ipv6(high: high, low: low, scope: 0) == BeaconSockets.ipv6Group
      case nil: false
      }
    }
  }

  /// The next datagram of this socket, cut to one byte more than a packet may have. Nil when there is none.
  static func receive(_ descriptor: Int32) -> Datagram? {
    var bytes = [UInt8](repeating: 0, count: BeaconPacket.byteLimit + 1)
    var (source, destination, interface) = (sockaddr_storage(), sockaddr_storage(), UInt32(0))
    let count = bytes.withUnsafeMutableBytes {
      seamesh_receive_datagram(descriptor, $0.baseAddress, UInt($0.count), &source, &destination, &interface)
    }
    guard count >= 0, let from = SocketAddress(source) else { return nil }
    return Datagram(
      bytes: Array(bytes.prefix(count)), source: from, destination: SocketAddress(destination)?.host,
      interface: interface)
  }

  private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }
}
