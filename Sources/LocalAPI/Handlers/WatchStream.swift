import Replication
import Seamesh

/// A live result as server-sent events (HTML Living Standard §9.2). The reader pulls: one event waits at most, and one
/// that reads nothing for ``ServerLimit/idleSeconds`` is cut off.
final class WatchStream: ResponseStream {
  /// Names of events with the schema of their data.
  static let events: [(name: String, data: Schema)] = [
    ("snapshot", .listing("documents", of: .document)),
    ("insert", .object([.required("document", .document), .required("position", .count)])),
    (
      "update",
      .object([
        .required("document", .document), .required("position", .count), .required("previousPosition", .count),
      ])
    ),
    ("delete", .object([.required("id", .documentID), .required("position", .count)])),
    ("error", .problem),
  ]

  private let subscription: any WatchSubscription
  private let supervisor: StreamSupervisor
  private let socket: Int32
  /// A client that comes back with the cursor of the present result is not sent the result again.
  private var lastEventID: String?
  private var lastSentAt = monotonicMilliseconds()
  private var first: [UInt8]?
  private var isOver = false

  init(
    _ subscription: any WatchSubscription, lastEventID: String?, socket: Int32, supervisor: StreamSupervisor
  ) {
    (self.subscription, self.lastEventID) = (subscription, lastEventID)
    (self.socket, self.supervisor) = (socket, supervisor)
  }

  /// Makes the snapshot as long as the status of the answer can still be chosen.
  func begin() throws(NodeError) {
    do throws(NodeError) {
      first = try subscription.next(timeoutMilliseconds: 0).map(text)
    } catch {
      close()
      throw error
    }
  }

  func next() -> StreamChunk {
    if let bytes = first {
      first = nil
      return sent(bytes)
    }
    guard !isOver, !supervisor.isStopping, !hasHungUp(socket) else { return .end }
    do throws(NodeError) {
      if let event = try subscription.next(timeoutMilliseconds: ServerLimit.streamPollMilliseconds) {
        return sent(text(event))
      }
    } catch {
      isOver = true
      return sent(Self.event("error", Problem(error).value))
    }
    guard monotonicMilliseconds() - lastSentAt >= ServerLimit.keepAliveMilliseconds else { return .waiting }
    return sent(Array(": still here\n\n".utf8))
  }

  func close() { subscription.cancel() }

  private func sent(_ bytes: [UInt8]) -> StreamChunk {
    lastSentAt = monotonicMilliseconds()
    return .bytes(bytes)
  }

  private func text(_ event: WatchEvent) -> [UInt8] {
    defer { lastEventID = nil }
    switch event {
    case .snapshot(_, let cursor) where cursor == lastEventID: return Array(": nothing has changed\n\n".utf8)
    case .snapshot(let documents, let cursor):
      var list = DocumentList(FoundDocuments(documents))
      return Self.event("snapshot", data: list.piece() ?? [], cursor: cursor)
    case .insert(let document, let position, let cursor):
      return Self.event("insert", Self.members(document, position), cursor: cursor)
    case .update(let document, let position, let previous, let cursor):
      return Self.event(
        "update", Self.members(document, position, from: previous), cursor: cursor)
    case .delete(let id, let position, let cursor):
      return Self.event("delete", .object(["id": id, "position": .int(Int64(position))]), cursor: cursor)
    }
  }

  private static func members(_ document: StoredDocument, _ position: Int, from previous: Int? = nil) -> Value {
    var members = ValueMap(members: ["document": .map(document.withID), "position": .int(Int64(position))])
    members["previousPosition"] = previous.map { .int(Int64($0)) }
    return .map(members)
  }

  private static func event(_ name: String, _ value: Value, cursor: String? = nil) -> [UInt8] {
    event(name, data: JSON.render(value), cursor: cursor)
  }

  /// JSON on one line has no line break that would end the field.
  private static func event(_ name: String, data: [UInt8], cursor: String?) -> [UInt8] {
    let id = cursor.map { "id: \($0)\n" } ?? ""
    return Array("\(id)event: \(name)\ndata: ".utf8) + data + Array("\n\n".utf8)
  }
}
