// How much of this node each device takes, and what is left out of one that has taken all it may (decision 30).
extension Mesh {
  // MARK: Counting

  /// Anew, from all that is here.
  mutating func countTakes() {
    var counted = takes.compactMapValues { $0.leftOutRuns > 0 ? DeviceTake(leftOutRuns: $0.leftOutRuns) : nil }
    for partition in partitions.values {
      var devices: Set<PublicKey> = []
      for replica in partition.log.received.entries.keys {
        guard let device = authority.author(of: replica) else { continue }
        counted[device, default: DeviceTake()].chains += 1
        devices.insert(device)
      }
      for device in devices { counted[device]?.partitions += 1 }
      for (replica, count) in partition.log.heldCounts {
        guard let device = authority.author(of: replica) else { continue }
        counted[device, default: DeviceTake()].heldChanges += count
      }
    }
    takes = counted
    spent = SpentDevices()
    for device in takes.keys { noteSpending(device) }
  }

  private mutating func noteSpending(_ device: PublicKey) {
    guard let take = takes[device], !authority.wasEverAdmin(device) else { return }
    if take.hasSpentPlaces(configuration.takes) { spent.places.insert(device) }
    if take.hasSpentBranches(configuration.takes) {
      spent.branches.insert(device)
    } else {
      spent.branches.remove(device)
    }
  }

  /// Takes a run into its log, and counts what that makes its device take.
  mutating func learn(_ run: RunSummary, in partition: PartitionID) -> PartitionLog.Outcome? {
    let isNew = partitions[partition]?.log.received[run.replica] == nil
    let heldBefore = partitions[partition]?.log.heldCounts[run.replica] ?? 0
    let outcome = partitions[partition]?.log.learn(run)
    let held = (partitions[partition]?.log.heldCounts[run.replica] ?? 0) - heldBefore
    let begins = isNew && partitions[partition]?.log.received[run.replica] != nil
    if begins || held != 0 { noteTake(run, partition, begins: begins, heldChanges: held) }
    return outcome
  }

  private mutating func noteTake(_ run: RunSummary, _ partition: PartitionID, begins: Bool, heldChanges: Int) {
    var take = takes[run.signer] ?? DeviceTake()
    take.heldChanges = max(0, take.heldChanges + heldChanges)
    if begins {
      take.chains += 1
      if !isIn(partition, besides: run.replica, { $0 == run.signer }) { take.partitions += 1 }
      // Of whom all that write in it are decides whether it is compared.
      if sessions.values.contains(where: { !$0.spared.isEmpty }) { scopeChanged() }
    }
    takes[run.signer] = take
    noteSpending(run.signer)
  }

  /// Somebody of whom this holds has another chain in the partition.
  private func isIn(
    _ partition: PartitionID, besides replica: ReplicaID? = nil, _ holds: (PublicKey) -> Bool
  ) -> Bool {
    partitions[partition]?.log.received.entries.keys.contains { other in
      other != replica && authority.author(of: other).map(holds) ?? false
    } ?? false
  }

  // MARK: Own work

  /// This device may begin to write here. Half of the allowance is left to what others know of it, and it does not.
  package func mayBegin(_ partition: PartitionID) -> Bool {
    guard let take = takes[local.device], take.hasHalfOfPlaces(configuration.takes),
      !authority.wasEverAdmin(local.device)
    else { return true }
    return partitions[partition]?.log.received.isEmpty == false
  }

  // MARK: Others' work

  enum Beyond { case place, branch }

  /// The run would take more than its device may. Not where work of another stands on it.
  func beyondAllowance(_ run: RunSummary, _ partition: PartitionID, _ id: SessionID) -> Beyond? {
    guard !spent.isEmpty, sessions[id]?.streams[partition]?.incoming.leftOut.takesAll != true else { return nil }
    if spent.places.contains(run.signer), partitions[partition]?.log.received[run.replica] == nil,
      !isIn(partition, { $0 != run.signer })
    {
      return .place
    }
    let isHeld = spent.branches.contains(run.signer) && partitions[partition]?.log.wouldHold(run) == true
    return isHeld ? .branch : nil
  }

  /// Answers whether that is new of its chain: then nothing that waits for it is to wait on.
  mutating func leaveOut(_ run: RunSummary, beyond: Beyond, _ id: SessionID, _ partition: PartitionID) -> Bool {
    takes[run.signer]?.leftOutRuns += 1
    // It may have been taken apart to be judged.
    partitions[partition]?.log.fold(run.replica)
    let isBeyondPlaces = beyond == .place
    return sessions[id]?.streams[partition]?.incoming.leftOut.insert(run.replica, lacksPlace: isBeyondPlaces) ?? false
  }

  /// Somebody else has seen what was left out here, and is not spent himself: it is worth its place.
  func vouches(_ run: RunSummary, _ id: SessionID, _ partition: PartitionID) -> Bool {
    guard !spent.isEmpty, let leftOut = sessions[id]?.streams[partition]?.incoming.leftOut, !leftOut.takesAll,
      !spent.places.contains(run.signer), !spent.branches.contains(run.signer)
    else { return false }
    return leftOut.all.contains { replica in
      run.context[replica] != nil && (authority.author(of: replica).map { isSpent($0) && $0 != run.signer } ?? false)
    }
  }

  private func isSpent(_ device: PublicKey) -> Bool {
    spent.places.contains(device) || spent.branches.contains(device)
  }

  /// What was left out on the stream is asked for once more.
  mutating func reopen(_ id: SessionID, _ partition: PartitionID, takesAll: Bool, _ step: inout Step) {
    guard sessions[id]?.streams[partition] != nil else { return }
    sessions[id]?.streams[partition]?.incoming.leftOut.reopen(takesAll: takesAll)
    sessions[id]?.streams[partition]?.incoming.close()
    if catchUps[partition]?.session == id { catchUps[partition] = nil }
    considerPull(id, partition, &step)
  }

  /// These runs were taken: what stood in the way of others in their partition may be gone.
  mutating func noteTaken(_ kept: [DeliveredRun], _ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard !spent.isEmpty, let stream = sessions[id]?.streams[partition] else { return }
    let isVouchedFor = kept.contains { $0.incoming.signer.map { !isSpent($0) } ?? false }
    guard isVouchedFor else {
      // Nobody else need wait for what is not taken from this peer.
      if !stream.incoming.leftOut.isEmpty { noteProgress(partition, id, &step) }
      return
    }
    sessions[id]?.streams[partition]?.incoming.leftOut.boundAgain()
    placeGained(partition, &step)
  }

  /// Somebody who is not spent has written in the partition, this device perhaps: who else does stands alone no more,
  /// whatever session showed his work.
  mutating func placeGained(_ partition: PartitionID, _ step: inout Step) {
    for id in sessions.keys.sorted() where sessions[id]?.streams[partition]?.incoming.leftOut.awaitsPlace == true {
      reopen(id, partition, takesAll: false, &step)
    }
  }

  // MARK: Between two nodes

  /// What two nodes left out of a device differs, and neither would take it: so each says who is spent here.
  mutating func tellSpent(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], session.phase == .live, session.toldSpent != spent,
      !authority.isEnded(session.peer)
    else { return }
    sessions[id]?.toldSpent = spent
    settleSpared(id)
    step.emit(.send(id, .spent(spent)))
  }

  mutating func receiveSpent(_ id: SessionID, _ told: SpentDevices) {
    sessions[id]?.peerSpent = told
    settleSpared(id)
  }

  private mutating func settleSpared(_ id: SessionID) {
    guard let session = sessions[id] else { return }
    let spared = session.toldSpent.shared(with: session.peerSpent)
    guard spared != session.spared else { return }
    sessions[id]?.spared = spared
    sessions[id]?.comparison.sums = nil
  }

  /// In the common scope, and not only of devices that are spent at both ends.
  func isCompared(_ session: PeerSession, _ partition: PartitionID) -> Bool {
    guard isInScope(session, partition) else { return false }
    let spared = session.spared.places
    return spared.isEmpty || isIn(partition) { !spared.contains($0) }
  }

  func sparesBranches(of replica: ReplicaID, _ session: PeerSession) -> Bool {
    guard !session.spared.branches.isEmpty, let device = authority.author(of: replica) else { return false }
    return session.spared.branches.contains(device)
  }

  /// The peer would not take them.
  func keepsBranches(of replica: ReplicaID, from session: PeerSession) -> Bool {
    guard !session.peerSpent.branches.isEmpty, let device = authority.author(of: replica) else { return false }
    return session.peerSpent.branches.contains(device)
  }
}
