import Engine
import Replication
import Storage

/// Follows a node's commits, with what counts after each.
package final class CommitFollower: Sendable {
  package enum News: Sendable {
    /// What counts of the partitions that moved, and where the log was then.
    case moved([PartitionID: VersionVector], at: LogPosition)
    /// More was committed than is remembered: ask for all.
    case missed
    case nothing
    case stopped
  }

  private let feed: CommitFeed
  private let follower: FeedFollower

  init(_ feed: CommitFeed, _ follower: FeedFollower) { (self.feed, self.follower) = (feed, follower) }

  deinit { feed.remove(follower) }

  /// Waits so long at the most; answers early after ``wake()``.
  package func next(timeoutMilliseconds: UInt64) -> News {
    switch follower.waitForMoves(timeoutMilliseconds: timeoutMilliseconds) {
    case .moved(let vectors, let position): .moved(vectors, at: position)
    case .missed: .missed
    case .nothing: .nothing
    case .stopped: .stopped
    }
  }

  package func wake() { follower.wake() }
}
