// What is left out of a device that has taken all it may, and who vouches for that (decision 30).
extension Ledger {
  /// This device may begin to write here. Half of the allowance is left to what others know of it, and it does not.
  package func mayBegin(_ partition: PartitionID) -> Bool {
    guard takes.hasHalfOfPlaces(device), !authority.wasEverAdmin(device) else { return true }
    return partitions[partition]?.log.received.isEmpty == false
  }

  enum Beyond { case place, branch }

  /// The run would take more than its device may. Not where work of another stands on it.
  func beyondAllowance(_ run: RunSummary, _ partition: PartitionID, _ leftOut: LeftOutChains?) -> Beyond? {
    guard !takes.spent.isEmpty, leftOut?.takesAll != true else { return nil }
    if takes.spent.places.contains(run.signer), partitions[partition]?.log.received[run.replica] == nil,
      !isIn(partition, { $0 != run.signer })
    {
      return .place
    }
    let isHeld = takes.spent.branches.contains(run.signer) && partitions[partition]?.log.wouldHold(run) == true
    return isHeld ? .branch : nil
  }

  /// The partition is counted among the device's already.
  func takesPlace(_ device: PublicKey, in partition: PartitionID, besides replica: ReplicaID) -> Bool {
    partitions[partition]?.log.received.entries.keys.contains {
      $0 != replica && authority.bearers(of: $0).contains(device)
    } ?? false
  }

  mutating func leaveOut(_ run: RunSummary, _ partition: PartitionID) {
    takes.noteLeftOut(of: run.signer)
    // It may have been taken apart to be judged.
    partitions[partition]?.log.fold(run.replica)
  }

  /// Somebody else has seen what was left out here, and is not spent himself: it is worth its place.
  func vouches(_ run: RunSummary, for leftOut: LeftOutChains?) -> Bool {
    guard !takes.spent.isEmpty, let leftOut, !leftOut.takesAll, !takes.isSpent(run.signer) else { return false }
    return leftOut.all.contains { replica in
      run.context[replica] != nil
        && (authority.author(of: replica).map { takes.isSpent($0) && $0 != run.signer } ?? false)
    }
  }

  /// Who has given so many branches that no more of his are taken, and has another one on which this run stands: its author
  /// has seen more of a chain than is here. What is merely late looks the same.
  func branchedBelow(_ run: RunSummary, _ partition: PartitionID) -> Set<PublicKey> {
    guard !takes.spent.branches.isEmpty, !takes.isSpent(run.signer) else { return [] }
    let log = partitions[partition]?.log
    let lacking = run.context.entries.filter { replica, position in
      (log?.owed(position.sequence, of: replica) ?? position.sequence) > log?.received.sequence(of: replica) ?? 0
    }
    return takes.spent.branches.intersection(lacking.keys.compactMap(authority.author(of:)))
  }

  /// Somebody of whom this holds has another chain in the partition.
  func isIn(_ partition: PartitionID, besides replica: ReplicaID? = nil, _ holds: (PublicKey) -> Bool) -> Bool {
    partitions[partition]?.log.received.entries.keys.contains { other in
      other != replica && authority.author(of: other).map(holds) ?? false
    } ?? false
  }

  /// Somebody of whom this holds has made the room, in which nobody need have written yet.
  func isRoom(_ partition: PartitionID, madeBy holds: (PublicKey) -> Bool) -> Bool {
    guard partitions.holdsStatements(of: partition), let name = partitions.name(of: partition) else { return false }
    return authority.statements(of: name.text).contains { $0.createsItsScope && holds($0.issuer) }
  }
}
