import Links
import Replication

/// Names a connection for the life of a transport. Numbers are never used again.
package struct ConnectionID: Hashable, Comparable, Sendable {
  package let number: UInt64
  package init(number: UInt64) { self.number = number }
  package static func < (a: ConnectionID, b: ConnectionID) -> Bool { a.number < b.number }
}

package enum ConnectionOrigin: Hashable, Sendable {
  case accepted
  /// With what the caller of `dial` gave.
  case dialled(tag: UInt64)
}

/// A connection whose TLS handshake is done. The peer has the key; whether it may talk is not decided yet.
package struct OpenedConnection: Sendable {
  package let id: ConnectionID
  package let origin: ConnectionOrigin
  package let remote: SocketAddress
  package let path: LinkPath
  package let peerKey: PublicKey
  /// TLS exporter value (RFC 8446 §7.5) for "EXPORTER-seamesh/1": the same at both ends, known to no one else.
  package let exporter: Digest
  /// By ``ElapsedClock``.
  package let openedAt: MonotonicTime
}

package enum CloseReason: Hashable, Sendable {
  /// This side closed it.
  case requested
  /// The peer ended it cleanly.
  case ended
  /// The stream broke off: no clean end, or inside a frame.
  case truncated
  /// TCP or TLS failed, with the system's or library's words.
  case failed(String)
  case authenticationTimedOut
  /// Nobody had authenticated it when another address wanted its place.
  case crowdedOut
  case frameTooLarge(byteCount: Int, limit: Int)
  case emptyFrame
  /// It had most of a frame here without its end, when unfinished frames of all peers took too much memory.
  case unfinishedFrames
  /// The peer read nothing for too long while data waited for it (N12).
  case peerStalled
  /// Too many TLS messages that are no data (W11).
  case flooded
  /// The machine slept: whatever the connection was, the peer has given it up (K7).
  case suspended
  /// This host has lost the address that the connection was made from (N8).
  case stranded
  /// Nothing may pass any more on the link that it took.
  case linkClosed
  case stopped
}

extension CloseReason: CustomStringConvertible {
  package var description: String {
    switch self {
    case .requested: "this node closed it"
    case .ended: "the peer closed it"
    case .truncated: "it broke off"
    case .failed(let reason): reason
    case .authenticationTimedOut: "nobody said in time who is there"
    case .crowdedOut: "its place went to another before anybody said who is there"
    case .frameTooLarge(let byteCount, let limit): "the peer sends a message of \(byteCount) bytes, above \(limit)"
    case .emptyFrame: "the peer sends a message without content"
    case .unfinishedFrames: "beginnings of messages took too much memory"
    case .peerStalled: "the peer reads nothing"
    case .flooded: "the peer sends too much that is no message"
    case .suspended: "this machine slept"
    case .stranded: "this machine lost the address it was made from"
    case .linkClosed: "nothing may pass any more on its link"
    case .stopped: "this node stops"
    }
  }
}

package enum DialFailure: Hashable, Sendable, CustomStringConvertible {
  case unknownHost
  case tooManyDials
  /// No address answered; the last one's error.
  case unreachable(String)
  case timedOut
  /// Something answered, but no TLS 1.3 with our protocol (N14).
  case handshakeFailed(String)
  /// The answer is this very socket: the kernel can connect a port to itself on loopback.
  case selfConnection
  /// Nothing may pass on the link that leads there: nothing was sent.
  case linkClosed
  /// Closed, suspended or stopped before it was open.
  case cancelled

  package var description: String {
    switch self {
    case .unknownHost: "the host's name is not known"
    case .tooManyDials: "too many addresses are being tried"
    case .unreachable(let reason): reason
    case .timedOut: "no answer in time"
    case .handshakeFailed(let reason): "what answers there is no node (\(reason))"
    case .selfConnection: "this address is this node's own"
    case .linkClosed: "the link is of class none"
    case .cancelled: "given up"
    }
  }
}

/// What a transport tells. All methods are called on its IO thread, one after another, and must not block.
package protocol TransportHandler: AnyObject, Sendable {
  func opened(_ connection: OpenedConnection)
  /// Frames of one connection come in order. After ``SecureTransport/pauseReading(_:)`` those that were read already
  /// still come, at most 16 KiB of them.
  func received(_ connection: ConnectionID, frame: [UInt8])
  /// So many bytes of frames are here that have not come to their end, over all connections.
  func unfinished(byteCount: Int)
  /// Exactly once after `opened`, unless `dialFailed` came instead.
  func closed(_ connection: ConnectionID, reason: CloseReason)
  /// The send queue fell below the mark after it had been above.
  func drained(_ connection: ConnectionID, queuedBytes: Int)
  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure)
}

extension TransportHandler {
  package func unfinished(byteCount: Int) {}
}

package enum SendResult: Sendable, Equatable {
  case queued
  /// Nothing was taken: wait for `drained`.
  case full
  case closed
}

/// Counts since the start, for status pages and metrics.
package struct TransportStatistics: Sendable, Equatable {
  package var accepted = 0
  package var opened = 0
  /// Refused because too many connections wait for authentication, or there are too many in all.
  package var refusedByLimit = 0
  package var refusedBySource = 0
  /// Came over a link on which nothing may pass.
  package var refusedByLink = 0
  /// Unauthenticated connections that gave way to newcomers.
  package var evicted = 0
  package var acceptFailures = 0
  /// When the latest of those was, by ``ElapsedClock``.
  package var lastAcceptFailure: MonotonicTime?
  package var handshakeFailures = 0
  package var authenticationTimeouts = 0
  package var framingViolations = 0
  /// Connections that ended for what they had here of a frame without its end.
  package var unfinishedFrames = 0
  package var stalledPeers = 0
  package var receivedBytes: UInt64 = 0
  package var sentBytes: UInt64 = 0
  package init() {}
}
