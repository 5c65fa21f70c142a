import Foundation
import Replication
import Synchronization
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh

/// The ring of commits and its readers.
@Suite struct CommitFeedTests {
  private let feed = CommitFeed()
  private let place = ChangedDocuments.Place(partition: PartitionID(.zero), collection: "c")

  /// A commit of documents that lie in one place.
  private func record(_ keys: [[UInt8]], in place: ChangedDocuments.Place? = nil) -> CommitRecord {
    var items: [(place: Int, key: Range<Int>)] = []
    var bytes: [UInt8] = []
    for key in keys {
      items.append((0, bytes.count..<bytes.count + key.count))
      bytes += key
    }
    return CommitRecord(documents: [ChangedDocuments(keys: bytes, places: [place ?? self.place], items: items)])
  }

  private func changed(_ follower: FeedFollower) -> Set<[UInt8]>? {
    if case .changed(let keys) = follower.wait(for: place, timeoutMilliseconds: 0) { keys } else { nil }
  }

  private func isLapsed(_ follower: FeedFollower) -> Bool {
    if case .lapsed = follower.wait(for: place, timeoutMilliseconds: 0) { true } else { false }
  }

  private func isQuiet(_ follower: FeedFollower) -> Bool {
    if case .nothing = follower.wait(for: place, timeoutMilliseconds: 0) { true } else { false }
  }

  @Test("a follower gets what changed since it last asked, once, all commits together")
  func since() throws {
    feed.committed(record([[9]]))
    let follower = try #require(feed.follow())
    #expect(isQuiet(follower))
    feed.committed(record([[1], [2]]))
    feed.committed(record([[2], [3]]))
    #expect(changed(follower) == [[1], [2], [3]])
    #expect(isQuiet(follower))
  }

  @Test("what changed elsewhere is nothing to it")
  func elsewhere() throws {
    let follower = try #require(feed.follow())
    feed.committed(record([[1]], in: ChangedDocuments.Place(partition: PartitionID(.zero), collection: "d")))
    #expect(isQuiet(follower))
    feed.committed(record([[2]]))
    #expect(changed(follower) == [[2]])
  }

  @Test("of a commit that changed documents in several places each follower hears of its own place alone")
  func severalPlaces() throws {
    let other = ChangedDocuments.Place(partition: PartitionID(.zero), collection: "d")
    let follower = try #require(feed.follow())
    let documents = ChangedDocuments(
      keys: [1, 2, 3], places: [place, other], items: [(0, 0..<1), (1, 1..<2), (0, 2..<3)])
    feed.committed(CommitRecord(documents: [documents]))
    #expect(changed(follower) == [[1], [3]])
  }

  @Test("one that is as far behind as the ring is long misses nothing; one further behind is told to look again")
  func lapse() throws {
    let (near, far) = (try #require(feed.follow()), try #require(feed.follow()))
    for number in 0..<CommitFeed.recordLimit { feed.committed(record([[UInt8(number % 256)]])) }
    #expect(changed(near)?.count == CommitFeed.recordLimit)
    feed.committed(record([[1]]))
    #expect(isLapsed(far))
    #expect(changed(near) == [[1]])
    // Whoever looked again follows on from there.
    feed.committed(record([[5]]))
    #expect(changed(far) == [[5]])
  }

  @Test("large commits take the room of many: the ring is bounded in bytes")
  func bytes() throws {
    let (follower, count) = (try #require(feed.follow()), 20)
    #expect(count < CommitFeed.recordLimit)
    let large = [UInt8](repeating: 1, count: CommitFeed.byteLimit / 10)
    for _ in 0..<count { feed.committed(record([large])) }
    #expect(isLapsed(follower))
    // A commit larger than the ring is forgotten at once, and said to be.
    feed.committed(record([[UInt8](repeating: 1, count: CommitFeed.byteLimit)]))
    #expect(isLapsed(follower))
  }

  @Test("there are so many followers at the most, and one that goes makes room")
  func limit() throws {
    let followers = (0..<CommitFeed.followerLimit).compactMap { _ in feed.follow() }
    #expect(followers.count == CommitFeed.followerLimit)
    #expect(feed.follow() == nil)
    feed.remove(followers[7])
    #expect(feed.follow() != nil)
  }

  @Test("a stop wakes whoever waits, and nobody waits after it")
  func stop() throws {
    let follower = try #require(feed.follow())
    let isWaiting = Mutex(false)
    let isWoken = Mutex(false)
    let place = place
    Thread.detachNewThread {
      isWaiting.withLock { $0 = true }
      if case .stopped = follower.wait(for: place, timeoutMilliseconds: 60_000) { isWoken.withLock { $0 = true } }
    }
    try eventually(within: 5) { isWaiting.withLock { $0 } }
    feed.stop()
    try eventually(within: 5) { isWoken.withLock { $0 } }
    guard case .stopped = follower.wait(for: place, timeoutMilliseconds: 60_000) else {
      Issue.record("it is not stopped")
      return
    }
  }

  @Test("a commit wakes a follower that waits")
  func wakes() throws {
    let follower = try #require(feed.follow())
    let keys = Mutex<Set<[UInt8]>>([])
    let (feed, place) = (feed, place)
    Thread.detachNewThread {
      while keys.withLock({ $0.isEmpty }) {
        if case .changed(let new) = follower.wait(for: place, timeoutMilliseconds: 60_000) {
          keys.withLock { $0 = new }
        }
      }
    }
    feed.committed(record([[4]]))
    try eventually(within: 5) { keys.withLock { $0 } == [[4]] }
  }
}
