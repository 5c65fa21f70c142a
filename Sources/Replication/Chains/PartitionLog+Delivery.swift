/// What becomes of a run that arrives on a stream (rule C8).
package enum Verdict: Hashable, Sendable {
  case take
  /// Its content is here.
  case have
  /// Fits nowhere because of a fork or a narrowing that its sender need not know: kept or dropped, nobody's fault. At
  /// least its headers are to be learned.
  case aside(AsideReason)
  /// Neither stored nor passed on.
  case refuse(Refusal)
  /// The sender broke the protocol: the connection ends.
  case error(DeliveryError)
  /// Cannot be judged from memory: ``PartitionLog/unfold(_:runs:)``, then ask again.
  case needsHeaders(HeaderRequest)
}

package enum AsideReason: Hashable, Sendable {
  case gap
  case fork
  case aboveBound(HoldReason)
  /// Never the connection's fault: a right is missing, or only a narrowing took it away. Not stored.
  case lacksRight(Refusal)
}

/// Raw values are the words of the conformance vectors.
package enum DeliveryError: String, Hashable, Sendable {
  /// Something of its own chain is missing before it.
  case gap
  /// Something that its author had seen is missing.
  case context
}

extension PartitionLog {
  package func deliver(_ run: RunSummary) -> Verdict {
    let hasFallen = authority.floor(of: run.replica, in: partition) < run.first
    if let verdict = standing(of: run, hasFallen: hasFallen) { return verdict }
    let chain = chains[run.replica] ?? newChain(run.replica)
    if let last = run.hashes.last, chain.hasContent(last) { return .have }
    guard run.first - 1 <= chain.received else {
      return chain.isForked || hasFallen ? .aside(.gap) : .error(.gap)
    }
    switch chain.matchesTrunk(run) {
    // A second copy, as far as anybody can tell; another branch is shown again when that can be told.
    case .unknown where unreadTrunks.contains(run.replica): return .have
    case .unknown:
      return .needsHeaders(
        HeaderRequest(replica: run.replica, sequences: run.first...chain.trunk.sequence))
    case .differs: return .aside(.fork)
    case .agrees where run.last <= chain.trunk.sequence: return .have
    case .agrees: break
    }
    guard chain.isFollowed(by: run) else { return .aside(.fork) }
    guard run.first <= chain.limits.bound.sequence else { return .aside(.aboveBound(chain.limits.reason)) }
    return holds(run.context) ? .take : .error(.context)
  }

  /// Is every entry of a context here, as far as it can be asked for?
  func holds(_ context: VersionVector) -> Bool { firstLacked(of: context) == nil }

  /// In replica byte order.
  func firstLacked(of context: VersionVector) -> Dot? {
    for (replica, position) in context.exceeding(received) {
      let dot = Dot(replica: replica, sequence: position.sequence)
      if !holds(dot) { return dot }
    }
    return nil
  }

  func holds(_ dot: Dot) -> Bool {
    received.sequence(of: dot.replica) >= required(dot.sequence, of: dot.replica)
  }

  /// Is the change here that a run follows? Inside the trunk, where only storage knows, it is taken to be.
  func holds(before first: UInt64, _ hash: Digest, of replica: ReplicaID) -> Bool {
    let chain = chains[replica] ?? newChain(replica)
    return first <= chain.trunk.sequence || chain.hasContent(hash)
  }

  /// Is a run here that ends so? Inside the trunk, where only storage knows, its number says it.
  package func hasContent(through last: UInt64, _ hash: Digest, of replica: ReplicaID) -> Bool {
    chains[replica].map { last <= $0.trunk.sequence || $0.hasContent(hash) } ?? false
  }

  /// What the trunk ends with is a change, and so no genesis: a run that follows it, as most do, costs no hash.
  func isWellFormed(_ run: RunSummary) -> Bool {
    let isFollowed = chains[run.replica].map { $0.endsTrunk(before: run) } ?? false
    return isFollowed ? run.isWellFormedInItself : run.isWellFormed(genesis: genesis(run.replica))
  }

  /// By statements alone; nil: taken, also where it will only be held (rules C7, C27).
  private func standing(of run: RunSummary, hasFallen: Bool) -> Verdict? {
    // Its grants and rules were looked at when its limits were made.
    if chains[run.replica]?.limits == .open, authority.signer(of: run.replica) == run.signer,
      isWellFormed(run)
    {
      Invariant.check(
        authority.refusal(of: run, genesis: genesis(run.replica)) == nil, "an open chain's run is refused")
      return nil
    }
    guard let refusal = authority.refusal(of: run, genesis: genesis(run.replica)) else { return nil }
    if refusal.isLackOfRight { return authority.isInDoubt ? nil : .aside(.lacksRight(refusal)) }
    let isNarrowed = hasFallen && (refusal == .void || refusal == .undeclared)
    return isNarrowed ? .aside(.lacksRight(refusal)) : .refuse(refusal)
  }

  /// What a receiver asks of an entry, `min(n, floor, fork point)`: what lies above a narrowing or a fork need not be the
  /// same everywhere (rule C8).
  func required(_ sequence: UInt64, of replica: ReplicaID) -> UInt64 {
    min(sequence, authority.required(of: replica, in: partition), chains[replica]?.forkPoint ?? .max)
  }

  /// What a sender has to have sent of an entry: as much as a receiver might ask that reads everything (rule C27).
  func owed(_ sequence: UInt64, of replica: ReplicaID) -> UInt64 {
    min(sequence, authority.floor(of: replica, in: partition), chains[replica]?.forkPoint ?? .max)
  }
}

extension Chain {
  /// With a change, whose hash the run names.
  fileprivate func endsTrunk(before run: RunSummary) -> Bool {
    trunk.sequence > 0 && run.first == trunk.sequence + 1 && run.hashBefore == trunk.hash
  }

  /// Does the run continue, or repeat, what is received of the chosen branch? It agrees with the trunk already.
  func isFollowed(by run: RunSummary) -> Bool {
    if run.first > trunk.sequence, hash(at: run.first - 1) != run.hashBefore { return false }
    let start = max(run.first, trunk.sequence + 1)
    let repeated = start..<max(start, min(run.last, received) + 1)
    return repeated.allSatisfy { run.hash(at: $0) == hash(at: $0) }
  }
}
