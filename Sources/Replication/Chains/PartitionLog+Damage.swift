// What storage does not give as it was written. Nothing of it is dropped: it is left out of what memory knows until it has
// come anew.
extension PartitionLog {
  /// Storage does not give the headers of a request: from now on nobody asks for them, until
  /// ``lookAtTrunksAgain(of:)``.
  package mutating func leaveTrunk(of replica: ReplicaID) { unreadTrunks.insert(replica) }

  /// Some of it may read now. ``adopt(_:)`` has to follow. Answers whether anything was left.
  mutating func lookAtTrunksAgain(of replicas: Set<ReplicaID>) -> Bool {
    defer { unreadTrunks.subtract(replicas) }
    return !unreadTrunks.isDisjoint(with: replicas)
  }

  /// Stored runs of the chain do not read: it may be longer, or forked, than memory knows.
  package mutating func noteIncomplete(_ replica: ReplicaID) { incompleteChains.insert(replica) }

  /// All that is stored of the chain is learned.
  mutating func noteComplete(_ replica: ReplicaID) {
    incompleteChains.remove(replica)
    fold(replica)
  }

  /// Where incomplete chains end, of which a receiver may ask more: what has seen more of them is not for him.
  package var incompleteEnds: [ReplicaID: UInt64] {
    incompleteChains.reduce(into: [:]) { ends, replica in
      let received = received.sequence(of: replica)
      if required(.max, of: replica) > received { ends[replica] = received }
    }
  }

  /// Nothing is received, nor stored without being read.
  package var holdsNothing: Bool { received.isEmpty && incompleteChains.isEmpty }

  /// Chains of which runs are stored, ascending.
  package var storedChains: [ReplicaID] { Set(received.entries.keys).union(incompleteChains).sorted() }

  /// Changes of the chain to which something leads that is here. Nil where that is all of them.
  func rooted(_ replica: ReplicaID) -> Set<Digest>? {
    guard incompleteChains.contains(replica), let chain = chains[replica] else { return nil }
    return chain.tree.reachable(from: chain.trunk.hash, at: chain.trunk.sequence)
  }
}

extension ChainTree {
  /// All changes that follow on one, on whatever branch.
  fileprivate func reachable(from hash: Digest, at sequence: UInt64) -> Set<Digest> {
    var (found, waiting): (Set<Digest>, [(Digest, UInt64)]) = ([], [(hash, sequence)])
    while let (hash, sequence) = waiting.popLast() {
      for next in following(hash, at: sequence + 1) where found.insert(next).inserted {
        waiting.append((next, sequence + 1))
      }
    }
    return found
  }
}
