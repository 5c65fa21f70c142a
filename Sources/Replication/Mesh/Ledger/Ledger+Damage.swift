// What the disk does not give as it was written, and what it gives again.
extension Ledger {
  /// The chain's headers do not read: its trunk stays as it is, whatever statements say.
  mutating func leaveTrunk(of replica: ReplicaID, in partition: PartitionID) {
    partitions[partition]?.log.leaveTrunk(of: replica)
    unread.insert(partition)
  }

  /// Answers whether there is something that may read now; then the statements are to be adopted again.
  mutating func lookAtTrunksAgain(of replicas: Set<ReplicaID>, in partition: PartitionID) -> Bool {
    let isLookedAt = partitions[partition]?.log.lookAtTrunksAgain(of: replicas) == true
    if partitions[partition]?.log.unreadTrunks.isEmpty != false { unread.remove(partition) }
    return isLookedAt
  }

  /// Takes what is stored of a chain that was incomplete, as an opening does. Answers what that moves.
  mutating func learnStored(_ chain: StoredHeaders, in partition: PartitionID) -> [LogChange] {
    var (changes, isWhole): ([LogChange], Bool) = ([], chain.isWhole)
    for run in chain.runs {
      switch partitions[partition]?.log.learn(run) {
      case .done(let change): if change != LogChange() { changes.append(change) }
      // As it is with a chain of which this one issues changes again.
      case .needsHeaders: isWhole = false
      case .ignored, nil: break
      }
    }
    if isWhole { partitions[partition]?.log.noteComplete(chain.replica) }
    countTakes()
    return changes
  }
}

/// What is stored of a chain above its trunk.
package struct StoredHeaders: Sendable {
  package let replica: ReplicaID
  /// Those that read, ascending, of all branches.
  package let runs: [RunSummary]
  /// All read.
  package let isWhole: Bool

  package init(replica: ReplicaID, runs: [RunSummary], isWhole: Bool) {
    (self.replica, self.runs, self.isWhole) = (replica, runs, isWhole)
  }
}
