import Engine
import Identity
import Replication
import Storage
import Synchronization

/// Whoever forwards what this node holds. The node knows nothing else of it: a program that embeds a node need not have one.
package protocol NodeForwarder: AnyObject, Sendable {
  var status: ForwardingStatus { get }
  /// What the backend refuses now, so many at the most.
  func refused(most count: Int) -> [RefusedChain]
  /// Statements that it refuses, so many at the most.
  func refusedStatements(most count: Int) -> [RefusedStatementStatus]
  /// Tries at once, where it would wait.
  func sendNow()
}

package struct ForwardingStatus: Sendable, Equatable {
  /// Without a secret.
  package var backend = ""
  package var state = State.lagging
  /// Why it does not go on, and what to do about it; empty where it does.
  package var reason = ""
  package var remedy = ""
  /// What the backend lacks.
  package var lagChanges: Int64 = 0
  package var lagBytes: Int64 = 0
  package var lagMilliseconds: Int64 = 0
  /// Until the backend has all, as it has gone of late; nil where that cannot be said.
  package var remainingMilliseconds: Int64?
  /// Changes since the start of the node.
  package var forwardedChanges: Int64 = 0
  package var forwardedBytes: Int64 = 0
  /// Changes of the log, and those of them that are in the backend.
  package var logChanges: Int64 = 0
  package var backendChanges: Int64 = 0
  /// Chains left out, since the backend refuses something of them.
  package var putAside: Int64 = 0
  /// Documents that the backend holds without their body.
  package var deadLetters: Int64 = 0
  /// Documents that the backend left as another relay wrote them, which may know more.
  package var staleDocuments: Int64 = 0
  /// Changes that the backend had and then lacked.
  package var lostChanges: Int64 = 0
  /// Nil where no edits of the office are brought home.
  package var edits: Edits?
  package init() {}

  /// The office's edits since the start of the node.
  package struct Edits: Sendable, Equatable {
    package let written: Int
    package let refused: Int
    /// Why none are brought home; empty where they are.
    package let reason: String

    package init(written: Int, refused: Int, reason: String) {
      (self.written, self.refused, self.reason) = (written, refused, reason)
    }
  }

  package enum State: String, Sendable, CaseIterable {
    case noRoute = "no-route"
    case refused, auth, tls, schema
    case lagging
    case caughtUp = "caught-up"
  }
}

/// A chain that is left out, since the backend refuses something of it.
package struct RefusedChain: Equatable, Sendable {
  package let partition: PartitionID
  package let replica: ReplicaID
  /// Of the run that it refuses; nil: how far the chain counts.
  package let changes: ClosedRange<UInt64>?
  /// The backend's words.
  package let reason: String

  package init(partition: PartitionID, replica: ReplicaID, changes: ClosedRange<UInt64>?, reason: String) {
    (self.partition, self.replica, self.changes, self.reason) = (partition, replica, changes, reason)
  }

  /// In one answer; ``ForwardingStatus/putAside`` counts all.
  static let limit = 1_024
}

/// The same for people.
package struct RefusedRunStatus: Equatable, Sendable {
  /// Empty where its name has not been learnt.
  package let partition: String
  package let replica: String
  /// Numbers of its changes; nil: the backend refuses how far the chain counts.
  package let first: UInt64?
  package let last: UInt64?
  package let reason: String

  package init(partition: String, replica: String, first: UInt64?, last: UInt64?, reason: String) {
    (self.partition, self.replica, self.first, self.last) = (partition, replica, first, last)
    self.reason = reason
  }
}

/// A statement that the backend refuses, for people.
package struct RefusedStatementStatus: Equatable, Sendable {
  /// Hash of its signed bytes.
  package let id: String
  /// The device that signed it.
  package let issuer: String
  /// Its place among those of its issuer in the same scope.
  package let number: UInt64
  /// Empty: a statement of the fleet.
  package let room: String
  /// The backend's words.
  package let reason: String

  package init(id: String, issuer: String, number: UInt64, room: String, reason: String) {
    (self.id, self.issuer, self.number, self.room, self.reason) = (id, issuer, number, room, reason)
  }

  /// In one answer; ``ForwardingStatus/putAside`` counts all.
  static let limit = 1_024
}

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

extension Node {
  package func followCommits() throws(NodeError) -> CommitFollower {
    guard let follower = feed.follow() else {
      throw NodeError(.busy, "there are \(feed.limit) followers of this node already")
    }
    return CommitFollower(feed, follower)
  }

  package func readStore<Result>(_ body: (StoreReader) throws -> Result) throws -> Result { try readers.read(body) }
  package func readStoreIfFree<Result>(_ body: (StoreReader) throws -> Result) throws -> Result? {
    try readers.readIfFree(body)
  }

  /// What the log holds after the last commit, without a look at the disk; nil before the engine was looked at.
  package var logAmount: (changes: Int64, bytes: Int64)? { board.totals.map { ($0.changes, $0.logBytes) } }

  /// What counts now of every partition, and where the log was at the last commit. It may be ahead of the disk by a commit.
  package func accepted() throws(NodeError) -> (vectors: [PartitionID: VersionVector], position: LogPosition) {
    try onEngine { [feed] engine in
      (engine.state.mesh.partitions.mapValues { $0.log.accepted }, feed.next.position)
    }
  }

  /// All statements that the engine has taken in, at the least those of every commit before the call.
  package func statementsNow() throws(NodeError) -> Authority { try onEngine { $0.state.mesh.authority } }

  /// What the backend has, as a forwarder read it there. A node that stops needs to know it no more.
  package func noteBackend(_ vectors: [(PartitionName, VersionVector)]) {
    for start in stride(from: 0, to: vectors.count, by: Node.notedPartitions) {
      let part = vectors[start..<min(start + Node.notedPartitions, vectors.count)]
      try? onEngine { engine in for (partition, vector) in part { engine.noteBackend(partition, has: vector) } }
    }
  }

  /// Partitions of one turn.
  private static let notedPartitions = 256

  package var fleet: FleetID { files.fleet }
  package var device: DeviceID { files.device }
  /// Where its files lie.
  package var directory: String { endpoints.directory }

  /// Shown from now on in status, metrics and doctor; nil: no more.
  package func attach(_ forwarder: (any NodeForwarder)?) { forwarding.withLock { $0 = forwarder } }

  /// A line of the log, when the state changes.
  package func noteForwarding(_ status: ForwardingStatus) {
    guard status.reason.isEmpty else {
      return log.error(
        "forwarding", ["state": status.state.rawValue, "backend": status.backend, "reason": status.reason])
    }
    log.notice("forwarding", ["state": status.state.rawValue, "backend": status.backend])
  }

  var forwardingStatus: ForwardingStatus? { forwarding.withLock { $0 }?.status }

  package func sendForwardingNow() throws(NodeError) { try forwarder().sendNow() }

  package func refusedRuns() throws(NodeError) -> [RefusedRunStatus] {
    let refused = try forwarder().refused(most: RefusedChain.limit)
    guard !refused.isEmpty else { return [] }
    let names = try onEngine { $0.state.mesh.partitions.mapValues(\.name) }
    return refused.map { chain in
      RefusedRunStatus(
        partition: names[chain.partition]?.text.string ?? "", replica: chain.replica.text,
        first: chain.changes?.lowerBound, last: chain.changes?.upperBound, reason: chain.reason)
    }
  }

  package func refusedStatements() throws(NodeError) -> [RefusedStatementStatus] {
    try forwarder().refusedStatements(most: RefusedStatementStatus.limit)
  }

  private func forwarder() throws(NodeError) -> any NodeForwarder {
    guard let forwarder = forwarding.withLock({ $0 }) else {
      throw NodeError(.unprocessable, "this node does not forward: start it with --forward=URL")
    }
    return forwarder
  }

  // MARK: For people

  static func findings(_ status: ForwardingStatus) -> [DoctorFinding] {
    [state(status), restored(status), putAside(status), deadLetters(status), homeBound(status)].compactMap { $0 }
  }

  /// Whatever it is.
  private static func state(_ status: ForwardingStatus) -> DoctorFinding {
    let code = "forward-\(status.state.rawValue)"
    switch status.state {
    case .caughtUp:
      return DoctorFinding(.ok, code, "The backend \(status.backend) has all that this node holds.", remedy: "")
    case .lagging:
      let reason = status.reason.isEmpty ? "" : ": \(status.reason)"
      return DoctorFinding(
        .ok, code, "The backend \(status.backend) lacks \(status.lagChanges) changes\(reason).", remedy: "")
    case .noRoute, .refused, .auth, .tls, .schema:
      return DoctorFinding(
        .problem, code,
        "Nothing reaches the backend\(status.lagChanges > 0 ? ", which lacks \(status.lagChanges) changes" : ""): \(status.reason).",
        remedy: status.remedy)
    }
  }

  private static func restored(_ status: ForwardingStatus) -> DoctorFinding? {
    guard status.lostChanges > 0, status.state == .caughtUp || status.state == .lagging else { return nil }
    return DoctorFinding(
      .warning, "forward-restored",
      "The backend \(status.backend) lacked \(status.lostChanges) changes that it had had: it was put back from a copy.",
      remedy: "What this node holds of them is forwarded again. Look whether other relays held more.")
  }

  private static func putAside(_ status: ForwardingStatus) -> DoctorFinding? {
    guard status.putAside > 0, status.state == .lagging else { return nil }
    return DoctorFinding(
      .warning, "forward-put-aside", "The backend \(status.backend) refuses changes or statements: \(status.reason).",
      remedy: "See which: seamesh forward --dead-letters. Once they may stand there: seamesh forward --now.")
  }

  private static func deadLetters(_ status: ForwardingStatus) -> DoctorFinding? {
    guard status.deadLetters > 0 else { return nil }
    return DoctorFinding(
      .warning, "forward-dead-letters",
      "The backend \(status.backend) holds \(status.deadLetters) documents without their content.",
      remedy: "Look at the reasons: seamesh forward --dead-letters.")
  }

  private static func homeBound(_ status: ForwardingStatus) -> DoctorFinding? {
    guard status.state == .caughtUp, let reason = status.edits?.reason, !reason.isEmpty else { return nil }
    return DoctorFinding(
      .warning, "home-bound", "Edits of the office do not come home: \(reason).",
      remedy: "As the owner of the tables: seamesh forward --set-up --home-bound-to=ROLE.")
  }
}

extension ForwardingStatus {
  /// Lines of Prometheus' text format.
  var metrics: [String] {
    var lines = [
      "# HELP seamesh_forward_state How forwarding does: 1 for the state it is in.",
      "# TYPE seamesh_forward_state gauge",
    ]
    lines += State.allCases.map { "seamesh_forward_state{state=\"\($0.rawValue)\"} \($0 == state ? 1 : 0)" }
    let gauges: [(String, String, Int64)] = [
      ("lag_changes", "Changes that the backend lacks.", lagChanges),
      ("lag_bytes", "Bytes of changes that the backend lacks.", lagBytes),
      ("lag_seconds", "Seconds that the oldest of them has waited.", lagMilliseconds / 1_000),
      ("put_aside", "Chains of which the backend refuses something.", putAside),
      ("lost_changes", "Changes that the backend had and then lacked.", lostChanges),
      ("dead_letters", "Documents that the backend holds without their body.", deadLetters),
      ("stale_documents", "Documents that the backend left as another relay wrote them.", staleDocuments),
    ]
    for (name, help, value) in gauges {
      lines += [
        "# HELP seamesh_forward_\(name) \(help)", "# TYPE seamesh_forward_\(name) gauge",
        "seamesh_forward_\(name) \(value)",
      ]
    }
    lines += [
      "# HELP seamesh_forwarded_changes_total Changes that this node forwarded.",
      "# TYPE seamesh_forwarded_changes_total counter", "seamesh_forwarded_changes_total \(forwardedChanges)",
    ]
    return lines
  }
}
