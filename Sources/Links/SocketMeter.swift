import Replication

/// Keeps account of connections that a library makes by itself, one after the other. For one thread.
package protocol SocketMeter: AnyObject {
  /// To be called with every socket as soon as it is there, before anything is said on it, and then about once a second
  /// while it is used. That another socket has taken the place of the last is seen by itself.
  func look(at socket: LibrarySocket) -> LinkVerdict
  /// The way of the last socket or, where that is closed, the way that one to the same host would take now. Nil before the
  /// first.
  var path: LinkPath? { get }
  /// The last socket is being closed.
  func ended()
}

package struct LibrarySocket {
  package let descriptor: Int32
  /// The address as the library has it, which the system does not tell before the connection stands. Nil where unknown.
  package let remote: String?
  /// What the library's user knows to have passed since the connection was begun, for systems that do not tell.
  package let byteCount: UInt64

  package init(descriptor: Int32, remote: String?, byteCount: UInt64) {
    (self.descriptor, self.remote, self.byteCount) = (descriptor, remote, byteCount)
  }
}

package enum LinkVerdict: Equatable, Sendable {
  /// Nobody pays for it: it need not be looked at again.
  case free
  case metered
  /// Nothing may pass: it is to be ended.
  case closed
}
