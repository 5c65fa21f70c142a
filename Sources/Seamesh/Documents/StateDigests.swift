import Dispatch
import Engine
import Kernel
import Replication
import Storage
import Synchronization

/// State digests of partitions, each kept with the accepted vector of the very state that it was computed from. They follow
/// the changes where somebody asks: one partition at a time, behind the requests, which wait for a short while only.
final class StateDigests: Sendable {
  struct Known: Sendable {
    let vector: VersionVector
    let digest: String
    let inboxDigest: String
    let documents: Int64
    /// When the state was read.
    let time: ContinuousClock.Instant
  }

  /// Whether something in a partition waits for a decision.
  struct KnownConflicts: Sendable {
    let partition: PartitionName
    let areOpen: Bool
  }

  enum Outcome: Sendable {
    case known(Known)
    case failed(NodeError, VersionVector, at: ContinuousClock.Instant)
    /// Nothing came of it this time.
    case unsettled(NodeError)
  }

  private struct State {
    var outcomes: [PartitionID: Outcome] = [:]
    /// Whether something waits for a decision, as of the last pass that came to an end.
    var conflicts: [PartitionID: KnownConflicts] = [:]
    /// What they were summed up from, and what of it the next pass need not read again.
    var stretches: [PartitionID: StateStretches] = [:]
    /// Partitions whose turn is now or later, with whom to tell.
    var waiting: [PartitionID: [TimedSemaphore]] = [:]
    /// Of these, those that changed after their turn may have begun.
    var renewals: [PartitionID: PartitionRow] = [:]
    /// Up to here the feed was looked at for what is overtaken; nil where nobody has asked yet.
    var seen: CommitFeed.Cursor?
    /// Of these documents may have changed since they were summed up, though what counts of them has not: that a chain forked
    /// decides what others had seen of it (C23).
    var overtaken: Set<PartitionID> = []

    func isCurrent(_ known: Known, of row: PartitionRow) -> Bool {
      known.vector == row.accepted && !overtaken.contains(row.id)
    }
  }

  private let documents: DocumentReader
  private let feed: CommitFeed
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "seamesh.digests", qos: .utility)

  /// What failed is not tried again sooner, however often it is asked for: a damaged row stays damaged.
  private static let retryInterval = Duration.seconds(60)

  init(_ documents: DocumentReader, _ feed: CommitFeed) { (self.documents, self.feed) = (documents, feed) }

  /// Fills in what is known after `milliseconds` at the latest. What is not goes on being computed.
  func fill(_ rows: [PartitionRow], within milliseconds: Int) -> [PartitionStatus] {
    let asked = ContinuousClock.now
    let signal = TimedSemaphore()
    noteOvertaken()
    var missing = rows.count { row in request(row, at: asked, signal) }
    let deadline = asked.advanced(by: .milliseconds(milliseconds))
    while missing > 0, case let left = ContinuousClock.now.duration(to: deadline), left > .zero {
      guard signal.wait(milliseconds: UInt64(max(1, left / .milliseconds(1)))) else { break }
      missing -= 1
    }
    return rows.map { row in status(row, askedAt: asked) }
  }

  private func noteOvertaken() {
    let seen = state.withLock { $0.seen } ?? feed.next
    let (records, next) = feed.read(from: seen)
    let found = records.map(StateDigests.unmoved) ?? rebuilt(since: seen.position)
    state.withLock { state in
      state.seen = next
      state.overtaken.formUnion(found ?? Set(state.outcomes.keys))
    }
  }

  private static func unmoved(by records: [CommitRecord]) -> Set<PartitionID> {
    Set(records.lazy.flatMap(\.partitions).filter { $0.before == $0.accepted }.map(\.partition))
  }

  /// More was committed than the feed remembers: the store knows what no run tells. Nil where it may be anything.
  private func rebuilt(since position: LogPosition) -> Set<PartitionID>? {
    ((try? documents.reading { try $0.partitionsRebuilt(since: position) }) ?? nil).map(Set.init)
  }

  /// Whether the answer is still to come.
  private func request(
    _ row: PartitionRow, at asked: ContinuousClock.Instant, _ signal: TimedSemaphore
  ) -> Bool {
    let (isMissing, isNew) = state.withLock { state in
      switch state.outcomes[row.id] {
      case .known(let known) where state.isCurrent(known, of: row): return (false, false)
      case .failed(_, row.accepted, let time) where asked - time < StateDigests.retryInterval: return (false, false)
      default: break
      }
      state.waiting[row.id, default: []].append(signal)
      return (true, state.waiting[row.id]?.count == 1)
    }
    if isNew { begin(row) }
    return isMissing
  }

  private func begin(_ row: PartitionRow) {
    queue.async {
      var stretches = self.state.withLock { state in
        state.overtaken.remove(row.id)
        return state.stretches.removeValue(forKey: row.id) ?? StateStretches()
      }
      let outcome = StatePass(documents: self.documents, feed: self.feed, row: row).outcome(&stretches)
      let (waiting, renewal) = self.state.withLock { state in
        state.stretches[row.id] = stretches
        state.outcomes[row.id] = outcome
        if case .known(let known) = outcome {
          state.conflicts[row.id] = KnownConflicts(partition: row.name, areOpen: known.hasConflicts)
        }
        return (state.waiting.removeValue(forKey: row.id) ?? [], state.renewals.removeValue(forKey: row.id))
      }
      for signal in waiting { signal.signal() }
      if let renewal { self.renew(renewal) }
    }
  }

  /// Of the partitions that were summed up, as they were then. Reads nothing.
  var knownConflicts: [KnownConflicts] { state.withLock { Array($0.conflicts.values) } }

  func hasSummedUp(_ partition: PartitionID) -> Bool { state.withLock { $0.outcomes[partition] != nil } }

  /// Sums up anew, behind whoever asks: once more, where a pass is under way that may have begun before the change.
  func renew(_ row: PartitionRow) {
    let isUnderWay = state.withLock { state in
      guard state.waiting[row.id] != nil else { return false }
      state.renewals[row.id] = row
      return true
    }
    if !isUnderWay { _ = request(row, at: .now, TimedSemaphore()) }
  }

  /// How many stretches a partition's documents are summed up by.
  func stretchCount(of partition: PartitionID) -> Int { state.withLock { $0.stretches[partition]?.count ?? 0 } }

  private func status(_ row: PartitionRow, askedAt asked: ContinuousClock.Instant) -> PartitionStatus {
    var status = row.status
    let (outcome, isCurrent) = state.withLock { state in
      guard case .known(let known)? = state.outcomes[row.id] else { return (state.outcomes[row.id], false) }
      return (.known(known), state.isCurrent(known, of: row))
    }
    switch outcome {
    case .known(let known) where isCurrent || known.time >= asked:
      // Of the state of the digest, which may be a later one than that of the row.
      (status.digest, status.inboxDigest, status.digestState) = (known.digest, known.inboxDigest, .computed)
      (status.vector, status.documents) = (PartitionStatus.shown(known.vector), known.documents)
    case .failed(let error, _, _): status.digestState = .failed(error.message)
    case .unsettled(let error): status.digestState = .notComputed(error.message)
    default: status.digestState = .notComputed("it is being computed: ask again")
    }
    return status
  }
}

/// Brings what is summed up of a partition's documents up to one state of the store.
private struct StatePass {
  let documents: DocumentReader
  let feed: CommitFeed
  let row: PartitionRow

  /// A partition in which more changes than is read meanwhile is looked at so often, then left for a quieter time.
  private static let setbackLimit = 3

  private enum Step {
    case more
    /// As much came to be read anew as was read.
    case setback
    case done(VersionVector, at: ContinuousClock.Instant)
  }

  func outcome(_ stretches: inout StateStretches) -> StateDigests.Outcome {
    var damaged: Set<DocumentKey> = []
    // What did not read is looked at again with the next pass.
    defer { mark(damaged, &stretches) }
    do throws(NodeError) {
      var setbacks = 0
      while setbacks < StatePass.setbackLimit {
        switch try slice(&stretches, &damaged) {
        case .more: break
        case .setback: setbacks += 1
        case .done(let vector, let time):
          guard !damaged.isEmpty else { return .known(.init(vector, stretches.total, time)) }
          guard try documents.mend(damaged, in: row.name) else {
            throw NodeError(.damaged, "documents in it do not read on this device: seamesh doctor names them")
          }
          mark(damaged, &stretches)
          damaged = []
          setbacks += 1
        }
      }
      return .unsettled(NodeError(.busy, "the partition changes while it is read: ask again when it is quiet"))
    } catch {
      let passes = error.code == .busy || error.code == .stopping
      return passes ? .unsettled(error) : .failed(error, row.accepted, at: .now)
    }
  }

  private func mark(_ keys: Set<DocumentKey>, _ stretches: inout StateStretches) {
    for key in keys { stretches.mark(key.id, of: key.collection) }
  }

  /// Reads what is to be read from one state, for about as long as a slice takes.
  private func slice(_ stretches: inout StateStretches, _ damaged: inout Set<DocumentKey>) throws(NodeError) -> Step {
    try catchUp(&stretches)
    return try documents.pinned(row.id, feed) { reader, pinned in
      let marked = follow(to: pinned.cursor, &stretches)
      let time = ContinuousClock.now
      guard let number = try reader.partitionNumber(row.id) else {
        stretches = StateStretches()
        return .done(pinned.vector, at: time)
      }
      let collections = try reader.collections(of: number)
      stretches.know(collections.map(\.name))
      let end = time.advanced(by: .milliseconds(documents.limits.digestSliceMilliseconds))
      var pages = 0
      for (name, collection) in collections {
        while let gap = stretches.gap(in: name) {
          guard pages == 0 || ContinuousClock.now < end else { return pages > marked ? .more : .setback }
          try read(gap, (number, collection), reader, &stretches, &damaged)
          pages += 1
        }
      }
      return .done(pinned.vector, at: time)
    }
  }

  /// Marks what the commits changed that the state of the store has beyond what was read. Answers how many stretches are to
  /// be read anew for it.
  private func follow(to cursor: CommitFeed.Cursor, _ stretches: inout StateStretches) -> Int {
    defer { stretches.cursor = cursor }
    guard let before = stretches.cursor else { return 0 }
    guard let records = feed.read(from: before).records else {
      stretches = StateStretches()
      return 0
    }
    var marked = 0
    for changed in records.lazy.flatMap(\.documents) {
      changed.forEach { place, key in
        guard place.partition == row.id, stretches.mark(key, of: place.collection) else { return }
        marked += 1
      }
    }
    return marked
  }

  /// Where more was committed than the feed remembers, the log says what changed, or all is read anew.
  private func catchUp(_ stretches: inout StateStretches) throws(NodeError) {
    let next = feed.next
    guard let before = stretches.cursor, feed.read(from: before).records == nil else { return }
    guard let keys = try documents.documents(of: row.id, writtenAfter: before.position) else {
      stretches = StateStretches()
      return
    }
    mark(keys, &stretches)
    stretches.cursor = next
  }

  /// Reads a gap, or the beginning of one that holds more than two stretches should.
  private func read(
    _ gap: StateStretches.Gap, _ place: (partition: PartitionNumber, collection: CollectionNumber),
    _ reader: StoreReader, _ stretches: inout StateStretches, _ damaged: inout Set<DocumentKey>
  ) throws {
    let limit = 2 * documents.limits.digestStretchDocuments
    let rows = try reader.documents(
      place.partition, place.collection, after: gap.after, limit: limit, byteLimit: documents.limits.pageBytes,
      withDeleted: true)
    var within = rows.prefix { row in gap.end.map { !$0.lexicographicallyPrecedes(row.key) } ?? true }
    let endsWithGap = gap.end != nil && rows.last?.key == gap.end
    var isAll = rows.isEmpty || within.count < rows.count || endsWithGap
    if !isAll, rows.count == limit {
      within = within.prefix(documents.limits.digestStretchDocuments)
    } else if !isAll {
      // Ended by its bytes, or by the end of the collection.
      isAll = try reader.documents(
        place.partition, place.collection, after: rows.last?.key, limit: 1, withDeleted: true
      ).isEmpty
    }
    let content = try content(of: within, in: gap.collection, &damaged)
    stretches.fill(gap, upTo: isAll ? nil : within.last?.key, content)
  }

  private func content(
    of rows: ArraySlice<DocumentRow>, in collection: Text, _ damaged: inout Set<DocumentKey>
  ) throws(NodeError) -> StateStretches.Content {
    var content = StateStretches.Content()
    for row in rows {
      guard !documents.engine.isStopping else { throw EngineLine.stopping }
      guard let state = try? DocumentState(stored: row), state.isAlive == row.isAlive,
        let id = Value(canonicalID: row.key)
      else {
        damaged.insert(DocumentKey(collection: collection, id: row.key))
        try documents.limits.check(damaged: damaged.count)
        continue
      }
      let shown = state.rendered()
      if case .map(let body) = shown.value {
        content.sum.add(StateSum.term(self.row.name, collection, id: id, body))
        content.documents += 1
      }
      // Deleted ones have conflicts, too.
      let inbox = state.inbox(shown: shown)
      if !inbox.isEmpty { content.inbox.add(StateSum.term(self.row.name, collection, id: id, inbox: inbox)) }
    }
    return content
  }
}

extension StateDigests.Known {
  fileprivate init(
    _ vector: VersionVector, _ content: StateStretches.Content, _ time: ContinuousClock.Instant
  ) {
    self.init(
      vector: vector, digest: content.sum.text, inboxDigest: content.inbox.text, documents: content.documents,
      time: time)
  }

  fileprivate var hasConflicts: Bool { inboxDigest != StateSum().text }
}

/// A state of the store that a reader has before it.
private struct PinnedState: Sendable {
  /// What of the partition counts in it.
  let vector: VersionVector
  /// Commits before it are in it.
  let cursor: CommitFeed.Cursor
}

extension DocumentReader {
  /// Reads from one state of the store, together with what a partition has accepted in that very state.
  fileprivate func pinned<Answer>(
    _ partition: PartitionID, _ feed: CommitFeed, _ body: (StoreReader, PinnedState) throws -> Answer
  ) throws(NodeError) -> Answer {
    try reading { reader in
      defer { reader.unpin() }
      // Lent to the engine thread, which alone knows when a vector and the store agree; this one waits meanwhile.
      nonisolated(unsafe) let lent = reader
      let pinned = try engine.ask { engine in
        Result { () throws(NodeError) in
          // Before the pin: what the state has beyond it is read once more, and nothing is missed.
          let cursor = feed.next
          return PinnedState(vector: try engine.pin(lent, partition), cursor: cursor)
        }
      }.get()
      return try body(reader, pinned)
    }
  }
}

extension NodeEngine {
  fileprivate func pin(_ reader: StoreReader, _ partition: PartitionID) throws(NodeError) -> VersionVector {
    // After a failure the mesh may know what never reached the disk.
    if let failure { throw NodeError(any: failure) }
    do throws(StoreError) { try reader.pin() } catch { throw NodeError(error) }
    return state.mesh.partitions[partition]?.log.accepted ?? VersionVector()
  }
}
