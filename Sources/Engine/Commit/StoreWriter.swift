import Replication

/// Writes the store in transactions, one at a time, and no more once it has failed for good (K3).
final class StoreWriter {
  private let state: EngineState
  private let keeper: ReplicaKeeper
  private let journal: any EngineJournal
  /// A transaction is open: nothing may leave the node.
  private(set) var isWriting = false
  /// Set when the store failed for good: nothing is acknowledged any more.
  private(set) var failure: (any Error)?

  init(_ state: EngineState, _ keeper: ReplicaKeeper, _ journal: any EngineJournal) {
    (self.state, self.keeper, self.journal) = (state, keeper, journal)
  }

  /// All of it is on disk when this returns, or nothing where it throws; memory is then as the disk has it, but for what the
  /// core took in before.
  func write(_ batch: PendingCommit) throws -> CommitWriter {
    if let failure { throw failure }
    isWriting = true
    defer { isWriting = false }
    let checkpoint = state.checkpoint(batch.writingPartitions)
    do {
      let isBacklog = batch.changeCount > state.options.limits.backlogChanges
      return try state.store.transact(isBacklog: isBacklog) { transaction in
        var writer = CommitWriter(state, transaction)
        try writer.write(batch)
        if Invariant.isLookedAt { try state.lookAtMarks(of: writer.partitions(of: batch), transaction) }
        return writer
      }
    } catch {
      state.restore(checkpoint)
      noteFailure(error)
      throw error
    }
  }

  /// A transaction of its own, behind all that waited.
  func transact(_ body: (any LogTransaction) throws -> Void) throws {
    if let failure { throw failure }
    let quarantine = state.quarantine
    do {
      try state.store.transact(isBacklog: false, body)
    } catch {
      state.quarantine = quarantine
      noteFailure(error)
      throw error
    }
  }

  /// Brings the store's log to where it belongs, if that is due.
  func carryOver(_ occasion: CarryOccasion) {
    do {
      try state.store.carryOver(occasion)
    } catch {
      journal.note(.error, "carrying the store's log over failed", ["reason": .text("\(error)")])
      noteFailure(error)
    }
  }

  private func noteFailure(_ error: any Error) {
    guard state.store.hasFailed else { return }
    failure = error
    keeper.demandRenewal(.inputOutputError)
  }

  /// The state cannot be read anew: nothing that is written could be judged any more.
  func giveUp(_ error: any Error) { failure = error }
}
