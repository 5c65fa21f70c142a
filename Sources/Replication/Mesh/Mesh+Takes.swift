// What is left out of a device that has taken all it may (decision 30), as streams and peers see it.
extension Mesh {
  /// Takes a run into its log, and counts what that makes its device take.
  mutating func learn(_ run: RunSummary, in partition: PartitionID) -> PartitionLog.Outcome? {
    let (outcome, begins) = ledger.learn(run, in: partition)
    // Of whom all that write in a partition are decides whether it is compared.
    if begins, sessions.values.contains(where: { !$0.spared.both.isEmpty }) { scopeChanged() }
    return outcome
  }

  /// Answers whether that is new of its chain: then nothing that waits for it is to wait on.
  mutating func leaveOut(
    _ run: RunSummary, beyond: Ledger.Beyond, _ id: SessionID, _ partition: PartitionID
  ) -> Bool {
    ledger.leaveOut(run, partition)
    let lacksPlace = beyond == .place
    return sessions[id]?.live?.streams[partition]?.incoming.leftOut.insert(run.replica, lacksPlace: lacksPlace) ?? false
  }

  /// What was left out on the stream is asked for once more.
  mutating func reopen(_ id: SessionID, _ partition: PartitionID, takesAll: Bool, _ step: inout Step) {
    guard sessions[id]?.live?.streams[partition] != nil else { return }
    sessions[id]?.live?.streams[partition]?.incoming.leftOut.reopen(takesAll: takesAll)
    askAnew(id, partition, &step)
  }

  /// A catch-up of a stream that is closed would keep everybody from being asked, until it is found to be silent.
  private mutating func askAnew(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    sessions[id]?.live?.streams[partition]?.incoming.close()
    catchUps.end(partition, on: id)
    considerPull(id, partition, &step)
  }

  /// These runs were taken: what stood in the way of others in their partition may be gone.
  mutating func noteTaken(_ kept: [DeliveredRun], _ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard !ledger.takes.spent.isEmpty, let stream = sessions[id]?.live?.streams[partition] else { return }
    let isVouchedFor = kept.contains { $0.incoming.signer.map { !ledger.takes.isSpent($0) } ?? false }
    guard isVouchedFor else {
      // Nobody else need wait for what is not taken from this peer.
      if !stream.incoming.leftOut.isEmpty { noteProgress(partition, id, &step) }
      return
    }
    sessions[id]?.live?.streams[partition]?.incoming.leftOut.boundAgain()
    placeGained(partition, &step)
  }

  /// Somebody who is not spent has written in the partition, this device perhaps: who else does stands alone no more,
  /// whatever session showed his work.
  mutating func placeGained(_ partition: PartitionID, _ step: inout Step) {
    for id in sessions.keys.sorted() where sessions[id]?.live?.streams[partition]?.incoming.leftOut.awaitsPlace == true
    {
      reopen(id, partition, takesAll: false, &step)
    }
  }

  // MARK: Between two nodes

  /// What two nodes left out of a device differs, and neither would take it: so each says who is spent here.
  mutating func tellSpent(_ id: SessionID, _ step: inout Step) {
    let spent = ledger.takes.spent
    guard let session = sessions[id], session.phase == .live, session.spared.told != spent,
      !ledger.authority.isEnded(session.peer)
    else { return }
    if sessions[id]?.spared.tell(spent) == true { sessions[id]?.live?.comparison.sums = nil }
    step.emit(.send(id, .spent(spent)))
  }

  mutating func receiveSpent(_ id: SessionID, _ told: SpentDevices) {
    if sessions[id]?.spared.hear(told) == true { sessions[id]?.live?.comparison.sums = nil }
  }

  // MARK: What nothing here allows

  // Runs that nothing here allows are not the connection's fault: their author, or who passed them on, may know what is not
  // known here (rule C7). They are not stored, and their chain is left out of the stream until statements come.

  mutating func leaveOut(_ replica: ReplicaID, _ id: SessionID, _ partition: PartitionID) {
    sessions[id]?.live?.streams[partition]?.incoming.leftOut.insert(replica)
  }

  func leftOut(_ id: SessionID, _ partition: PartitionID) -> LeftOutChains? {
    sessions[id]?.live?.streams[partition]?.incoming.leftOut
  }

  /// A run of a replica that nobody declares: left out where only a narrowing took the declaration away.
  mutating func leaveOutNarrowed(
    _ run: DeliveredRun, _ name: PartitionName, _ id: SessionID, _ partition: PartitionID
  ) -> Bool {
    guard ledger.authority.floor(of: run.incoming.replica, in: name) < run.incoming.first else { return false }
    leaveOut(run.incoming.replica, id, partition)
    return true
  }

  /// Statements may allow what was left out: it is asked for anew.
  mutating func reopenStreamsWithLeftOut(_ step: inout Step) {
    for id in sessions.keys.sorted() {
      let incomplete = sessions[id]?.live?.streams.filter { !$0.value.incoming.leftOut.isEmpty }.keys.sorted() ?? []
      for partition in incomplete {
        sessions[id]?.live?.streams[partition]?.incoming.leftOut.forgive()
        askAnew(id, partition, &step)
      }
    }
  }
}
