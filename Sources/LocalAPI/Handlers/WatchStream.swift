import Replication
import Seamesh

/// What is followed, as the text of server-sent events. Used by one thread at a time.
protocol EventSource: AnyObject {
  /// Blocks for at most `timeoutMilliseconds`; nil where nothing happened until then.
  func next(timeoutMilliseconds: Int) throws(NodeError) -> [UInt8]?
  func cancel()
}

/// Server-sent events (HTML Living Standard §9.2). The reader pulls: one event waits at most, and one that reads nothing for
/// ``ServerLimit/idleSeconds`` is cut off.
final class WatchStream: ResponseStream {
  private let source: any EventSource
  private let supervisor: StreamSupervisor
  private let socket: Int32
  private var lastSentAt = monotonicMilliseconds()
  private var first: [UInt8]?
  private var isOver = false

  init(_ source: any EventSource, socket: Int32, supervisor: StreamSupervisor) {
    (self.source, self.socket, self.supervisor) = (source, socket, supervisor)
  }

  /// Makes the first event as long as the status of the answer can still be chosen.
  func begin() throws(NodeError) {
    do throws(NodeError) {
      first = try source.next(timeoutMilliseconds: 0)
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
      if let event = try source.next(timeoutMilliseconds: ServerLimit.streamPollMilliseconds) { return sent(event) }
    } catch {
      isOver = true
      return sent(serverSentEvent("error", Problem(error).value))
    }
    guard monotonicMilliseconds() - lastSentAt >= ServerLimit.keepAliveMilliseconds else { return .waiting }
    return sent(Array(": still here\n\n".utf8))
  }

  func close() { source.cancel() }

  private func sent(_ bytes: [UInt8]) -> StreamChunk {
    lastSentAt = monotonicMilliseconds()
    return .bytes(bytes)
  }
}

extension Response {
  /// Throws what the source cannot even begin with.
  static func events(
    _ source: any EventSource, _ request: Request, _ surroundings: Surroundings
  ) throws(NodeError) -> Response {
    let stream = WatchStream(source, socket: request.socket, supervisor: surroundings.streams)
    try stream.begin()
    return .stream(stream, type: .events)
  }
}

/// Events of a live result.
final class DocumentEvents: EventSource {
  /// Their names, with the schema of their data.
  static let described: [(name: String, data: Schema)] = [
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
  /// A client that comes back with the cursor of the present result is not sent the result again.
  private var lastEventID: String?

  init(_ subscription: any WatchSubscription, lastEventID: String?) {
    (self.subscription, self.lastEventID) = (subscription, lastEventID)
  }

  func next(timeoutMilliseconds: Int) throws(NodeError) -> [UInt8]? {
    try subscription.next(timeoutMilliseconds: timeoutMilliseconds).map(text)
  }

  func cancel() { subscription.cancel() }

  private func text(_ event: WatchEvent) -> [UInt8] {
    defer { lastEventID = nil }
    switch event {
    case .snapshot(_, let cursor) where cursor == lastEventID: return Array(": nothing has changed\n\n".utf8)
    case .snapshot(let documents, let cursor):
      var list = DocumentList(FoundDocuments(documents))
      return serverSentEvent("snapshot", data: list.piece() ?? [], cursor: cursor)
    case .insert(let document, let position, let cursor):
      return serverSentEvent("insert", DocumentEvents.members(document, position), cursor: cursor)
    case .update(let document, let position, let previous, let cursor):
      return serverSentEvent("update", DocumentEvents.members(document, position, from: previous), cursor: cursor)
    case .delete(let id, let position, let cursor):
      return serverSentEvent("delete", .object(["id": id, "position": .int(Int64(position))]), cursor: cursor)
    }
  }

  private static func members(_ document: StoredDocument, _ position: Int, from previous: Int? = nil) -> Value {
    var members = ValueMap(members: ["document": .map(document.withID), "position": .int(Int64(position))])
    members["previousPosition"] = previous.map { .int(Int64($0)) }
    return .map(members)
  }
}

func serverSentEvent(_ name: String, _ value: Value, cursor: String? = nil) -> [UInt8] {
  serverSentEvent(name, data: JSON.render(value), cursor: cursor)
}

/// JSON on one line has no line break that would end the field.
private func serverSentEvent(_ name: String, data: [UInt8], cursor: String?) -> [UInt8] {
  let id = cursor.map { "id: \($0)\n" } ?? ""
  return Array("\(id)event: \(name)\ndata: ".utf8) + data + Array("\n\n".utf8)
}
