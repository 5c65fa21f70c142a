extension PartitionLog {
  /// The context of an own chain's next run (rule C3): what is accepted, joined with the previous context. An entry falls
  /// only where its chain changed its branch.
  package func nextContext(of replica: ReplicaID, after previous: VersionVector) -> VersionVector {
    context(seeing: accepted, of: replica, after: previous)
  }

  /// As ``nextContext(of:after:)``, of a run whose author saw `seen` and nothing else of what is accepted.
  package func context(
    seeing seen: VersionVector, of replica: ReplicaID, after previous: VersionVector
  ) -> VersionVector {
    var context = seen
    context[replica] = nil
    for (other, position) in previous.exceeding(context) where other != replica {
      guard isOnBranch(position, of: other) else { continue }
      context[other] = position
    }
    return context
  }

  /// Has the change at `author`, with its run's context, seen the accepted change at `dot` (rule C23)? On a forked chain an
  /// entry reaches above the fork only if it names exactly what is accepted here.
  package func isCovered(_ dot: Dot, by context: VersionVector, of author: Dot) -> Bool {
    if author.replica == dot.replica { return dot.sequence < author.sequence }
    guard let entry = context[dot.replica], dot.sequence <= entry.sequence else { return false }
    guard let chain = chains[dot.replica], let forkPoint = chain.forkPoint, dot.sequence > forkPoint else {
      return true
    }
    return entry.sequence <= chain.accepted && chain.position(at: entry.sequence) == entry
  }

  /// What memory holds of the branch that counts here has the position; of a chain that is not forked all have it.
  func isOnBranch(_ position: ChainPosition, of replica: ReplicaID) -> Bool {
    guard let chain = chains[replica], chain.isForked else { return true }
    return chain.position(at: position.sequence) == position
  }

  /// The same of where the run ends.
  func isOnBranch(_ run: DeliveredRun) -> Bool {
    guard let tip = run.incoming.hashes.last?.tip else { return false }
    return isOnBranch(ChainPosition(sequence: run.last, tip: tip), of: run.incoming.replica)
  }
}
