import CLinux
import Glibc
import Kernel
import Replication

/// TCP sockets as this transport wants them: non-blocking, closed on exec, without delay, dead within a minute.
enum TCP {
  /// The kernel's own queue of connections that wait to be accepted; the accept budget may let them wait a little.
  static let backlog: Int32 = 128
  /// N2: a peer that vanished with data under way is given up after this.
  private static let userTimeoutMilliseconds: Int32 = 45_000
  /// N2: an idle connection is probed after 15 s; unanswered probes count against the user timeout.
  private static let keepAliveIdleSeconds: Int32 = 15
  private static let keepAliveIntervalSeconds: Int32 = 10
  /// Attempts to find one free port for both address families.
  private static let portAttempts = 16

  static func socket(family: Int32) throws(SystemError) -> Descriptor {
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let number = Glibc.socket(family, kind, 0)
    guard number >= 0 else { throw SystemError("socket") }
    return Descriptor(number)
  }

  /// What every path carries (RFC 8200 §5: 1,280 bytes, less both headers). Larger packets may vanish without a word, and
  /// the connection would stand still (N11). The dialler's word binds both ends.
  private static let segmentByteCount: Int32 = 1_220
  /// What such a segment carries beside its timestamps; without them, or on loopback, it is more.
  static let leastSegmentByteCount: UInt64 = 1_208

  /// Before connecting to another host.
  static func avoidLargeSegments(_ descriptor: Int32) {
    set(descriptor, Int32(IPPROTO_TCP), TCP_MAXSEG, segmentByteCount)
  }

  /// Errors are left aside: the connection works without these options, only less well.
  static func tune(_ descriptor: Int32) {
    set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    set(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, userTimeoutMilliseconds)
    set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
    set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE, keepAliveIdleSeconds)
    set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL, keepAliveIntervalSeconds)
  }

  /// What comes next is acknowledged with the answer to it; a connection that had nothing to say would do that at once, in a
  /// packet of its own.
  static func acknowledgeWithAnswers(_ descriptor: Int32) {
    set(descriptor, Int32(IPPROTO_TCP), TCP_QUICKACK, 0)
  }

  /// What came is acknowledged now. To be waited for in vain would end ``acknowledgeWithAnswers(_:)``.
  static func acknowledge(_ descriptor: Int32) {
    set(descriptor, Int32(IPPROTO_TCP), TCP_QUICKACK, 1)
  }

  /// Two seconds of a link with 64 kbit/s: what the kernel has taken goes out, whatever is decided about it then.
  private static let unsentByteLimit: Int32 = 16 * 1024

  /// For connections that somebody pays for.
  static func keepUnsentShort(_ descriptor: Int32) {
    set(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, unsentByteLimit)
  }

  /// Closing then sends a reset and keeps no state: for callers that were never let in.
  static func dropOnClose(_ descriptor: Int32) {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }

  static func pendingError(_ descriptor: Int32) -> Int32 {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
  }

  /// A socket that listens on one address.
  static func listen(_ address: SocketAddress) throws(SystemError) -> Descriptor {
    let descriptor = try socket(family: address.family)
    set(descriptor.number, SOL_SOCKET, SO_REUSEADDR, 1)
    if case .ipv6 = address.host { set(descriptor.number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
    guard address.withKernelForm({ bind(descriptor.number, $0, $1) }) == 0 else { throw SystemError("bind") }
    guard Glibc.listen(descriptor.number, backlog) == 0 else { throw SystemError("listen") }
    return descriptor
  }

  /// Listens on both families on one port; on IPv4 alone where the host has no IPv6. Port 0 picks one that is free in
  /// both.
  static func listenEverywhere(port: UInt16) throws(SystemError) -> [Descriptor] {
    var attempt = 1
    while true {
      let ipv4 = try listen(SocketAddress(.ipv4(0), port: port))
      let chosen = localAddress(ipv4.number)?.port ?? port
      do throws(SystemError) {
        return [ipv4, try listen(SocketAddress(.ipv6(high: 0, low: 0, scope: 0), port: chosen))]
      } catch {
        if error.code == EAFNOSUPPORT || error.code == EADDRNOTAVAIL { return [ipv4] }
        guard port == 0, error.code == EADDRINUSE, attempt < portAttempts else { throw error }
        attempt += 1
      }
    }
  }

  static func localAddress(_ descriptor: Int32) -> SocketAddress? {
    SocketAddress.read { getsockname(descriptor, $0, $1) }
  }

  static func remoteAddress(_ descriptor: Int32) -> SocketAddress? {
    SocketAddress.read { getpeername(descriptor, $0, $1) }
  }

  private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }
}
