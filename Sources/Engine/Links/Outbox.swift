import Replication

/// What is to be said once all that it may speak of is durable, in order.
struct Outbox {
  private enum Outgoing {
    case message(SessionID, Message)
    case close(SessionID)
  }

  private var waiting: [Outgoing] = []

  mutating func put(_ message: Message, to id: SessionID) { waiting.append(.message(id, message)) }

  /// After what was said to it before.
  mutating func close(_ id: SessionID) { waiting.append(.close(id)) }

  /// Sends everything; answers the sessions that must pause, since too much waits for them.
  mutating func flush(over links: LinkDirector) -> [SessionID] {
    let outgoing = waiting
    waiting = []
    return outgoing.compactMap { item in
      switch item {
      case .message(let id, let message): return links.send(message, to: id) ? id : nil
      case .close(let id):
        links.close(id)
        return nil
      }
    }
  }
}
