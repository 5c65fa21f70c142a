import Replication

/// Everything that the engine can be handed: by connections, by discovery, and by whoever uses the node.
package enum EngineEvent: Sendable {
  case opened(OpenedLink)
  case message(SessionID, Message, byteCount: Int)
  case runs(SessionID, RunBatch, [ArrivedRun], byteCount: Int)
  /// A run that a ledger kept, as ``FrameDecoder/inspect(_:context:in:under:apart:)`` found it.
  case ledgerRun(PartitionName, DeliveredRun)
  /// A frame came that breaks the protocol; why, as one sentence, and the run that it was about.
  case violation(SessionID, String, at: BrokenRule.Place? = nil)
  case closed(SessionID, reason: String)
  /// The session's send queue has room again.
  case drained(SessionID)
  /// `isLinkClosed`: nothing was sent, since nothing may pass on the link that leads there.
  case dialFailed(tag: UInt64, reason: String, isLinkClosed: Bool = false)
  /// News of where there may be peers. All of it may be wrong.
  case sighting(DialPolicy.Event)
  case networkChanged
  /// Links may let something else pass than before.
  case passagesMoved
  case write(LocalWriteJob)
  case subscription(SubscriptionJob)
  /// A question or a task for the engine's thread, run when everything that came before it is durable.
  case call(@Sendable (NodeEngine) -> Void)
  /// A look at what is in memory. It waits for no commit, so some of it may be on its way to the disk.
  case look(@Sendable (NodeEngine) -> Void)

  /// A user of this node asks and waits for the answer.
  package var isAsked: Bool {
    switch self {
    case .look: true
    default: isToBeDurable
    }
  }

  /// The answer waits for the disk.
  var isToBeDurable: Bool {
    switch self {
    case .write, .subscription, .call: true
    default: false
    }
  }
}

/// A connection whose TLS handshake is done.
package struct OpenedLink: Sendable {
  package let session: SessionID
  /// The tag of the dial that led to it; nil for an accepted connection.
  package let dialTag: UInt64?
  package let remote: SocketAddress
  package let peerKey: PublicKey
  /// The TLS exporter value of the connection.
  package let exporter: Digest

  package init(session: SessionID, dialTag: UInt64?, remote: SocketAddress, peerKey: PublicKey, exporter: Digest) {
    (self.session, self.dialTag, self.remote) = (session, dialTag, remote)
    (self.peerKey, self.exporter) = (peerKey, exporter)
  }
}
