@testable import Replication

/// The sender's side of one stream in its plainest form: one partition to one peer (rules C8, C9).
///
/// A run goes out when the peer has, by what it announced after its commit and what this stream sent already, the run's
/// hash before and its context. Whoever loses or drops content opens its streams anew.
struct OutgoingStream: Sendable {
  /// What the peer said it holds durably.
  private(set) var announced: VersionVector
  /// What went down this stream.
  private(set) var sent = VersionVector()

  init(announced: VersionVector) { self.announced = announced }

  /// A later announcement of the same peer: its entries replace.
  mutating func announce(_ vector: VersionVector) {
    for (replica, position) in vector.entries { announced[replica] = position }
  }

  /// The runs to send, in order. `runs`: those held, in order of arrival; runs that the peer has may be left out. Repeats
  /// until nothing moves, since a run may open the way for one that arrived before it.
  mutating func select(
    from runs: [RunSummary], of log: PartitionLog, stored: @escaping PartitionLog.StoredTip
  ) -> [RunSummary] {
    var standings = Standings(log: log, announced: announced, sent: sent, stored: stored)
    var (waiting, selected) = (runs.filter(log.isSendable), [RunSummary]())
    while true {
      var later: [RunSummary] = []
      let before = selected.count
      for run in waiting {
        let end = min(run.last, log.bound(of: run.replica))
        if standings[run.replica] >= end { continue }
        guard standings[run.replica] >= run.first - 1, standings.hold(run.context), let tip = run.hashes.last?.tip
        else {
          later.append(run)
          continue
        }
        sent[run.replica] = ChainPosition(sequence: run.last, tip: tip)
        standings[run.replica] = run.last
        selected.append(run)
      }
      if selected.count == before { return selected }
      waiting = later
    }
  }
}

/// How much of each chosen branch the peer has, looked up when first asked for.
private struct Standings {
  let log: PartitionLog
  let announced: VersionVector
  let sent: VersionVector
  let stored: PartitionLog.StoredTip
  private var known: [ReplicaID: UInt64] = [:]

  init(
    log: PartitionLog, announced: VersionVector, sent: VersionVector, stored: @escaping PartitionLog.StoredTip
  ) {
    (self.log, self.announced, self.sent, self.stored) = (log, announced, sent, stored)
  }

  subscript(replica: ReplicaID) -> UInt64 {
    mutating get {
      if let found = known[replica] { return found }
      let entries = [announced[replica], sent[replica]].compactMap { $0 }
      let found = entries.map { log.standing(of: $0, of: replica, stored: stored) }.max() ?? 0
      known[replica] = found
      return found
    }
    set { known[replica] = newValue }
  }

  mutating func hold(_ context: VersionVector) -> Bool {
    for (replica, position) in context.entries
    where self[replica] < log.required(position.sequence, of: replica) { return false }
    return true
  }
}

extension PartitionLog {
  func bound(of replica: ReplicaID) -> UInt64 {
    chains[replica]?.limits.bound.sequence ?? authority.bound(of: replica, in: partition).sequence
  }

  /// Received on the chosen branch, begins at or below the bound, and refused by nobody. The run is one that is held.
  func isSendable(_ run: RunSummary) -> Bool {
    guard let chain = chains[run.replica], run.last <= chain.received, run.first <= chain.limits.bound.sequence else {
      return false
    }
    // Whatever is held at or below a trunk's end is the trunk.
    let isChosen = run.last < chain.trunk.sequence || chain.hash(at: run.last) == run.hashes.last
    return isChosen && authority.refusal(of: run, genesis: genesis(run.replica)) == nil
  }
}
