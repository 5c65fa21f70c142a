// What merging asks of the log.
extension PartitionLog {
  /// Does this change count, and is it the one of its original and re-issues that does (rules C4, C22)?
  package func hasEffect(_ hash: Digest, at dot: Dot) -> Bool {
    guard dot.sequence <= accepted.sequence(of: dot.replica), withoutEffect[hash] == nil else { return false }
    guard forkPoints[dot.replica] != nil else { return true }
    let position = ChainPosition(sequence: dot.sequence, tip: hash.tip)
    return standing(of: position, of: dot.replica, stored: { _, _ in hash.tip }) == dot.sequence
  }

  /// How far a context's entries of forked chains reach (rule C23); chains that are not named reach as far as they say.
  package func ceilings(of context: VersionVector, author: Dot) -> [ReplicaID: UInt64] {
    var ceilings: [ReplicaID: UInt64] = [:]
    for (replica, forkPoint) in forkPoints where context.sequence(of: replica) > forkPoint {
      if !isCovered(Dot(replica: replica, sequence: forkPoint + 1), by: context, of: author) {
        ceilings[replica] = forkPoint
      }
    }
    return ceilings
  }

  /// Where everything below is linear, accepted, and needs no memory: sequence and hash.
  package func trunk(of replica: ReplicaID) -> (sequence: UInt64, hash: Digest) {
    guard let trunk = chains[replica]?.trunk else { return (0, genesis(replica)) }
    return (trunk.sequence, trunk.hash)
  }
}

extension PartitionLog {
  /// Changes of a forked chain that lie off the branch that counts and that nobody has issued again: somebody's work,
  /// which their device owes the fleet once more (rule C22).
  package func lostOriginals(where isOwn: (ReplicaID) -> Bool) -> [HeldChange] {
    guard !forkPoints.isEmpty else { return [] }
    let reissued = Set(reissues.all.map(\.origin.hash))
    return held.filter { $0.reason == .otherBranch && isOwn($0.dot.replica) && !reissued.contains($0.hash) }
  }

  /// The chosen branch's position at a sequence that memory holds: the trunk's end and everything above.
  package func position(of replica: ReplicaID, at sequence: UInt64) -> ChainPosition? {
    chains[replica]?.position(at: sequence)
  }

  /// Every re-issued change known, to be kept beside the log.
  package var knownReissues: Set<Reissue> { reissues.all }
}
