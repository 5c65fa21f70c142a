/// Chains of which peers have named more than is here. One that stands still comes from nobody: who was chosen to push it does not, or has
/// lost those from whom he had it, and who named it believes that somebody else brings it.
struct LaggingChains: Sendable {
  private struct Lag: Sendable {
    /// The highest number of it that each peer named.
    var named: [SessionID: UInt64] = [:]
    /// How far the chain was here when that was looked at last.
    var received: UInt64
    /// When it last went on, or was first named, or somebody was asked to push it.
    var since: MonotonicTime
    /// Somebody was asked to push it, and it has not gone on since.
    var isGrafted = false
  }

  struct Still: Sendable {
    let partition: PartitionID
    let replica: ReplicaID
    let isGrafted: Bool
    fileprivate let received: UInt64
    fileprivate let named: [SessionID: UInt64]

    /// He has named more of it than is here.
    func isNamed(by session: SessionID) -> Bool { named[session].map { $0 > received } ?? false }
    /// Who has, ascending.
    var namedBy: [SessionID] { named.keys.filter(isNamed).sorted() }
  }

  private var partitions: [PartitionID: [ReplicaID: Lag]] = [:]
  private var lookedAt = MonotonicTime(milliseconds: 0)

  /// What is beyond is watched when others have come, and found by comparisons.
  static let partitionLimit = 1_024
  /// Of one partition.
  static let chainLimit = 256
  /// Of what one look finds standing still; the rest is found by the next.
  static let stillLimit = 1_024

  mutating func note(
    _ replica: ReplicaID, of partition: PartitionID, named: UInt64, received: UInt64, by session: SessionID,
    _ now: MonotonicTime
  ) {
    guard partitions[partition] != nil || partitions.count < LaggingChains.partitionLimit else { return }
    var chains = partitions.removeValue(forKey: partition) ?? [:]
    if chains[replica] != nil || chains.count < LaggingChains.chainLimit {
      var lag = chains[replica] ?? Lag(received: received, since: now)
      lag.named[session] = max(lag.named[session] ?? 0, named)
      chains[replica] = lag
    }
    partitions[partition] = chains
  }

  /// Those that have not gone on for so long, ascending. Each is answered twice: first for somebody to be asked to push it, and, where it
  /// has not gone on since, as grafted; then it is looked at anew when it is named again. Looks cost what is in the book: there are four in
  /// that time at most.
  ///
  /// - Parameters:
  ///   - received: of a chain here.
  ///   - isOnItsWay: somebody is bringing it, though nothing of it is here yet.
  mutating func takeStill(
    for milliseconds: UInt64, _ now: MonotonicTime, received: (PartitionID, ReplicaID) -> UInt64,
    isOnItsWay: (Still) -> Bool = { _ in false }
  ) -> [Still] {
    guard !partitions.isEmpty, now.millisecondsSince(lookedAt) >= milliseconds / 4 else { return [] }
    lookedAt = now
    var still: [Still] = []
    for (partition, chains) in partitions {
      var kept: [ReplicaID: Lag] = [:]
      for (replica, var lag) in chains {
        let received = received(partition, replica)
        guard lag.named.values.contains(where: { $0 > received }) else { continue }
        let chain = Still(
          partition: partition, replica: replica, isGrafted: lag.isGrafted, received: received, named: lag.named)
        if received > lag.received || isOnItsWay(chain) {
          (lag.received, lag.since, lag.isGrafted) = (received, now, false)
        }
        if now.millisecondsSince(lag.since) >= milliseconds { still.append(chain) }
        kept[replica] = lag
      }
      partitions[partition] = kept.isEmpty ? nil : kept
    }
    still.sort { ($0.partition, $0.replica) < ($1.partition, $1.replica) }
    still = Array(still.prefix(LaggingChains.stillLimit))
    for chain in still { noteStill(chain, now) }
    return still
  }

  private mutating func noteStill(_ chain: Still, _ now: MonotonicTime) {
    guard chain.isGrafted else {
      partitions[chain.partition]?[chain.replica]?.since = now
      partitions[chain.partition]?[chain.replica]?.isGrafted = true
      return
    }
    partitions[chain.partition]?[chain.replica] = nil
    if partitions[chain.partition]?.isEmpty == true { partitions[chain.partition] = nil }
  }

  mutating func closed(_ session: SessionID) {
    partitions = partitions.mapValues { chains in
      chains.mapValues { lag in
        var lag = lag
        lag.named[session] = nil
        return lag
      }
    }
  }

  mutating func forget(_ partition: PartitionID) { partitions[partition] = nil }
}
