import Replication
import Storage
import Synchronization

extension Node {
  package func watch(
    _ partition: PartitionName, _ collection: Text, _ request: FindRequest
  ) throws(NodeError) -> any WatchSubscription {
    let query = try DocumentQuery(request)
    guard let watcher = watchers.add() else {
      throw NodeError(.busy, "there are \(WatchHub.watcherLimit) live results already: close one first")
    }
    return LiveResult(node: self, partition: partition, collection: collection, query: query, watcher: watcher)
  }
}

/// A query's result that follows the documents. Used by one thread at a time.
private final class LiveResult: WatchSubscription {
  private enum Shown {
    case nothing
    /// Every document that matches: follows each change by itself.
    case all(LiveRows)
    /// Part of what matches: a change outside of it can move it, so that it is read again.
    case window([StoredDocument])
  }

  private struct State {
    var shown = Shown.nothing
    var waiting: [WatchEvent] = []
    var count: UInt64 = 0
  }

  private let node: Node
  private let partition: PartitionName
  private let collection: Text
  private let query: DocumentQuery
  private let watcher: Watcher
  private let state = Mutex(State())

  init(node: Node, partition: PartitionName, collection: Text, query: DocumentQuery, watcher: Watcher) {
    (self.node, self.partition, self.collection) = (node, partition, collection)
    (self.query, self.watcher) = (query, watcher)
  }

  func cancel() { node.watchers.remove(watcher) }

  deinit { node.watchers.remove(watcher) }

  func next(timeoutMilliseconds: Int) throws(NodeError) -> WatchEvent? {
    if let event = nextWaiting() { return event }
    if case .nothing = state.withLock({ $0.shown }) { return try begin() }
    switch watcher.wait(timeoutMilliseconds: timeoutMilliseconds) {
    case .nothing: return nil
    case .stopped: throw NodeError(.stopping, "the node is stopping")
    case .overrun: try follow(nil)
    case .changed(let keys): try follow(keys)
    }
    return nextWaiting()
  }

  private func nextWaiting() -> WatchEvent? {
    state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
  }

  private func begin() throws(NodeError) -> WatchEvent {
    let shown: Shown
    let documents: [StoredDocument]
    if query.isWindow {
      documents = try window()
      shown = .window(documents)
    } else {
      let rows = LiveRows(query, try read(nil).values.compactMap { $0 })
      (shown, documents) = (.all(rows), rows.documents)
    }
    return state.withLock { state in
      state.shown = shown
      return .snapshot(documents, cursor: cursor(&state))
    }
  }

  // MARK: Following

  /// `changed` are the keys of documents by their place; nil: any may have changed.
  private func follow(_ changed: [DocumentChanges.Place: Set<[UInt8]>]?) throws(NodeError) {
    var keys: Set<[UInt8]>?
    if let changed {
      guard let place = try node.reading({ try self.node.place(self.partition, self.collection, $0) }),
        let here = changed[place]
      else { return }
      keys = here
    }
    if query.isWindow {
      let new = try window()
      state.withLock { move(&$0, to: new) }
    } else {
      let documents = try read(keys)
      state.withLock { take(documents, areAll: keys == nil, &$0) }
    }
  }

  private func take(_ documents: [[UInt8]: StoredDocument?], areAll: Bool, _ state: inout State) {
    guard case .all(var rows) = state.shown else { return }
    // Not held twice while it changes: that would copy every row.
    state.shown = .nothing
    let gone = areAll ? rows.ids.subtracting(documents.keys) : []
    for id in documents.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) + gone {
      guard let move = rows.take(id, documents[id] ?? nil) else { continue }
      state.waiting.append(WatchEvent(move, cursor: cursor(&state)))
    }
    state.shown = .all(rows)
  }

  /// The difference between two results as events: deletes from the end, then inserts and updates from the front, so that
  /// whoever applies them in order always has the positions right.
  private func move(_ state: inout State, to new: [StoredDocument]) {
    guard case .window(var working) = state.shown else { return }
    let kept = Set(new.map(\.id))
    for index in working.indices.reversed() where !kept.contains(working[index].id) {
      state.waiting.append(.delete(id: working[index].id, position: index, cursor: cursor(&state)))
      working.remove(at: index)
    }
    for (index, document) in new.enumerated() {
      if index < working.count, working[index].id == document.id {
        if working[index].etag != document.etag {
          state.waiting.append(.update(document, position: index, previousPosition: index, cursor: cursor(&state)))
        }
        working[index] = document
      } else if let old = working[index...].firstIndex(where: { $0.id == document.id }) {
        working.remove(at: old)
        working.insert(document, at: index)
        state.waiting.append(.update(document, position: index, previousPosition: old, cursor: cursor(&state)))
      } else {
        working.insert(document, at: index)
        state.waiting.append(.insert(document, position: index, cursor: cursor(&state)))
      }
    }
    state.shown = .window(new)
  }

  private func cursor(_ state: inout State) -> String {
    state.count += 1
    return "\(watcher.number).\(state.count)"
  }

  // MARK: Reading

  private func window() throws(NodeError) -> [StoredDocument] {
    let query = query
    return try node.reading { reader in
      var collector = ResultCollector(query)
      try self.node.visit(self.partition, self.collection, reader) { document in
        collector.offer(document)
        return true
      }
      return collector.finish()
    }
  }

  /// What the documents of `keys` are now, nil where they are gone; without keys, all that match.
  private func read(_ keys: Set<[UInt8]>?) throws(NodeError) -> [[UInt8]: StoredDocument?] {
    try node.reading { reader in
      var found: [[UInt8]: StoredDocument?] = [:]
      guard let keys else {
        try self.node.visit(self.partition, self.collection, reader) { document in
          if self.query.filter.matches(id: document.id, document.body) { found[document.id.canonicalBytes] = document }
          return true
        }
        return found
      }
      guard let place = try self.node.place(self.partition, self.collection, reader) else { return found }
      for key in keys {
        let row = try reader.document(place.partition, place.collection, key: key)
        found.updateValue(try row.flatMap { $0.isAlive ? try StoredDocument($0) : nil }, forKey: key)
      }
      return found
    }
  }
}

extension WatchEvent {
  fileprivate init(_ move: LiveRows.Move, cursor: String) {
    self =
      switch move {
      case .inserted(let document, let position): .insert(document, position: position, cursor: cursor)
      case .updated(let document, let position, let before):
        .update(document, position: position, previousPosition: before, cursor: cursor)
      case .deleted(let id, let position): .delete(id: id, position: position, cursor: cursor)
      }
  }
}
