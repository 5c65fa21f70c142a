import Identity
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
    return LiveResult(
      node: self, partition: partition, collection: collection, query: query, projection: request.projection,
      watcher: watcher)
  }
}

/// A query's result that follows the documents. Used by one thread at a time.
private final class LiveResult: WatchSubscription {
  private struct State {
    var shown: [StoredDocument] = []
    var waiting: [WatchEvent] = []
    var hasBegun = false
  }

  private let node: Node
  private let partition: PartitionName
  private let collection: Text
  private let query: DocumentQuery
  private let projection: ValueMap?
  private let watcher: Watcher
  private let state = Mutex(State())

  init(
    node: Node, partition: PartitionName, collection: Text, query: DocumentQuery, projection: ValueMap?,
    watcher: Watcher
  ) {
    (self.node, self.partition, self.collection) = (node, partition, collection)
    (self.query, self.projection, self.watcher) = (query, projection, watcher)
  }

  func cancel() { node.watchers.remove(watcher) }

  deinit { node.watchers.remove(watcher) }

  func next(timeoutMilliseconds: Int) throws(NodeError) -> WatchEvent? {
    if let event = state.withLock({ $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }) { return event }
    if !state.withLock({ $0.hasBegun }) { return try begin() }
    switch watcher.wait(timeoutMilliseconds: timeoutMilliseconds) {
    case .nothing: return nil
    case .stopped: throw NodeError(.stopping, "the node is stopping")
    case .overrun: break
    case .changed(let keys): guard try concernsThis(keys) else { return nil }
    }
    try refresh()
    return state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
  }

  private func begin() throws(NodeError) -> WatchEvent {
    let documents = try result()
    return state.withLock { state in
      (state.shown, state.hasBegun) = (documents, true)
      return .snapshot(documents, cursor: cursor(of: documents))
    }
  }

  private func concernsThis(_ keys: [DocumentChanges.Place: Set<[UInt8]>]) throws(NodeError) -> Bool {
    guard let place = try node.reading({ try self.node.place(self.partition, self.collection, $0) }) else {
      return false
    }
    return keys[place] != nil
  }

  private func result() throws(NodeError) -> [StoredDocument] {
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

  /// The difference between two results as events: deletes from the end, then inserts and updates from the front, so that
  /// whoever applies them in order always has the positions right.
  private func refresh() throws(NodeError) {
    let new = try result()
    let cursor = cursor(of: new)
    state.withLock { state in
      let steps = LiveResult.steps(from: state.shown, to: new)
      for (index, step) in steps.enumerated() {
        // Only after the last one has the client this result: an earlier cursor must not resume as if it had.
        let missing = steps.count - 1 - index
        state.waiting.append(step(missing == 0 ? cursor : "\(cursor)-\(missing)"))
      }
      state.shown = new
    }
  }

  private static func steps(from old: [StoredDocument], to new: [StoredDocument]) -> [(String) -> WatchEvent] {
    var working = old
    var steps: [(String) -> WatchEvent] = []
    let kept = Set(new.map(\.id))
    for index in working.indices.reversed() where !kept.contains(working[index].id) {
      let id = working.remove(at: index).id
      steps.append { .delete(id: id, position: index, cursor: $0) }
    }
    for (index, document) in new.enumerated() {
      if index < working.count, working[index].id == document.id {
        if working[index].etag != document.etag {
          steps.append { .update(document, position: index, previousPosition: index, cursor: $0) }
        }
        working[index] = document
      } else if let old = working[index...].firstIndex(where: { $0.id == document.id }) {
        working.remove(at: old)
        working.insert(document, at: index)
        steps.append { .update(document, position: index, previousPosition: old, cursor: $0) }
      } else {
        working.insert(document, at: index)
        steps.append { .insert(document, position: index, cursor: $0) }
      }
    }
    return steps
  }

  /// Names a result by what stands in it: equal for equal results, also after a restart of the node.
  private func cursor(of documents: [StoredDocument]) -> String {
    let facts: [Value] = [.string(partition.text), .string(collection), projection.map { .map($0) } ?? .null]
    var bytes = Value.array(facts).canonicalBytes
    for document in documents { bytes += document.id.canonicalBytes + Array(document.etag.utf8) }
    return Hex.encode(SHA256.hash(bytes).bytes.prefix(16))
  }
}
