/// Chains of which runs came on a stream that are not taken: what follows on it is left out with them.
struct LeftOutChains: Sendable {
  private(set) var all: Set<ReplicaID> = []
  /// Of these, chains that would have been alone in the partition.
  private var withoutPlace: Set<ReplicaID> = []
  /// What somebody's work stands on, by chain through which sequence: until that is here, nothing is beyond an allowance.
  private var awaited: [ReplicaID: UInt64] = [:]
  /// Comparisons that have begun since something was asked for, or came.
  private var comparisons = 0

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
  mutating func reopen(awaiting awaited: [ReplicaID: UInt64]) {
    all = awaited.isEmpty ? all.subtracting(withoutPlace) : []
    self.awaited.merge(awaited) { max($0, $1) }
    (withoutPlace, comparisons) = ([], 0)
  }

  mutating func endAwaiting(_ isHere: (ReplicaID, UInt64) -> Bool) {
    awaited = awaited.filter { !isHere($0.key, $0.value) }
  }

  mutating func noteProgress() { comparisons = 0 }

  /// Where nothing comes any more, what still stands on it is judged anew.
  mutating func noteComparison() {
    comparisons += 1
    if comparisons > 1 { awaited = [:] }
  }
}
