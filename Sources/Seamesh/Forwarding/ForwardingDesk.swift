import Engine
import Identity
import Replication
import Synchronization

/// What a node knows of whoever forwards what it holds.
final class ForwardingDesk: Sendable {
  private let engine: EngineLine
  private let log: NodeLog
  private let forwarder = Mutex<(any NodeForwarder)?>(nil)

  init(_ engine: EngineLine, _ log: NodeLog) { (self.engine, self.log) = (engine, log) }

  func attach(_ new: (any NodeForwarder)?) { forwarder.withLock { $0 = new } }

  var status: ForwardingStatus? { forwarder.withLock { $0 }?.status }

  func sendNow() throws(NodeError) { try attached().sendNow() }

  /// What the backend has, as a forwarder read it there. A node that stops needs to know it no more.
  func noteBackend(_ vectors: [(PartitionName, VersionVector)]) {
    for start in stride(from: 0, to: vectors.count, by: ForwardingDesk.notedPartitions) {
      let part = vectors[start..<min(start + ForwardingDesk.notedPartitions, vectors.count)]
      try? engine.ask { engine in for (partition, vector) in part { engine.noteBackend(partition, has: vector) } }
    }
  }

  /// Partitions of one turn.
  private static let notedPartitions = 256

  /// A line of the log, when the state changes.
  func note(_ status: ForwardingStatus) {
    guard status.reason.isEmpty else {
      return log.error(
        "forwarding", ["state": status.state.rawValue, "backend": status.backend, "reason": status.reason])
    }
    log.notice("forwarding", ["state": status.state.rawValue, "backend": status.backend])
  }

  func refusedRuns() throws(NodeError) -> [RefusedRunStatus] {
    let refused = try attached().refused(most: RefusedChain.limit)
    guard !refused.isEmpty else { return [] }
    let names = try engine.ask { $0.state.mesh.partitions.mapValues(\.name) }
    return refused.map { chain in
      RefusedRunStatus(
        partition: names[chain.partition]?.text.string ?? "", replica: chain.replica.text,
        first: chain.changes?.lowerBound, last: chain.changes?.upperBound, reason: chain.reason)
    }
  }

  func refusedStatements() throws(NodeError) -> [RefusedStatementStatus] {
    try attached().refusedStatements(most: RefusedStatementStatus.limit)
  }

  private func attached() throws(NodeError) -> any NodeForwarder {
    guard let forwarder = forwarder.withLock({ $0 }) else {
      throw NodeError(.unprocessable, "this node does not forward: start it with --forward=URL")
    }
    return forwarder
  }
}
