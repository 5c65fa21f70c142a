import Replication
import Storage

/// What a node lends to its forwarder: readers of its log, and news of its commits.
package protocol ForwardingSource: AnyObject, Sendable {
  var fleet: FleetID { get }
  var hash: HashFunction { get }
  func read<Result>(_ body: (StoreReader) throws -> Result) throws -> Result
  /// Nil where that had to wait.
  func readIfFree<Result>(_ body: (StoreReader) throws -> Result) throws -> Result?
  /// How much the log holds after the last commit, without a look at the disk; nil where nobody knows yet.
  var held: LogAmount? { get }
  /// What counts now, of every partition, perhaps more than is on disk already; and where the log is, on its own form.
  func accepted() throws -> (vectors: [PartitionID: VersionVector], position: String)
  /// Which of these statements, which are not here, cannot come into the node's set (``Authority/leavesOut(_:)``), by all that was
  /// committed before; none where the node does not answer.
  func leavesOut(_ places: [StatementPlace]) -> Set<Digest>
  /// Waits for commits, so long at the most; returns early after ``wake()``.
  func news(timeoutMilliseconds: UInt64) -> ForwardingNews
  func wake()
  /// What the ledger has of these partitions, as it was read there.
  func backendHas(_ vectors: [(PartitionName, VersionVector)])
  /// What an earlier start wrote down; nil where there is nothing, or nothing that reads.
  func remembered() -> String?
  func remember(_ text: String)
  /// Milliseconds since 1970, UTC, for people.
  var wallMilliseconds: Int64 { get }
}

package enum ForwardingNews: Sendable {
  /// What counts of the partitions that moved, and where the log was then, on its own form.
  case moved([PartitionID: VersionVector], at: String)
  /// More was committed than anybody remembers.
  case missed
  case nothing
  case stopped
}
