// What merging asks of the log.
extension PartitionLog {
  /// Does this change count, and is it the one of its original and re-issues that does (rules C4, C22)? Also of a chain of
  /// which too little is here to tell that it is forked, something of another branch may be stored.
  package func hasEffect(_ hash: Digest, at dot: Dot) -> Bool {
    withoutEffect[hash] == nil && isAccepted(hash, at: dot)
  }

  /// What the change at `author`, under its run's context, is to be merged with.
  package func sight(of context: VersionVector, author: Dot) -> Sight {
    if forkPoints.isEmpty, kin.isEmpty { return .plain }
    return Sight(
      ceilings: ceilings(of: context, author: author), kin: kin, lostBranches: lostBranches(namedBy: context))
  }

  /// An original that is not on the branch that counts was seen where the context's entry names it, or a later write of
  /// its branch that the same replica issued again (rule C22).
  private func lostBranches(namedBy context: VersionVector) -> [ReissuedBranch: UInt64] {
    var named: [ReissuedBranch: UInt64] = [:]
    for (branch, originals) in reissuedBranches {
      guard let entry = context[branch.original], originals.contains(entry) else { continue }
      named[branch] = entry.sequence
    }
    return named
  }

  /// How far a context's entries of forked chains reach (rule C23); chains that are not named reach as far as they say.
  private func ceilings(of context: VersionVector, author: Dot) -> [ReplicaID: UInt64] {
    var ceilings: [ReplicaID: UInt64] = [:]
    for (replica, forkPoint) in forkPoints where context.sequence(of: replica) > forkPoint {
      if !isCovered(Dot(replica: replica, sequence: forkPoint + 1), by: context, of: author) {
        ceilings[replica] = forkPoint
      }
    }
    return ceilings
  }

  /// Whether a fork decides if changes of this chain count, or what they have seen.
  func hasForkIn(_ context: VersionVector, of replica: ReplicaID) -> Bool {
    guard !forkPoints.isEmpty else { return false }
    return forkPoints[replica] != nil || !ceilings(of: context, author: Dot(replica: replica, sequence: 1)).isEmpty
  }

  /// Lowest positions above which documents are to be built anew, per chain. Of a forked chain everything above the fork:
  /// how far it counts, and on which branch, decides what contexts that name it have seen (rule C23).
  package func lowestMoved(by changes: [LogChange]) -> [ReplicaID: UInt64] {
    var lowest: [ReplicaID: UInt64] = [:]
    func lower(_ replica: ReplicaID, to sequence: UInt64) {
      lowest[replica] = min(sequence, forkPoints[replica] ?? .max, lowest[replica] ?? .max)
    }
    for change in changes {
      for acceptance in change.acceptance { lower(acceptance.replica, to: acceptance.shared) }
      // Of what is not accepted there is nothing to build.
      let regrouped = change.regrouped.filter { $0.sequence <= accepted.sequence(of: $0.replica) }
      for dot in regrouped.union(change.effects.map(\.dot)) { lower(dot.replica, to: dot.sequence - 1) }
      if let forked = change.forkedReplica { lower(forked, to: .max) }
    }
    // Who has seen one of kin has seen all (rule C22), and how far a forked chain is seen moves with it.
    for replica in lowest.keys.sorted() {
      guard let forkPoint = forkPoints[replica] else { continue }
      for dot in kin.dots(besideThoseOf: replica, above: forkPoint) { lower(dot.replica, to: dot.sequence - 1) }
    }
    return lowest
  }

  /// Where everything below is linear, accepted, and needs no memory: sequence and hash.
  package func trunk(of replica: ReplicaID) -> (sequence: UInt64, hash: Digest) {
    guard let trunk = chains[replica]?.trunk else { return (0, genesis(replica)) }
    return (trunk.sequence, trunk.hash)
  }
}

extension PartitionLog {
  /// The chosen branch's position at a sequence that memory holds: the trunk's end and everything above.
  package func position(of replica: ReplicaID, at sequence: UInt64) -> ChainPosition? {
    chains[replica]?.position(at: sequence)
  }

  /// Every re-issued change known, to be kept beside the log.
  package var knownReissues: Set<Reissue> { reissues.all }
}
