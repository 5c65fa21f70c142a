extension PartitionLog {
  /// For every fork its two lowest hashes (rule C5), in order of replica and sequence.
  package var forkProofs: [ForkProof] {
    forkPoints.keys.flatMap { replica -> [ForkProof] in
      guard let tree = chains[replica]?.tree else { return [] }
      return tree.forks.compactMap { slot in
        let hashes = tree.following(slot.previous, at: slot.sequence)
        guard hashes.count > 1 else { return nil }
        return ForkProof(
          replica: replica, sequence: slot.sequence, hashBefore: slot.previous, first: hashes[0], second: hashes[1])
      }
    }
    .sorted { ($0.replica, $0.sequence, $0.first) < ($1.replica, $1.sequence, $1.first) }
  }

  /// How far the chain would count (rules C4 and C6) if nothing were known of it above a change of its trunk but some runs, under
  /// these statements. Nil where the runs do not show that change.
  ///
  /// - Parameter runs: those of them that hold `start`, too, where that is neither 0 nor the trunk's end.
  package func end(
    of replica: ReplicaID, from start: UInt64, knowing runs: [RunSummary], under authority: Authority
  ) -> ChainPosition? {
    let (genesis, trunk) = (genesis(replica), trunk(of: replica))
    let known = start == 0 ? genesis : start == trunk.sequence ? trunk.hash : nil
    guard let hash = known ?? runs.lazy.compactMap({ $0.hash(at: start) }).first else { return nil }
    let limits = authority.limits(of: replica, in: partition)
    // Its declaration may be what is not heard.
    guard limits.bound.sequence > 0 else { return .start }
    var chain = Chain(trunk: ChainTrunk(sequence: start, hash: hash, documents: .any), limits: limits)
    for run in runs where run.isWellFormed(genesis: genesis) { chain.insert(run, content: true) }
    _ = chain.settle(replica)
    return chain.position(at: chain.accepted) ?? .start
  }

  /// Everything received that does not count, in order of dot and hash.
  package var held: [HeldChange] {
    // Of chains that have any: a node's state is looked at every few seconds.
    heldCounts.keys.flatMap { chains[$0]?.held($0, rooted: rooted($0)) ?? [] }
      .sorted { ($0.dot, $0.hash) < ($1.dot, $1.hash) }
  }

  /// Hash of a stored change inside a trunk, where memory has none: (replica, sequence).
  package typealias StoredTip = (ReplicaID, UInt64) -> TipHash?

  package enum EntryJudgement: Hashable, Sendable {
    /// Known here.
    case known
    /// The peer has more than this node knows of.
    case ahead
    /// Our histories of this chain differ: exchange its headers (rule C5).
    case differs
  }

  /// What a peer's vector entry says of a chain.
  package func judge(_ entry: ChainPosition, of replica: ReplicaID, stored: StoredTip) -> EntryJudgement {
    guard entry.sequence > 0 else { return .known }
    guard let chain = chains[replica] else { return .ahead }
    if tip(at: entry.sequence, of: replica, chain, stored: stored) == entry.tip { return .known }
    if let hash = chain.tree.find(entry), !incompleteChains.contains(replica) || chain.joint(of: hash) != nil {
      return .known
    }
    return chain.isForked || entry.sequence <= chain.length ? .differs : .ahead
  }

  /// How much of the branch chosen here a peer's entry stands for (rule C9).
  package func standing(of entry: ChainPosition, of replica: ReplicaID, stored: StoredTip) -> UInt64 {
    guard let chain = chains[replica] else { return entry.sequence }
    if tip(at: entry.sequence, of: replica, chain, stored: stored) == entry.tip { return entry.sequence }
    guard let forkPoint = chain.forkPoint else { return entry.sequence > chain.length ? entry.sequence : 0 }
    guard let hash = chain.tree.find(entry) else { return min(entry.sequence, forkPoint) }
    return chain.joint(of: hash) ?? min(entry.sequence, forkPoint)
  }

  /// How much of the branch chosen here somebody has for certain who names this position. What lies ahead of what is known
  /// here may be another history.
  func known(of entry: ChainPosition, of replica: ReplicaID, stored: StoredTip) -> UInt64 {
    guard entry.sequence > 0, let chain = chains[replica] else { return 0 }
    if tip(at: entry.sequence, of: replica, chain, stored: stored) == entry.tip { return entry.sequence }
    return chain.tree.find(entry).flatMap(chain.joint) ?? 0
  }

  /// The run goes on where the branch that counts here ends.
  func endsBranch(_ run: IncomingRun) -> Bool {
    received[run.replica] == ChainPosition(sequence: run.first - 1, tip: run.hashBefore.tip)
  }

  /// Changes whose content is here and of which ``received`` does not speak.
  var apartCount: UInt64 { chains.values.reduce(0) { $0 + UInt64($1.apartCount) } }

  private func tip(
    at sequence: UInt64, of replica: ReplicaID, _ chain: Chain, stored: StoredTip
  ) -> TipHash? {
    sequence < chain.trunk.sequence ? stored(replica, sequence) : chain.hash(at: sequence)?.tip
  }
}

extension Chain {
  /// Where a change's ancestry meets the chosen branch; nil where its headers do not join.
  func joint(of hash: Digest) -> UInt64? {
    var current = hash
    while let node = tree[current] {
      if self.hash(at: node.sequence) == current { return node.sequence }
      current = node.previous
    }
    return current == trunk.hash ? trunk.sequence : nil
  }
}
