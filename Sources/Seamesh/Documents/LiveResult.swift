import Engine
import Replication
import Synchronization

/// A query's result that follows the documents. Used by one thread at a time.
final class LiveResult: LiveSubscription {
  private enum Shown {
    case nothing
    /// Every document that matches: follows each change by itself.
    case all(LiveRows)
    /// Part of what matches: a change outside of it can move it, so that it is read again.
    case window([LiveRows.Row])
  }

  private struct State {
    var shown = Shown.nothing
    var waiting: [WatchEvent] = []
    /// What is shown is to be read anew: others had the turn when it was to be.
    var isBehind = false
  }

  private let reader: DocumentReader
  private let feed: CommitFeed
  /// Runs as long as somebody follows.
  private let owner: any AnyObject & Sendable
  private let partition: PartitionName
  private let collection: Text
  private let query: DocumentQuery
  private let identity: [UInt8]
  private let follower: FeedFollower
  private let part: LivePart
  private let state = Mutex(State())

  init(
    _ partition: PartitionName, _ collection: Text, _ request: FindRequest, _ reader: DocumentReader,
    _ feed: CommitFeed, _ part: LivePart, for owner: any AnyObject & Sendable
  ) throws(NodeError) {
    try reader.checkMayShow(partition)
    query = try DocumentQuery(request)
    guard let follower = feed.follow() else {
      throw NodeError(.busy, "there are \(feed.limit) live results already: close one first")
    }
    (self.reader, self.feed, self.follower, self.part) = (reader, feed, follower, part)
    (self.partition, self.collection, self.owner) = (partition, collection, owner)
    identity = request.identity(partition, collection)
  }

  func cancel() { feed.remove(follower) }

  deinit { feed.remove(follower) }

  private var place: ChangedDocuments.Place {
    ChangedDocuments.Place(
      partition: reader.id(of: partition), collection: collection)
  }

  func next(timeoutMilliseconds: Int) throws(NodeError) -> WatchEvent? {
    try reader.checkMayShow(partition)
    if let event = nextWaiting() { return event }
    if case .nothing = state.withLock({ $0.shown }) { return try begin() }
    do throws(NodeError) {
      let isBehind = state.withLock { state in
        defer { state.isBehind = false }
        return state.isBehind
      }
      if isBehind { try follow(nil) }
      if let event = nextWaiting() { return event }
      switch follower.wait(for: place, timeoutMilliseconds: timeoutMilliseconds) {
      case .nothing: return nil
      case .stopped: throw EngineLine.stopping
      case .missed(let position):
        let missed = try unlessBusy { () throws(NodeError) in try reader.documents(of: place, writtenAfter: position) }
        if let missed { try follow(missed) }
      case .changed(let keys): try follow(keys)
      }
      // It may be what came that took the right away.
      try reader.checkMayShow(partition)
    } catch {
      // What was to be followed is not told again: whoever goes on begins anew.
      state.withLock { $0 = State() }
      throw error
    }
    return nextWaiting()
  }

  func atNews(_ body: @escaping @Sendable () -> Void) {
    if state.withLock({ $0.isBehind || !$0.waiting.isEmpty }) { body() } else { follower.atNews(body) }
  }

  private func nextWaiting() -> WatchEvent? {
    state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
  }

  private func begin() throws(NodeError) -> WatchEvent {
    let shown: Shown
    let documents: [StoredDocument]
    if query.isWindow {
      let rows = try reader.rows(of: query, partition, collection).found
      try hold(rows)
      (shown, documents) = (.window(rows), rows.map(\.document))
    } else {
      let found = try all()
      let rows = LiveRows(query, found.rows.values)
      try withExtendedLifetime(found.share) { () throws(NodeError) in try part.hold(rows.heapBytes) }
      (shown, documents) = (.all(rows), rows.documents)
    }
    state.withLock { $0.shown = shown }
    return .snapshot(documents, cursor: ResultSum(documents).cursor(query: identity))
  }

  private func hold(_ rows: [LiveRows.Row]) throws(NodeError) {
    try part.hold(rows.reduce(0) { $0 + $1.heapBytes })
  }

  /// Nil where others have the turn for longer than one waits: what is shown stays meanwhile, and is read anew at the next look.
  private func unlessBusy<Answer>(_ read: () throws(NodeError) -> Answer) throws(NodeError) -> Answer? {
    do throws(NodeError) {
      return try read()
    } catch {
      guard error.code == .busy else { throw error }
      state.withLock { $0.isBehind = true }
      return nil
    }
  }

  // MARK: Following

  /// `keys` are those of documents that changed; nil: any may have.
  private func follow(_ keys: Set<[UInt8]>?) throws(NodeError) {
    if let keys, keys.isEmpty { return }
    if query.isWindow {
      let read = try unlessBusy { () throws(NodeError) in try reader.rows(of: query, partition, collection) }
      guard let read else { return }
      let new = state.withLock { keeping(read.damaged, of: $0, in: read.found) }
      try hold(new)
      state.withLock { move(&$0, to: new) }
    } else if let keys {
      guard let rows = try unlessBusy({ () throws(NodeError) in try read(keys) }) else { return }
      try state.withLock { state throws(NodeError) in try take(rows, gone: { _ in [] }, &state) }
    } else {
      guard let found = try unlessBusy({ () throws(NodeError) in try all() }) else { return }
      let rows = found.rows.mapValues { LiveRows.Row?.some($0) }
      try withExtendedLifetime(found.share) { () throws(NodeError) in
        try state.withLock { state throws(NodeError) in
          try take(rows, gone: { $0.subtracting(rows.keys).subtracting(found.damaged) }, &state)
        }
      }
    }
  }

  /// - Parameter gone: which of the ids that are shown are gone.
  private func take(
    _ rows: [[UInt8]: LiveRows.Row?], gone: (Set<[UInt8]>) -> Set<[UInt8]>, _ state: inout State
  ) throws(NodeError) {
    guard case .all(var shown) = state.shown else { return }
    // Not held twice while it changes: that would copy every row.
    state.shown = .nothing
    for id in rows.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) + gone(shown.ids) {
      guard let move = shown.take(id, rows[id] ?? nil) else { continue }
      state.waiting.append(WatchEvent(move, cursor: shown.sum.cursor(query: identity)))
    }
    try shown.check(reader.limits)
    try part.hold(shown.heapBytes)
    state.shown = .all(shown)
  }

  /// What is shown of documents that do not read stays where it belonged when they last did, as far as the window reaches.
  private func keeping(_ damaged: [Value], of state: State, in new: [LiveRows.Row]) -> [LiveRows.Row] {
    guard !damaged.isEmpty, case .window(let shown) = state.shown else { return new }
    let damaged = Set(damaged)
    let kept = shown.filter { damaged.contains($0.document.id) }
    let rows = (new + kept).sorted { query.order.precedes($0.key, $1.key) }
    return Array(rows.prefix(query.limit ?? .max))
  }

  /// The difference between two results as events: deletes from the end, then inserts and updates from the front, so that
  /// whoever applies them in order always has the positions right.
  private func move(_ state: inout State, to rows: [LiveRows.Row]) {
    guard case .window(let shown) = state.shown else { return }
    let new = rows.map(\.document)
    var working = shown.map(\.document)
    var sum = ResultSum(working)
    let kept = Set(new.map(\.id))
    for index in working.indices.reversed() where !kept.contains(working[index].id) {
      let gone = working.remove(at: index)
      sum.remove(gone)
      state.waiting.append(.delete(id: gone.id, position: index, cursor: sum.cursor(query: identity)))
    }
    for (index, document) in new.enumerated() {
      let old = working[index...].firstIndex { $0.id == document.id }
      if let old, old == index, working[index].etag == document.etag { continue }
      if let old { sum.remove(working.remove(at: old)) }
      sum.add(document)
      working.insert(document, at: index)
      let cursor = sum.cursor(query: identity)
      state.waiting.append(
        old.map { .update(document, position: index, previousPosition: $0, cursor: cursor) }
          ?? .insert(document, position: index, cursor: cursor))
    }
    state.shown = .window(rows)
  }

  // MARK: Reading

  /// A row for every document that matches, by key, and the keys of those that do not read: what is shown of these stays. Its
  /// share lasts until they are counted as held.
  private func all() throws(NodeError) -> (
    rows: [[UInt8]: LiveRows.Row], damaged: Set<[UInt8]>, share: ResultShare
  ) {
    let share = reader.resultTurns.share()
    let (found, _) = try reader.inOneState(partition, collection, share) { pass throws(NodeError) in
      try self.collect(&pass)
    }
    return (found.rows, found.damaged, share)
  }

  private func collect(
    _ pass: inout DocumentPass
  ) throws(NodeError) -> (rows: [[UInt8]: LiveRows.Row], damaged: Set<[UInt8]>) {
    var found: [[UInt8]: LiveRows.Row] = [:]
    var damaged: Set<[UInt8]> = []
    var bytes = 0
    let share = pass.share
    func note(_ id: Value) throws(NodeError) {
      damaged.insert(id.canonicalBytes)
      try reader.limits.check(damaged: damaged.count)
    }
    func take(_ document: StoredDocument) throws(NodeError) {
      guard let row = LiveRows.Row(document, query) else { return }
      found[document.id.canonicalBytes] = row
      bytes += row.heapBytes
      try reader.limits.check(documents: found.count, bytes: bytes)
      try share?.grow(to: bytes)
    }
    if let ids = query.filter.possibleIDs {
      try pass.eachOf(ids, damaged: note, take)
    } else {
      try pass.eachPage { rows throws(NodeError) in
        for (index, row) in rows.enumerated() {
          let beside = rows[(index + 1)...]
          let document = try reader.shown(row, partition, collection, beside: beside, met: note)
          if let document { try take(document) }
        }
        return true
      }
    }
    return (found, damaged)
  }

  /// Rows for what the documents of `keys` are now, nil where they are gone or do not match. Those that do not read are left out.
  private func read(_ keys: Set<[UInt8]>) throws(NodeError) -> [[UInt8]: LiveRows.Row?] {
    var found: [[UInt8]: LiveRows.Row?] = [:]
    var pass = DocumentPass(reader, partition, collection)
    try pass.eachRow(of: Array(keys)) { key, row throws(NodeError) in
      guard let row else {
        found.updateValue(nil, forKey: key)
        return
      }
      var isDamaged = false
      let document = try reader.shown(row, partition, collection) { _ in isDamaged = true }
      if !isDamaged { found.updateValue(document.flatMap { LiveRows.Row($0, query) }, forKey: key) }
    }
    return found
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
