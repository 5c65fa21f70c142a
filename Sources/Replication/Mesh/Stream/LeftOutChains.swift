/// Chains of which runs came on a stream that are not taken: what follows on it is left out with them.
struct LeftOutChains: Sendable {
  private(set) var all: Set<ReplicaID> = []
  /// Of these, chains that would have been alone in the partition.
  private var withoutPlace: Set<ReplicaID> = []
  /// Somebody's work stands on what was left out: until that is here, nothing is beyond an allowance.
  private(set) var takesAll = false
  /// Comparisons that have begun since then.
  private var comparisons = 0

  var isEmpty: Bool { all.isEmpty }
  var awaitsPlace: Bool { !withoutPlace.isEmpty }

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

  /// Their place is no question any more; nor, where somebody stands on them, is anything else.
  mutating func reopen(takesAll: Bool) {
    all = takesAll ? [] : all.subtracting(withoutPlace)
    (withoutPlace, self.takesAll, comparisons) = ([], takesAll, 0)
  }

  /// What somebody stood on is here.
  mutating func boundAgain() { takesAll = false }

  /// It may have come from somebody else, or not be there at all: what still stands on it when the stream has been compared is
  /// judged anew.
  mutating func noteComparison() {
    guard takesAll else { return }
    comparisons += 1
    if comparisons > 1 { boundAgain() }
  }
}
