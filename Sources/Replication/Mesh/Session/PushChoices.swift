/// By whom a peer wants chains to be pushed to it, as it has said: what is pushed to it is decided by that, and of other chains
/// by what is known here of its neighbours (``PushPolicy``).
struct PushChoices: Sendable {
  private struct Chains: Sendable {
    var eager: Set<ReplicaID> = []
    var lazy: Set<ReplicaID> = []

    /// Answers whether it was not so before.
    mutating func put(_ replica: ReplicaID, isEager: Bool) -> Bool {
      guard isEager ? !eager.contains(replica) : !lazy.contains(replica) else { return false }
      remove(replica)
      guard eager.count + lazy.count < PushChoice.limit else { return false }
      if isEager { eager.insert(replica) } else { lazy.insert(replica) }
      return true
    }

    mutating func remove(_ replica: ReplicaID) {
      eager.remove(replica)
      lazy.remove(replica)
    }
  }

  private var partitions: [PartitionID: Chains] = [:]

  /// Partitions of which is kept what one peer chose. What is beyond is decided as if it had said nothing.
  static let partitionLimit = 1_024

  var isEmpty: Bool { partitions.isEmpty }

  /// This node is to push it to the peer, whoever else may bring it.
  func isEager(_ replica: ReplicaID, in partition: PartitionID) -> Bool {
    partitions[partition]?.eager.contains(replica) == true
  }

  /// Another one pushes it to the peer.
  func isLazy(_ replica: ReplicaID, in partition: PartitionID) -> Bool {
    partitions[partition]?.lazy.contains(replica) == true
  }

  /// The peer has said nothing of it.
  func isFree(_ replica: ReplicaID, in partition: PartitionID) -> Bool {
    partitions[partition].map { !$0.lazy.contains(replica) && !$0.eager.contains(replica) } ?? true
  }

  /// Answers the chains that this node is to push from now on, or decides of again.
  ///
  /// - Parameter isKept: of chains that are not known here nothing is kept.
  mutating func hear(_ choice: PushChoice, of partition: PartitionID, isKept: (ReplicaID) -> Bool) -> [ReplicaID] {
    let freed = choice.released.filter(isKept)
    guard partitions[partition] != nil || partitions.count < PushChoices.partitionLimit else { return Array(freed) }
    var chains = partitions.removeValue(forKey: partition) ?? Chains()
    for replica in choice.released { chains.remove(replica) }
    for replica in choice.lazy.sorted() where isKept(replica) { _ = chains.put(replica, isEager: false) }
    let eager = choice.eager.sorted().filter { isKept($0) && chains.put($0, isEager: true) }
    if !chains.eager.isEmpty || !chains.lazy.isEmpty { partitions[partition] = chains }
    return eager + freed
  }

  mutating func forget(_ partition: PartitionID) { partitions[partition] = nil }
}
