import Links
import Replication

/// Charges sockets that are not this transport's own.
package final class MeteredSockets: SocketMeter {
  private let meter: any LinkMeter
  private var paths = LinkPaths()
  private var current: Current?
  private var lastRemote: SocketAddress.Host?

  /// Numbers of descriptors are used again: it is the local address that tells one socket from the next.
  private struct Current {
    let local: SocketAddress
    let path: LinkPath
    var account: SocketAccount?
  }

  package init(_ meter: any LinkMeter) { self.meter = meter }

  package func look(at socket: LibrarySocket) -> LinkVerdict {
    guard let path = path(of: socket) else {
      // A socket of this machine's own, or one that leads nowhere yet.
      ended()
      return .free
    }
    guard meter.admits(path) else { return .closed }
    reviewAccount(socket)
    guard current?.account != nil else { return .free }
    _ = current?.account?.look(numbers(of: socket))
    return .metered
  }

  package var path: LinkPath? {
    current?.path ?? lastRemote.flatMap { paths.path(to: SocketAddress($0, port: MeteredSockets.anyPort)) }
  }

  /// Which port it is makes no difference to the way.
  private static let anyPort: UInt16 = 9

  package func ended() {
    current?.account?.settle(farewellByteCount: MeteredSockets.farewellByteCount)
    current = nil
  }

  /// A library says good-bye in its own protocol and in that of TLS, in packets of their own, after the last look.
  private static let farewellByteCount: UInt64 = 250

  private func path(of socket: LibrarySocket) -> LinkPath? {
    guard let local = TCP.localAddress(socket.descriptor) else { return nil }
    if let current, current.local == local { return current.path }
    let remote = TCP.remoteAddress(socket.descriptor)?.host ?? socket.remote.flatMap { SocketAddress.Host($0) }
    guard let remote else { return nil }
    ended()
    lastRemote = remote
    let path = paths.path(of: socket.descriptor, to: remote)
    current = Current(local: local, path: path)
    return path
  }

  private func reviewAccount(_ socket: LibrarySocket) {
    guard let path = current?.path else { return }
    guard meter.isMetered(path) else {
      current?.account = nil
      return
    }
    guard current?.account == nil else { return }
    TCP.keepUnsentShort(socket.descriptor)
    current?.account = SocketAccount(path, isAccepted: false, meter)
  }

  private func numbers(of socket: LibrarySocket) -> TCPNumbers {
    TCPNumbers(socket.descriptor) ?? TCPNumbers(estimatedFrom: socket.byteCount)
  }
}
