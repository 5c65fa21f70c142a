import Replication
import Transport
import Wire

/// What is done about a peer that goes on asking and does not read the answers.
extension NodeEngine {
  /// More than one TLS record waits for a peer that does not read, or reads slower than it is written to.
  static let unreadByteMark = 16 * 1024

  /// Does more wait for this peer than what is on its way to the kernel?
  func isUnread(_ id: SessionID, _ connection: ConnectionID) -> Bool {
    links.mustHold(for: id) || transport.queuedBytes(of: connection) ?? 0 > NodeEngine.unreadByteMark
  }

  /// What waits for the peer already tells it that this node lives; a pong has time until that is written.
  func delayPong(_ nonce: UInt64, to id: SessionID) { links[id]?.unread.delayAnswer(to: nonce) }

  /// Counts what a message of this peer made this node say to it, runs and payloads left out: those stop by themselves
  /// (``Mesh/pause(_:)``), and two nodes in catch-up with one another must go on reading while both queues are full.
  func noteAnswers(_ directives: [Mesh.Directive], to id: SessionID) {
    let count = directives.count { $0.isAnswer(to: id) }
    guard count > 0, let link = links[id], isUnread(id, link.connection) else { return }
    if links[id]?.unread.add(count) == true { intake.holdUp(link.connection) }
  }

  /// No pause lasts longer than two ticks, whatever the peer does: so two nodes never wait for one another.
  func renewAnswers() {
    guard links.mustRenewAnswers(NodeEngine.now) else { return }
    for (id, link) in links.links where link.unread.ping != nil || link.unread.count > 0 {
      if links[id]?.unread.renew() == true, intake.letGo(link.connection) { transport.resumeReading(link.connection) }
      guard !isUnread(id, link.connection), let ping = links[id]?.unread.takePing() else { continue }
      send(.pong(nonce: ping), to: id)
    }
  }
}

extension Mesh.Directive {
  fileprivate func isAnswer(to session: SessionID) -> Bool {
    guard case .send(session, let message) = self else { return false }
    switch message {
    case .runs, .payloadPiece: return false
    default: return true
    }
  }
}
