// What is left out of a device that has taken all it may (decision 30), as streams and peers see it.
extension Mesh {
  /// Takes a run into its log, and counts what that makes its device take.
  mutating func learn(_ run: RunSummary, in partition: PartitionID) -> PartitionLog.Outcome? {
    let (outcome, begins) = ledger.learn(run, in: partition)
    // Of whom all that write in a partition are decides whether it is compared.
    if begins, sessions.values.contains(where: { !$0.spared.isEmpty }) { scopeChanged() }
    return outcome
  }

  /// Answers whether that is new of its chain: then nothing that waits for it is to wait on.
  mutating func leaveOut(
    _ run: RunSummary, beyond: Ledger.Beyond, _ id: SessionID, _ partition: PartitionID
  ) -> Bool {
    ledger.leaveOut(run, partition)
    let lacksPlace = beyond == .place
    return sessions[id]?.streams[partition]?.incoming.leftOut.insert(run.replica, lacksPlace: lacksPlace) ?? false
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
    guard !ledger.takes.spent.isEmpty, let stream = sessions[id]?.streams[partition] else { return }
    let isVouchedFor = kept.contains { $0.incoming.signer.map { !ledger.takes.isSpent($0) } ?? false }
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
    guard let session = sessions[id], session.phase == .live, session.toldSpent != ledger.takes.spent,
      !ledger.authority.isEnded(session.peer)
    else { return }
    sessions[id]?.toldSpent = ledger.takes.spent
    settleSpared(id)
    step.emit(.send(id, .spent(ledger.takes.spent)))
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
    return spared.isEmpty || ledger.isIn(partition) { !spared.contains($0) }
  }

  func sparesBranches(of replica: ReplicaID, _ session: PeerSession) -> Bool {
    guard !session.spared.branches.isEmpty, let device = ledger.authority.author(of: replica) else { return false }
    return session.spared.branches.contains(device)
  }

  /// The peer would not take them.
  func keepsBranches(of replica: ReplicaID, from session: PeerSession) -> Bool {
    guard !session.peerSpent.branches.isEmpty, let device = ledger.authority.author(of: replica) else { return false }
    return session.peerSpent.branches.contains(device)
  }
}
