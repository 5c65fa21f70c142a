import Replication

/// Keeps the mark beside the store, which vouches for the replica id, and takes it away where that is in doubt (rule C20).
package final class ReplicaKeeper {
  private let state: EngineState
  private let journal: any EngineJournal
  private var lastLook: MonotonicTime
  /// Own commits that the mark names already.
  private var marked: UInt64 = 0

  init(_ state: EngineState, _ journal: any EngineJournal) {
    (self.state, self.journal, lastLook) = (state, journal, state.clock.now)
  }

  /// Answers whether the time has come, or enough was written, for a look at what needs upkeep.
  func saveMarkIfDue() -> Bool {
    let isDue =
      state.own.commits >= marked + state.options.changesBetweenMarks
      || state.clock.now.millisecondsSince(lastLook) >= state.options.millisecondsBetweenMarks
    guard isDue else { return false }
    lastLook = state.clock.now
    if state.own.commits > marked { saveMark() }
    return true
  }

  /// Notes outside of the store how far it has come. What is noted is committed already.
  package func saveMark() {
    do {
      // Otherwise what is there is the evidence for the renewal that is due.
      if state.own.causes.isEmpty {
        let own = state.own
        try state.mark.save(
          store: state.store.storeID, replica: own.replica, resting: own.resting.map(\.noted), reached: own.commits)
      }
      marked = state.own.commits
    } catch {
      journal.note(.error, "the replica's mark could not be written", ["reason": .text("\(error)")])
    }
  }

  /// For a reason that came up while the node runs. It must outlast a stop before the next write, so the mark that would
  /// hide it goes. `partition`: where peers have shown the cause; nil: it concerns every one.
  func demandRenewal(_ cause: RenewalCause, in partition: PartitionID? = nil) {
    if let partition, state.own.replica != nil { state.own.contested.insert(partition) }
    do {
      guard state.own.causes.insert(cause).inserted, state.own.replica != nil else { return }
      try state.mark.discard()
      journal.note(.notice, "a new replica id is due at the next write", ["why": .text(cause.rawValue)])
    } catch {
      journal.note(.error, "the replica's mark could not be taken away", ["reason": .text("\(error)")])
    }
  }
}
