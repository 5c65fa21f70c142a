import Engine
import Identity
import Replication
import Storage

// For whoever forwards what the node holds, and those who ask how that goes.
extension Node {
  package func followCommits() throws(NodeError) -> CommitFollower {
    guard let follower = feed.follow() else {
      throw NodeError(.busy, "there are \(feed.limit) followers of this node already")
    }
    return CommitFollower(feed, follower)
  }

  package func readStore<Result>(_ body: (StoreReader) throws -> Result) throws -> Result {
    try documents.readers.read(body)
  }
  package func readStoreIfFree<Result>(_ body: (StoreReader) throws -> Result) throws -> Result? {
    try documents.readers.readIfFree(body)
  }

  /// What the log holds after the last commit, without a look at the disk; nil before the engine was looked at.
  package var logAmount: (changes: Int64, bytes: Int64)? { engine.board.totals.map { ($0.changes, $0.logBytes) } }

  /// What counts now of every partition, and where the log was at the last commit. It may be ahead of the disk by a commit.
  package func accepted() throws(NodeError) -> (vectors: [PartitionID: VersionVector], position: LogPosition) {
    try engine.ask { [feed] engine in
      (engine.state.mesh.partitions.mapValues { $0.log.accepted }, feed.next.position)
    }
  }

  /// All statements that the engine has taken in, at the least those of every commit before the call.
  package func statementsNow() throws(NodeError) -> Authority { try engine.ask { $0.state.mesh.authority } }

  package var fleet: FleetID { files.fleet }
  package var device: DeviceID { files.device }
  /// Where its files lie.
  package var directory: String { endpoints.directory }

  /// Shown from now on in status, metrics and doctor; nil: no more.
  package func attach(_ forwarder: (any NodeForwarder)?) { forwarding.attach(forwarder) }

  /// What the backend has, as a forwarder read it there.
  package func noteBackend(_ vectors: [(PartitionName, VersionVector)]) { forwarding.noteBackend(vectors) }

  package func noteForwarding(_ status: ForwardingStatus) { forwarding.note(status) }

  package func sendForwardingNow() throws(NodeError) { try forwarding.sendNow() }

  package func refusedRuns() throws(NodeError) -> [RefusedRunStatus] { try forwarding.refusedRuns() }

  package func refusedStatements() throws(NodeError) -> [RefusedStatementStatus] { try forwarding.refusedStatements() }
}
