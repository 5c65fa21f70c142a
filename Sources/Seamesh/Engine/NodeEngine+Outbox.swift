import Replication
import Transport
import Wire

extension NodeEngine {
  enum Outgoing {
    case message(SessionID, Message)
    case close(SessionID)
  }

  /// What the mesh says may stand on what the next commit will write: nothing overtakes it (durable before sent). Between
  /// two commits one turn's jobs put in so much at the most.
  func emit(_ outgoing: Outgoing) {
    outbox.append(outgoing)
    if pending.isEmpty, !isWriting { flush() }
  }

  func flush() {
    let outgoing = outbox
    outbox = []
    for item in outgoing {
      switch item {
      case .message(let id, let message): send(message, to: id)
      case .close(let id): links[id].map { transport.close($0.connection) }
      }
    }
  }
}
