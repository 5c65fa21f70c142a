import Engine
import Kernel
import Replication
import Storage
import Synchronization

/// What commits changed, for whoever follows them: a bounded ring, read by cursors. The engine never waits for a reader. One
/// that falls behind the ring, or comes back after a restart, is told from where on the log has what it missed.
final class CommitFeed: Sendable {
  /// A follower's place: the next record, and how far the log had come before it.
  struct Cursor {
    fileprivate(set) var number: UInt64
    fileprivate(set) var position: LogPosition
  }

  private struct State {
    /// The oldest first; their numbers end below `next`.
    var records: [CommitRecord] = []
    var byteCount = 0
    var next = Cursor(number: 1, position: LogPosition())
    var followers: [UInt64: FeedFollower] = [:]
    var nextFollower: UInt64 = 1
  }

  private let state = Mutex(State())
  let limit: Int

  init(followers limit: Int = CommitFeed.followerLimit) { self.limit = limit }

  /// A reader that is more commits behind reads the log.
  static let recordLimit = 256
  /// Memory of all records: a few batches of catch-up.
  static let byteLimit = 8 * 1024 * 1024
  /// Each costs a thread and a connection of the local interface while it is open, of which others must find some, too.
  static let followerLimit = 48

  /// The log is there before the first commit is told.
  func begin(at position: LogPosition) { state.withLock { $0.next.position = position } }

  /// - Parameter position: where the log ends with this commit.
  func committed(_ record: CommitRecord, at position: LogPosition) {
    let followers = state.withLock { state in
      state.records.append(record)
      state.byteCount += record.byteCount
      state.next = Cursor(number: state.next.number + 1, position: position)
      while state.records.count > CommitFeed.recordLimit || state.byteCount > CommitFeed.byteLimit,
        let oldest = state.records.first
      {
        state.byteCount -= oldest.byteCount
        state.records.removeFirst()
      }
      return Array(state.followers.values)
    }
    for follower in followers { follower.wake() }
  }

  /// What a commit made now comes behind.
  var next: Cursor { state.withLock { $0.next } }

  /// Every record from `cursor` on, and where that leads. Nil where not all of them are here any more.
  func read(from cursor: Cursor) -> (records: [CommitRecord]?, next: Cursor) {
    state.withLock { state in
      let missed = state.next.number - cursor.number
      guard missed <= UInt64(state.records.count) else { return (nil, state.next) }
      return (Array(state.records.suffix(Int(missed))), state.next)
    }
  }

  /// Follows from now on, or from a ``FeedFollower/position`` that was kept, also by an earlier start. Nil where there are
  /// too many.
  func follow(from position: LogPosition? = nil) -> FeedFollower? {
    state.withLock { state in
      guard state.followers.count < limit else { return nil }
      // No record is of that number: what came since is asked of the log.
      let cursor = position.map { Cursor(number: 0, position: $0) } ?? state.next
      let follower = FeedFollower(self, number: state.nextFollower, from: cursor)
      state.followers[state.nextFollower] = follower
      state.nextFollower += 1
      return follower
    }
  }

  func remove(_ follower: FeedFollower) { state.withLock { $0.followers[follower.number] = nil } }

  func stop() { for follower in state.withLock({ Array($0.followers.values) }) { follower.stop() } }
}

/// One reader's place in the feed.
final class FeedFollower: Sendable {
  enum Wake: Sendable {
    /// Canonical ids of changed documents of the place that was asked for.
    case changed(Set<[UInt8]>)
    /// More was committed since than the feed remembers: the log has it (``DocumentReader/documents(of:writtenAfter:)``).
    case missed(since: LogPosition)
    case nothing
    case stopped
  }

  let number: UInt64
  private let feed: CommitFeed
  private let cursor: Mutex<CommitFeed.Cursor>
  private let isStopped = Mutex(false)
  private let signal = TimedSemaphore()
  private let awaiter = Mutex<(@Sendable () -> Void)?>(nil)

  init(_ feed: CommitFeed, number: UInt64, from cursor: CommitFeed.Cursor) {
    (self.feed, self.number) = (feed, number)
    self.cursor = Mutex(cursor)
  }

  /// Up to here it has been told everything. To be kept with what was made of it, by whoever goes on from there later.
  var position: LogPosition { cursor.withLock { $0.position } }

  func wake() {
    signal.signal()
    tellAwaiter()
  }

  func stop() {
    isStopped.withLock { $0 = true }
    wake()
  }

  /// Calls `body` once, at the next commit, whatever it changed, or at a stop: at once where either has been since the last
  /// look. For one at a time, who then looks.
  func atNews(_ body: @escaping @Sendable () -> Void) {
    awaiter.withLock { $0 = body }
    if isStopped.withLock({ $0 }) || cursor.withLock({ feed.next.number != $0.number }) { tellAwaiter() }
  }

  private func tellAwaiter() {
    let body = awaiter.withLock { awaiter in
      defer { awaiter = nil }
      return awaiter
    }
    body?()
  }

  /// Waits until a document of this place has changed since the last call, for so long at the most.
  func wait(for place: ChangedDocuments.Place, timeoutMilliseconds: Int) -> Wake {
    wait(timeoutMilliseconds) { take(place) } ?? .nothing
  }

  private func wait<Found>(_ timeoutMilliseconds: Int, take: () -> Found?) -> Found? {
    let deadline = ContinuousClock.now + .milliseconds(max(0, timeoutMilliseconds))
    while true {
      if let found = take() { return found }
      // Signals come for every commit, also for those that nobody here asks about.
      let left = (deadline - .now) / .milliseconds(1)
      guard left > 0, signal.wait(milliseconds: UInt64(left.rounded(.up))) else { return take() }
    }
  }

  enum SafetyWake: Sendable {
    case moved
    case nothing
    case stopped
  }

  /// Waits until something has changed that the safety of this partition stands on: its log, what a device says of it, or who
  /// is a member.
  func waitForSafety(of partition: PartitionID, timeoutMilliseconds: Int) -> SafetyWake {
    wait(timeoutMilliseconds) { takeSafety(partition) } ?? .nothing
  }

  private func takeSafety(_ partition: PartitionID) -> SafetyWake? {
    if isStopped.withLock({ $0 }) { return .stopped }
    return cursor.withLock { cursor in
      let (records, next) = feed.read(from: cursor)
      defer { cursor = next }
      let isMoved = records.map { $0.contains { $0.isAboutSafety(of: partition) } } ?? true
      return isMoved ? .moved : nil
    }
  }

  enum Moves: Sendable {
    /// What counts now of the partitions whose log or documents changed since the last call; none where only statements came.
    /// And where the log was then.
    case moved([PartitionID: VersionVector], at: LogPosition)
    /// More was committed since than the feed remembers.
    case missed
    case nothing
    case stopped
  }

  /// Waits for the next commits, whatever they changed, for so long at the most. Answers ``Moves/nothing`` early after a
  /// ``wake()``.
  func waitForMoves(timeoutMilliseconds: UInt64) -> Moves {
    if let moves = takeMoves() { return moves }
    _ = signal.wait(milliseconds: timeoutMilliseconds)
    return takeMoves() ?? .nothing
  }

  private func takeMoves() -> Moves? {
    if isStopped.withLock({ $0 }) { return .stopped }
    return cursor.withLock { cursor in
      let (records, next) = feed.read(from: cursor)
      defer { cursor = next }
      guard let records else { return .missed }
      guard records.contains(where: { !$0.isOfWordsAlone }) else { return nil }
      var moved: [PartitionID: VersionVector] = [:]
      for record in records { for partition in record.partitions { moved[partition.partition] = partition.accepted } }
      return .moved(moved, at: next.position)
    }
  }

  private func take(_ place: ChangedDocuments.Place) -> Wake? {
    if isStopped.withLock({ $0 }) { return .stopped }
    return cursor.withLock { cursor in
      let (records, next) = feed.read(from: cursor)
      defer { cursor = next }
      guard let records else { return .missed(since: cursor.position) }
      var keys: Set<[UInt8]> = []
      for record in records { record.collectKeys(of: place, into: &keys) }
      return keys.isEmpty ? nil : .changed(keys)
    }
  }
}

extension CommitRecord {
  /// What it takes in the ring, roughly.
  fileprivate var byteCount: Int {
    documents.reduce(256 * (partitions.count + 1) + 64 * words.count) { $0 + $1.keyByteCount + 32 * $1.count }
  }

  fileprivate func isAboutSafety(of partition: PartitionID) -> Bool {
    hasStatements || words.contains(partition) || partitions.contains { $0.partition == partition }
  }

  fileprivate func collectKeys(of place: ChangedDocuments.Place, into keys: inout Set<[UInt8]>) {
    for changed in documents where changed.isAbout(place) {
      changed.forEach { other, key in if other == place { keys.insert(Array(key)) } }
    }
  }
}
