import Foundation
import Identity
import Replication
import Storage
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

  /// The place in the log from which on the follower is to read.
  private func missed(_ follower: FeedFollower) -> LogPosition? {
    if case .missed(let position) = follower.wait(for: place, timeoutMilliseconds: 0) { position } else { nil }
  }

  /// One run each.
  private func commit(_ keys: [[UInt8]], in place: ChangedDocuments.Place? = nil) {
    feed.committed(record(keys, in: place), at: LogPosition(arrival: feed.next.position.arrival + 1))
  }

  private func isQuiet(_ follower: FeedFollower) -> Bool {
    if case .nothing = follower.wait(for: place, timeoutMilliseconds: 0) { true } else { false }
  }

  @Test("a follower gets what changed since it last asked, once, all commits together")
  func since() throws {
    commit([[9]])
    let follower = try #require(feed.follow())
    #expect(isQuiet(follower))
    commit([[1], [2]])
    commit([[2], [3]])
    #expect(changed(follower) == [[1], [2], [3]])
    #expect(isQuiet(follower))
  }

  @Test("who follows how safe a partition is hears of its log, words of it and statements; words are no move of a log")
  func safety() throws {
    let (safety, log) = (try #require(feed.follow()), try #require(feed.follow()))
    let (here, elsewhere) = (PartitionID(.zero), PartitionID(Digest.of([1], SHA256.hash)))
    func isMoved() -> Bool { safety.waitForSafety(of: here, timeoutMilliseconds: 0) == .moved }
    func isLogMoved() -> Bool { if case .moved = log.waitForMoves(timeoutMilliseconds: 0) { true } else { false } }
    func moved(_ partition: PartitionID) throws -> CommitRecord {
      CommitRecord(partitions: [
        CommitRecord.Moved(
          partition: partition, name: try PartitionName("p"), before: VersionVector(), accepted: VersionVector())
      ])
    }
    for (record, isAbout, isOfLog) in [
      (try moved(here), true, true), (try moved(elsewhere), false, true),
      (CommitRecord(words: [here]), true, false), (CommitRecord(words: [elsewhere]), false, false),
      (CommitRecord(hasStatements: true), true, true),
    ] {
      feed.committed(record, at: feed.next.position)
      #expect(isMoved() == isAbout && isLogMoved() == isOfLog, "\(record)")
    }
    feed.stop()
    #expect(safety.waitForSafety(of: here, timeoutMilliseconds: 0) == .stopped)
  }

  @Test("what changed elsewhere is nothing to it")
  func elsewhere() throws {
    let follower = try #require(feed.follow())
    commit([[1]], in: ChangedDocuments.Place(partition: PartitionID(.zero), collection: "d"))
    #expect(isQuiet(follower))
    commit([[2]])
    #expect(changed(follower) == [[2]])
  }

  @Test("of a commit that changed documents in several places each follower hears of its own place alone")
  func severalPlaces() throws {
    let other = ChangedDocuments.Place(partition: PartitionID(.zero), collection: "d")
    let follower = try #require(feed.follow())
    let documents = ChangedDocuments(
      keys: [1, 2, 3], places: [place, other], items: [(0, 0..<1), (1, 1..<2), (0, 2..<3)])
    feed.committed(CommitRecord(documents: [documents]), at: LogPosition(arrival: feed.next.position.arrival + 1))
    #expect(changed(follower) == [[1], [3]])
  }

  @Test(
    "one that is as far behind as the ring is long misses nothing; one further behind is told from where on the log has it"
  )
  func missing() throws {
    commit([[1]])
    let (near, far) = (try #require(feed.follow()), try #require(feed.follow()))
    for number in 0..<CommitFeed.recordLimit { commit([[UInt8(number % 256)]]) }
    #expect(changed(near)?.count == CommitFeed.recordLimit)
    commit([[1]])
    #expect(far.position == LogPosition(arrival: 1))
    #expect(missed(far) == LogPosition(arrival: 1))
    #expect(far.position.arrival == near.position.arrival + 1)
    #expect(changed(near) == [[1]])
    // Whoever has read the log follows on from there.
    commit([[5]])
    #expect(changed(far) == [[5]])
    #expect(far.position == feed.next.position)
  }

  @Test("a position that was kept is gone on from by the log alone, however little came since")
  func kept() throws {
    commit([[1]])
    let kept = try #require(feed.follow()).position
    commit([[2]])
    let follower = try #require(feed.follow(from: kept))
    #expect(missed(follower) == kept)
    #expect(isQuiet(follower))
    commit([[3]])
    #expect(changed(follower) == [[3]])
  }

  @Test("large commits take the room of many: the ring is bounded in bytes")
  func bytes() throws {
    let (follower, count) = (try #require(feed.follow()), 20)
    #expect(count < CommitFeed.recordLimit)
    let large = [UInt8](repeating: 1, count: CommitFeed.byteLimit / 10)
    for _ in 0..<count { commit([large]) }
    #expect(missed(follower) != nil)
    // A commit larger than the ring is forgotten at once, and said to be.
    commit([[UInt8](repeating: 1, count: CommitFeed.byteLimit)])
    #expect(missed(follower) != nil)
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

  @Test("who awaits news is told once: of the next commit, of one that came before he asked, of a stop")
  func news() throws {
    let follower = try #require(feed.follow())
    let told = Mutex(0)
    func ask() { follower.atNews { told.withLock { $0 += 1 } } }
    ask()
    #expect(told.withLock { $0 } == 0)
    commit([[1]])
    commit([[2]])
    #expect(told.withLock { $0 } == 1)
    ask()
    #expect(told.withLock { $0 } == 2)
    #expect(changed(follower) == [[1], [2]])
    ask()
    #expect(told.withLock { $0 } == 2)
    feed.stop()
    #expect(told.withLock { $0 } == 3)
    ask()
    #expect(told.withLock { $0 } == 4)
  }

  @Test("a commit wakes a follower that waits")
  func wakes() throws {
    let follower = try #require(feed.follow())
    let keys = Mutex<Set<[UInt8]>>([])
    let place = place
    Thread.detachNewThread {
      while keys.withLock({ $0.isEmpty }) {
        if case .changed(let new) = follower.wait(for: place, timeoutMilliseconds: 60_000) {
          keys.withLock { $0 = new }
        }
      }
    }
    commit([[4]])
    try eventually(within: 5) { keys.withLock { $0 } == [[4]] }
  }
}
