import Replication

/// Answers that one peer is owed while it does not read. See Docs/ARCHITECTURE.md, "A peer that does not read".
package struct UnreadAnswers {
  /// The nonce of the last ping that was not answered yet.
  private(set) var ping: UInt64?
  /// Answers that the peer's own messages called for since reading from it last went on.
  private(set) var count = 0
  package private(set) var isHeldUp = false

  /// Answers that one peer gets between two ticks of the engine: far more than an honest one asks for while it does not
  /// read.
  package static let limit = 1_024

  /// A newer ping takes the place of an older one: one answer says that this node lives.
  mutating func delayAnswer(to ping: UInt64) { self.ping = ping }

  /// True where reading from the peer is to pause.
  mutating func add(_ answers: Int) -> Bool {
    count += answers
    guard !isHeldUp, count >= UnreadAnswers.limit else { return false }
    isHeldUp = true
    return true
  }

  mutating func takePing() -> UInt64? {
    defer { ping = nil }
    return ping
  }

  /// A new portion of answers. True where reading was paused and is to go on.
  mutating func renew() -> Bool {
    defer { (count, isHeldUp) = (0, false) }
    return isHeldUp
  }
}

extension Mesh.Directive {
  /// A message that the peer's own one called for. Runs and payloads do not count: those stop by themselves
  /// (``Mesh/pause(_:)``), and two nodes in catch-up with one another must go on reading while both queues are full.
  func isAnswer(to session: SessionID) -> Bool {
    guard case .send(session, let message) = self else { return false }
    switch message {
    case .runs, .payloadPiece: return false
    default: return true
    }
  }
}
