// What is left out of a device that has taken all it may, and who vouches for that (decision 30).
extension Ledger {
  /// This device may begin to write here. Half of the allowance is left to what others know of it, and it does not.
  package func mayBegin(_ partition: PartitionID) -> Bool {
    guard takes.hasHalfOfPlaces(device), !authority.wasEverAdmin(device) else { return true }
    return partitions[partition]?.log.received.isEmpty == false
  }

  enum Beyond { case place, branch }

  /// The run would take more than its device may. Not where work of another stands on it.
  func beyondAllowance(
    _ run: RunSummary, _ partition: PartitionID, _ leftOut: @autoclosure () -> LeftOutChains?
  ) -> Beyond? {
    guard !takes.spent.isEmpty, leftOut()?.takesAll != true else { return nil }
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
  }

  /// What this run of somebody who is not spent stands on, of those who are, and is not here: it was left out, or is a branch
  /// of which the author has seen more. By chain through which sequence. What is merely late looks the same.
  func lackedOfSpent(_ run: RunSummary, _ partition: PartitionID) -> [ReplicaID: UInt64] {
    guard !takes.spent.isEmpty, !takes.isSpent(run.signer) else { return [:] }
    let log = partitions[partition]?.log
    return run.context.entries.reduce(into: [:]) { lacked, entry in
      let (replica, sequence) = (entry.key, log?.owed(entry.value.sequence, of: entry.key) ?? entry.value.sequence)
      guard sequence > log?.received.sequence(of: replica) ?? 0, let device = authority.author(of: replica),
        takes.isSpent(device)
      else { return }
      lacked[replica] = sequence
    }
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
