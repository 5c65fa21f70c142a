import Replication

/// Where the packets of a connection go: an interface of this host, and the host at the other end.
package struct LinkPath: Hashable, Sendable {
  /// The system's name, such as `wwan0`; empty where none is known to have the connection's address.
  package let interface: Text
  package let remote: SocketAddress.Host

  package init(interface: Text, remote: SocketAddress.Host) { (self.interface, self.remote) = (interface, remote) }
}

/// Keeps account of what connections cost. Called from any thread; returns at once.
package protocol LinkMeter: AnyObject, Sendable {
  /// Whether there may be a connection at all. Asked before anything but its first packet is sent.
  func admits(_ path: LinkPath) -> Bool
  /// Whether somebody pays for its bytes: the others need not be counted.
  func isMetered(_ path: LinkPath) -> Bool
  /// So many bytes more went over it, both ways together, as the interface counts them: with what TLS, TCP, IP and the
  /// link layer add.
  func charge(_ byteCount: UInt64, on path: LinkPath)
}
