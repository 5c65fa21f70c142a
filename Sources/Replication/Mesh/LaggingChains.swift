/// Chains of which peers have named more than is here. One that stands still comes from nobody: who was chosen to push it does not, or has
/// lost those from whom he had it, and who named it believes that somebody else brings it.
struct LaggingChains: Sendable {
  private struct Lag: Sendable {
    /// The highest number of it that a peer named.
    var named: UInt64
    /// How far the chain was here when that was looked at last.
    var received: UInt64
    /// When it last went on, or was first named.
    var since: MonotonicTime
    var namedBy: Set<SessionID>
  }

  struct Still: Sendable {
    let partition: PartitionID
    let replica: ReplicaID
    let namedBy: Set<SessionID>
  }

  private var partitions: [PartitionID: [ReplicaID: Lag]] = [:]

  /// What is beyond is left to pulls and comparisons.
  static let partitionLimit = 1_024
  /// Of one partition.
  static let chainLimit = 256

  mutating func note(
    _ replica: ReplicaID, of partition: PartitionID, named: UInt64, received: UInt64, by session: SessionID,
    _ now: MonotonicTime
  ) {
    guard partitions[partition] != nil || partitions.count < LaggingChains.partitionLimit else { return }
    var chains = partitions.removeValue(forKey: partition) ?? [:]
    if chains[replica] != nil || chains.count < LaggingChains.chainLimit {
      var lag = chains[replica] ?? Lag(named: named, received: received, since: now, namedBy: [])
      lag.named = max(lag.named, named)
      lag.namedBy.insert(session)
      chains[replica] = lag
    }
    partitions[partition] = chains
  }

  /// Those that have not gone on for so long, ascending: they are looked at anew when they are named again.
  ///
  /// - Parameters:
  ///   - received: of a chain here.
  ///   - isOnItsWay: somebody is bringing it, though nothing of it is here yet.
  mutating func takeStill(
    for milliseconds: UInt64, _ now: MonotonicTime, received: (PartitionID, ReplicaID) -> UInt64,
    isOnItsWay: (Still) -> Bool = { _ in false }
  ) -> [Still] {
    var still: [Still] = []
    for (partition, chains) in partitions {
      var kept: [ReplicaID: Lag] = [:]
      for (replica, var lag) in chains {
        let received = received(partition, replica)
        guard received < lag.named else { continue }
        let chain = Still(partition: partition, replica: replica, namedBy: lag.namedBy)
        if received > lag.received || isOnItsWay(chain) { (lag.received, lag.since) = (received, now) }
        if now.millisecondsSince(lag.since) >= milliseconds { still.append(chain) } else { kept[replica] = lag }
      }
      partitions[partition] = kept.isEmpty ? nil : kept
    }
    return still.sorted { ($0.partition, $0.replica) < ($1.partition, $1.replica) }
  }

  mutating func closed(_ session: SessionID) {
    for (partition, chains) in partitions {
      for (replica, lag) in chains where lag.namedBy.contains(session) {
        partitions[partition]?[replica]?.namedBy.remove(session)
      }
    }
  }

  mutating func forget(_ partition: PartitionID) { partitions[partition] = nil }
}
