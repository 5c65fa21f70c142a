import Replication
import Testing

@testable import Seamesh

/// Applies events as an app does, and holds what it then shows.
final class LiveMirror {
  private let watch: any WatchSubscription
  private(set) var shown: [StoredDocument] = []
  /// What came after the snapshot: `+` for an insert, `~` for an update, `-` for a delete, each with the id.
  private(set) var events: [String] = []
  var ids: [Value] { shown.map(\.id) }

  init(_ watch: any WatchSubscription) throws {
    self.watch = watch
    guard case .snapshot(let documents, _)? = try watch.next(timeoutMilliseconds: 1_000) else {
      Issue.record("there is no snapshot")
      return
    }
    shown = documents
  }

  deinit { watch.cancel() }

  /// False where nothing waits.
  func take() throws -> Bool {
    guard let event = try watch.next(timeoutMilliseconds: 0) else { return false }
    switch event {
    case .snapshot(let documents, _):
      shown = documents
      events.append("snapshot")
    case .insert(let document, let position, _):
      shown.insert(document, at: position)
      events.append("+\(document.name)")
    case .delete(let id, let position, _):
      let gone = shown.remove(at: position)
      #expect(gone.id == id)
      events.append("-\(gone.name)")
    case .update(let document, let position, let before, _):
      #expect(shown.remove(at: before).id == document.id)
      shown.insert(document, at: position)
      events.append("~\(document.name)")
    }
    return true
  }

  func drain() throws { while try take() {} }
}

extension StoredDocument {
  fileprivate var name: String { if case .string(let text) = id { text.string } else { "\(id)" } }
}
