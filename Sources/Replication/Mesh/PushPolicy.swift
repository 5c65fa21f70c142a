/// Runs of one partition that are durable now.
struct CommittedRuns {
  let partition: PartitionState
  /// Who brought them; nil for own ones.
  let source: SessionID?
  let runs: [LoggedRun]
  /// What was held before.
  let before: VersionVector
  /// What is announced of them.
  let offered: VersionVector

  init(_ partition: PartitionState, from source: SessionID?, _ runs: [LoggedRun]) {
    (self.partition, self.source, self.runs) = (partition, source, runs)
    var before = partition.log.clipped
    for run in runs.reversed() {
      before[run.replica] =
        run.first > 1 ? ChainPosition(sequence: run.first - 1, tip: run.hashBefore.tip) : nil
    }
    self.before = before
    let clipped = partition.log.clipped
    var offered = VersionVector()
    for run in runs where offered[run.replica] == nil { offered[run.replica] = clipped[run.replica] }
    self.offered = offered
  }
}

/// What is pushed to whom: the one place that decides what becomes of a commit on each session. Pushing is best effort;
/// comparing again and again is the truth.
///
/// Everybody in scope hears of it. Own runs go to all at once. What came from elsewhere waits a little, since the one who
/// brought it may bring it to others as well: without the wait every node of a LAN would send every run to every other.
enum PushPolicy {
  struct Push {
    /// A vector says that it is here.
    var isAnnounced: Bool
    var runs: Runs
  }

  enum Runs: Equatable {
    case none
    /// The peer lacks nothing before them: they go out from memory.
    case now
    /// With what else the peer lacks, from the log.
    case fromLog
    case relayed(at: MonotonicTime)
  }

  static func push(_ committed: CommittedRuns, to session: PeerSession, _ step: Step) -> Push {
    let stream = session.live?.streams[committed.partition.id]
    // Own runs are announced by sending them, where a stream is open.
    let isAnnounced = committed.source != nil || stream?.outgoing.number == nil
    guard session.id != committed.source, let stream, stream.outgoing.number != nil else {
      return Push(isAnnounced: isAnnounced, runs: .none)
    }
    let isRelayed = session.live?.relaysDue[committed.partition.id] != nil
    guard committed.source == nil else {
      let lacks = committed.runs.contains { !stream.covers($0.replica, $0.last) }
      let due = step.now.advanced(byMilliseconds: step.configuration.relayMilliseconds)
      return Push(isAnnounced: isAnnounced, runs: lacks && !isRelayed ? .relayed(at: due) : .none)
    }
    let isNext =
      session.isWritable && !stream.outgoing.isLoading && !isRelayed && stream.isFollowed(by: committed.runs)
      && session.isItsTurn(committed.partition.id, stream.name)
    return Push(isAnnounced: isAnnounced, runs: isNext ? .now : .fromLog)
  }
}

extension PeerSession {
  /// Durable now: told to the peer, and sent to it where it lacks them.
  mutating func push(_ committed: CommittedRuns, _ ledger: Ledger, _ step: inout Step) {
    let partition = committed.partition.id
    guard live != nil, isInScope(committed.partition, ledger) else { return }
    let (isCompared, hadStream) = (isCompared(withChangesOf: partition), live?.streams[partition] != nil)
    // Also where it is told only at the comparison's end: what the peer says or sends until then finds the stream as it
    // was before the change, not one on which the peer has it already.
    if live?.level.contains(partition, committed.partition.name) == true {
      openIfLevel(committed.partition, known: committed.before, step.now)
    }
    guard isCompared else {
      live?.comparison.note(partition, before: committed.before)
      return
    }
    let push = PushPolicy.push(committed, to: self, step)
    if push.isAnnounced, !committed.offered.isEmpty {
      send(PartitionVector(name: committed.partition.name, vector: committed.offered), &step) { .have($0) }
    }
    switch push.runs {
    case .none: break
    case .now: send(committed.runs, partition, ledger, &step)
    case .fromLog: pump(partition, ledger, &step)
    case .relayed(let due): live?.relaysDue[partition] = due
    }
    // When these runs were judged there was no stream to show them on.
    if !hadStream { showApart(partition, ledger, &step) }
  }

  /// No comparison is under way, or still to come, that does not know of what was just committed.
  private func isCompared(withChangesOf partition: PartitionID) -> Bool {
    guard let live, live.comparison.hasBegun else { return false }
    return !live.comparison.isUnderWay || live.streams[partition] != nil
  }

  /// Between equal summaries and the first change the stream needs no entry: it begins with the vector of then.
  mutating func openIfLevel(_ state: PartitionState, known: VersionVector, _ now: MonotonicTime) {
    guard live?.streams[state.id] == nil else { return }
    live?.streams[state.id] = PeerStream(state.name, known: known, number: PeerStream.level, now: now)
  }

  /// Passes on what has waited for that long enough.
  mutating func relay(_ ledger: Ledger, _ step: inout Step) {
    for partition in live?.relaysDue.filter({ $0.value <= step.now }).keys.sorted() ?? [] {
      live?.relaysDue[partition] = nil
      pump(partition, ledger, &step)
    }
  }
}
