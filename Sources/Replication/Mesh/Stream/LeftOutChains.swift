/// Chains of which runs came on a stream that are not taken: what follows on it is left out with them.
struct LeftOutChains: Sendable {
  private(set) var all: Set<ReplicaID> = []
  /// Of these, chains that would have been alone in the partition.
  private var withoutPlace: Set<ReplicaID> = []
  /// What somebody's work stands on, by chain: until that is here, nothing is beyond an allowance.
  private var awaited: [ReplicaID: Awaited] = [:]
  /// Comparisons that have begun since something was asked for, or something of it came.
  private var comparisons = 0

  private struct Awaited: Sendable {
    let through: UInt64
    /// How far the chain was here when that was looked at last.
    let received: UInt64
  }

  var isEmpty: Bool { all.isEmpty }
  var awaitsPlace: Bool { !withoutPlace.isEmpty }
  var takesAll: Bool { !awaited.isEmpty }

  func awaits(_ replica: ReplicaID) -> Bool { awaited[replica] != nil }

  func contains(_ replica: ReplicaID) -> Bool { all.contains(replica) }

  /// What follows a chain that was left out, or has seen it, cannot be delivered either.
  func isStoodOn(by run: DeliveredRun) -> Bool {
    all.contains(run.incoming.replica) || all.contains { run.context[$0] != nil }
  }

  /// Answers whether that is new of its chain.
  @discardableResult mutating func insert(_ replica: ReplicaID, lacksPlace: Bool = false) -> Bool {
    if lacksPlace { withoutPlace.insert(replica) }
    return all.insert(replica).inserted
  }

  /// Statements may allow them now.
  mutating func forgive() { all = [] }

  /// Their place is no question any more; nor, where somebody stands on what is awaited, is anything else.
  mutating func reopen(awaiting awaited: [ReplicaID: UInt64], in log: PartitionLog?) {
    all = awaited.isEmpty ? all.subtracting(withoutPlace) : []
    for (replica, sequence) in awaited {
      let received = log?.received.sequence(of: replica) ?? 0
      let through = max(sequence, self.awaited[replica]?.through ?? 0)
      self.awaited[replica] = Awaited(through: through, received: received)
    }
    (withoutPlace, comparisons) = ([], 0)
  }

  /// What is here of what is awaited is so no more. More of it is progress, and nothing else.
  mutating func endAwaiting(in log: PartitionLog) {
    for (replica, item) in awaited {
      let received = log.received.sequence(of: replica)
      let isHere = log.owed(item.through, of: replica) <= received
      guard isHere || received > item.received else { continue }
      awaited[replica] = isHere ? nil : Awaited(through: item.through, received: received)
      comparisons = 0
    }
  }

  /// Pieces of a payload that may be of what is awaited.
  mutating func noteProgress() { comparisons = 0 }

  /// Where nothing comes any more, what still stands on it is judged anew.
  mutating func noteComparison() {
    comparisons += 1
    if comparisons > 1 { awaited = [:] }
  }
}
