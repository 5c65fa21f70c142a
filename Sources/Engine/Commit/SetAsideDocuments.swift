import Replication

// Documents that were set aside, or that runs write which did not read when something moved: they are made anew when the
// runs have come anew.
extension NodeEngine {
  /// The log has again what it lacked.
  func mendQuarantined(in partition: PartitionID) {
    mendSetAside(in: partition)
    if state.damagedRuns.isEmpty { settleOwed() }
  }

  /// After an opening nobody may read what was set aside, and so nobody find which run is damaged: each log is walked
  /// through once, one with each tick.
  func lookForOwed() {
    guard state.owesDocuments else { return }
    if let partition = state.unexamined.popLast() { return examine(partition) }
    guard state.damagedRuns.isEmpty else { return }
    for (partition, documents) in state.quarantine.entries.sorted(by: { $0.key < $1.key }) {
      mend(Set(documents.keys), in: partition)
    }
    if state.damagedRuns.isEmpty { settleOwed() }
  }

  private func examine(_ id: PartitionID) {
    guard let partition = state.mesh.partitions[id] else { return }
    attempt(()) {
      let rebuild = DocumentRebuild(reader: RunReader(state.identity), partition: partition)
      for failure in try rebuild.unread(state.store) {
        if let run = failure.runAtFault { state.damagedRuns.note(run, in: id) }
      }
    }
  }

  private func mendSetAside(in partition: PartitionID) {
    let keys = state.quarantine.makeDue(in: partition)
    if !keys.isEmpty { mend(keys, in: partition) }
  }

  /// Every run reads: what was set aside beyond what memory holds is made anew as well, then nothing is owed any more.
  private func settleOwed() {
    guard state.owesDocuments, state.unexamined.isEmpty, state.quarantine.count == 0,
      state.mesh.ledger.unread.isEmpty, failure == nil,
      // The payload of a run may stand in the way, and nobody may have read it.
      state.scrub.wholePassCount > 0, state.damagedRuns.isWhole
    else { return }
    do {
      while case let rest = try state.store.documentsSetAside(limit: Quarantine.limit), !rest.isEmpty {
        state.takeSetAside(rest)
        for partition in Set(rest.map(\.partition)).sorted() { mendSetAside(in: partition) }
        guard state.quarantine.count == 0 else { return }
      }
      try store { try $0.setUnderstanding(state.identity.cryptography.formats.understanding) }
      (state.owesDocuments, state.hasNotedUnderstanding) = (false, true)
    } catch {
      journal.note(.error, "documents that are owed could not be looked for", ["reason": .text("\(error)")])
    }
  }
}

extension EngineState {
  func noteOwing() { (owesDocuments, hasNotedUnderstanding) = (true, false) }

  func takeSetAside(_ documents: [(partition: PartitionID, key: DocumentKey)]) {
    for (partition, key) in documents {
      quarantine.putUntried(key, in: partition, "it could not be made anew when work was taken away or came back")
    }
  }

  /// What an earlier process could not make anew.
  func loadOwed() throws {
    owesDocuments = try store.ownFacts().understanding == KnownFormats.owing
    guard owesDocuments else { return }
    unexamined = mesh.partitions.values.map(\.id).sorted()
    takeSetAside(try store.documentsSetAside(limit: Quarantine.limit))
  }
}
