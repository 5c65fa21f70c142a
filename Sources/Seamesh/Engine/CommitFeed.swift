import Engine
import Replication
import Synchronization

/// What commits changed, for whoever follows them: a bounded ring, read by cursors. The engine never waits for a reader; one
/// that falls behind the ring is told so, and reads what it follows anew from the store.
final class CommitFeed: CommitListener, Sendable {
  private struct State {
    /// The oldest first; their numbers end below `next`.
    var records: [CommitRecord] = []
    var byteCount = 0
    var next: UInt64 = 1
    var followers: [UInt64: FeedFollower] = [:]
    var nextFollower: UInt64 = 1
  }

  enum Reading {
    case records([CommitRecord], next: UInt64)
    /// What was committed in between is no longer here.
    case lapsed(next: UInt64)
  }

  private let state = Mutex(State())

  /// A reader that is this many commits behind reads anew.
  static let recordLimit = 256
  /// Memory of all records: a few batches of catch-up.
  static let byteLimit = 8 * 1024 * 1024
  /// Each costs a thread of the local interface while it is open.
  static let followerLimit = 64

  func committed(_ record: CommitRecord) {
    let followers = state.withLock { state in
      state.records.append(record)
      state.byteCount += record.byteCount
      state.next += 1
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

  /// Everything from `cursor` on.
  func read(from cursor: UInt64) -> Reading {
    state.withLock { state in
      let missed = state.next - cursor
      guard missed <= UInt64(state.records.count) else { return .lapsed(next: state.next) }
      return .records(Array(state.records.suffix(Int(missed))), next: state.next)
    }
  }

  /// Follows from now on. Nil where there are too many.
  func follow() -> FeedFollower? {
    state.withLock { state in
      guard state.followers.count < CommitFeed.followerLimit else { return nil }
      let follower = FeedFollower(self, number: state.nextFollower, from: state.next)
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
    /// More was committed than the feed remembers: look at everything again.
    case lapsed
    case nothing
    case stopped
  }

  let number: UInt64
  private let feed: CommitFeed
  private let cursor: Mutex<UInt64>
  private let isStopped = Mutex(false)
  private let signal = TimedSemaphore()

  init(_ feed: CommitFeed, number: UInt64, from cursor: UInt64) {
    (self.feed, self.number) = (feed, number)
    self.cursor = Mutex(cursor)
  }

  func wake() { signal.signal() }

  func stop() {
    isStopped.withLock { $0 = true }
    signal.signal()
  }

  /// Waits until a document of this place has changed since the last call, for so long at the most.
  func wait(for place: ChangedDocuments.Place, timeoutMilliseconds: Int) -> Wake {
    let deadline = ContinuousClock.now + .milliseconds(max(0, timeoutMilliseconds))
    while true {
      if let wake = take(place) { return wake }
      // Signals come for every commit, also for those of other places.
      let left = (deadline - .now) / .milliseconds(1)
      guard left > 0, signal.wait(milliseconds: UInt64(left.rounded(.up))) else { return take(place) ?? .nothing }
    }
  }

  private func take(_ place: ChangedDocuments.Place) -> Wake? {
    if isStopped.withLock({ $0 }) { return .stopped }
    return cursor.withLock { cursor in
      switch feed.read(from: cursor) {
      case .lapsed(let next):
        cursor = next
        return .lapsed
      case .records(let records, let next):
        cursor = next
        var keys: Set<[UInt8]> = []
        for record in records { record.collectKeys(of: place, into: &keys) }
        return keys.isEmpty ? nil : .changed(keys)
      }
    }
  }
}

extension CommitRecord {
  /// What it takes in the ring, roughly.
  fileprivate var byteCount: Int {
    documents.reduce(256 * (partitions.count + 1)) { $0 + $1.keyByteCount + 32 * $1.count }
  }

  fileprivate func collectKeys(of place: ChangedDocuments.Place, into keys: inout Set<[UInt8]>) {
    for changed in documents where changed.isAbout(place) {
      changed.forEach { other, key in if other == place { keys.insert(Array(key)) } }
    }
  }
}
