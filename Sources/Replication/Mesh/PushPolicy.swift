/// What is pushed to whom: the one place that decides what becomes of a commit on each session. Pushing is best effort;
/// comparing again and again is the truth.
///
/// Everybody in scope hears of it. Own runs go to all at once. What came from elsewhere is left to who brought it, or wrote
/// it, where the peer is linked with him, as it says, and else to the one that is nearest to the peer of those who are linked with both.
/// Otherwise it waits a little, for others may pass it on as well (without that every
/// node of a LAN would send every run to every other), and longer where he has just come and was ahead, for then the
/// peer is likely to link with him as well.
enum PushPolicy {
  struct Push {
    var announcement: Announcement
    var runs: Runs
    /// Somebody else brings what of these the peer lacks; what he may not is passed on at that time.
    var left: [Left] = []
    var elseAt: MonotonicTime?

    struct Left {
      let runs: [LoggedRun]
      let way: LeftRuns.Way
    }
  }

  /// A vector that says that it is here.
  enum Announcement: Equatable {
    case none
    case now
    /// With what else comes until then: nobody waits for it to pass something on.
    case gathered(until: MonotonicTime)
    /// The same, and with what was to be announced sooner: the peer may get it elsewhere.
    case heldBack(until: MonotonicTime)
  }

  enum Runs: Equatable {
    case none
    /// The peer lacks nothing before them: they go out from memory.
    case now
    /// With what else the peer lacks, from the log.
    case fromLog
    case relayed(at: MonotonicTime)
    /// With what waits already to be passed on, and not before this.
    case postponed(until: MonotonicTime)
  }

  /// - Parameter own: this device.
  static func push(_ committed: CommittedRuns, to session: PeerSession, _ own: DeviceMark, _ step: Step) -> Push {
    let partition = committed.partition
    let isOpen = session.live?.streams[partition]?.outgoing.number != nil
    let announcement = announcement(committed, session, isOpen: isOpen, step)
    guard session.id != committed.source, isOpen else { return Push(announcement: announcement, runs: .none) }
    let isRelayed = session.live?.relays[partition] != nil
    guard committed.source == nil else {
      let due = relayDue(committed, session, step)
      let lacked = session.lacked(of: committed.runs, in: partition)
      let left = left(of: lacked, committed, to: session, own)
      var push = Push(announcement: announcement, runs: .none, left: left, elseAt: due)
      guard left.reduce(0, { $0 + $1.runs.count }) < lacked.count else { return push }
      // What waits already keeps its time, but for more that comes with a meeting.
      let isMeeting = meetingEnd(committed, step) != nil
      push.runs = !isRelayed ? .relayed(at: due) : isMeeting ? .postponed(until: due) : .none
      return push
    }
    let isNext =
      session.isWritable && !isRelayed
      && session.live?.streams.look(at: partition) { stream in
        !stream.outgoing.isBusy && stream.isFollowed(by: committed.runs) && session.isItsTurn(partition, stream.name)
      } == true
    return Push(announcement: announcement, runs: isNext ? .now : .fromLog)
  }

  /// By chain: as the peer has chosen, and where it has not by who brought them here.
  private static func left(
    of lacked: [LoggedRun], _ committed: CommittedRuns, to session: PeerSession, _ own: DeviceMark
  ) -> [Push.Left] {
    guard !lacked.isEmpty, let choices = session.live?.choices else { return [] }
    let partition = committed.partition
    let lazy = lacked.filter { choices.isLazy($0.replica, in: partition) }
    var left = lazy.isEmpty ? [] : [Push.Left(runs: lazy, way: .direct)]
    let free = lacked.filter { choices.isFree($0.replica, in: partition) }
    guard !free.isEmpty, let bringer = committed.bringer, let way = way(of: bringer, to: session, own) else {
      return left
    }
    left.append(Push.Left(runs: free, way: way))
    return left
  }

  /// From who brought them here, from their authors, who send what they write to all with whom they are linked, or by whoever
  /// is nearer to the peer. Nil where nobody else is known to bring them.
  private static func way(
    of bringer: CommittedRuns.Bringer, to session: PeerSession, _ own: DeviceMark
  ) -> LeftRuns.Way? {
    guard !bringer.isCopied, let neighbours = session.sparing?.neighbours else { return nil }
    let isDirect =
      neighbours.contains(bringer.device)
      || !bringer.authors.isEmpty && bringer.authors.isSubset(of: neighbours)
    if isDirect { return .direct }
    return bringer.linked.nearest(to: DeviceMark(session.device), than: own).map { .by($0, from: bringer.device) }
  }

  private static func relayDue(_ committed: CommittedRuns, _ session: PeerSession, _ step: Step) -> MonotonicTime {
    let soon = step.now.advanced(byMilliseconds: step.configuration.relayMilliseconds)
    guard session.sparing != nil, let end = meetingEnd(committed, step) else { return soon }
    return max(soon, end)
  }

  /// Until then the peer is likely to link with who has come and brings much. Nil where that is over: what goes on to come
  /// from him would be put off each time anything came, as long as he brings something.
  private static func meetingEnd(_ committed: CommittedRuns, _ step: Step) -> MonotonicTime? {
    guard let since = committed.bringer?.aheadSince else { return nil }
    let end = since.advanced(byMilliseconds: step.configuration.meetingMilliseconds)
    return end > step.now ? end : nil
  }

  /// Own runs are announced by sending them, where a stream is open. What another brought is announced later: to him, and
  /// to those who get it from him, from this node or from somebody whom it knows. Who can get it by asking alone hears at
  /// once; but of what somebody brings who has just come, only when the peer has had time to link with him as well.
  private static func announcement(
    _ committed: CommittedRuns, _ session: PeerSession, isOpen: Bool, _ step: Step
  ) -> Announcement {
    guard committed.source != nil else { return isOpen ? .none : .now }
    guard session.sparing != nil, let bringer = committed.bringer else { return .now }
    let isSource = session.id == committed.source
    guard isSource || isOpen || session.isLinked(with: bringer.device) else {
      guard bringer.aheadSince != nil else { return .now }
      let due = relayDue(committed, session, step)
      // Of what he brings beyond the meeting as much at once as would be passed on at once.
      return meetingEnd(committed, step) == nil ? .gathered(until: due) : .heldBack(until: due)
    }
    let wait = step.configuration.gatherMilliseconds * (isSource ? 1 : 2)
    return .gathered(until: step.now.advanced(byMilliseconds: wait))
  }
}

extension PeerSession {
  /// Durable now: told to the peer, and sent to it where it lacks them.
  mutating func push(_ committed: CommittedRuns, _ ledger: Ledger, _ step: inout Step) {
    let partition = committed.partition
    guard live != nil, isInScope(partition, committed.name, ledger) else { return }
    let (isCompared, hadStream) = (isCompared(withChangesOf: partition), hasStream(partition))
    // Also where it is told only at the comparison's end: what the peer says or sends until then finds the stream as it
    // was before the change, not one on which the peer has it already.
    if live?.level.contains(partition, committed.name) == true {
      openIfLevel(partition, known: committed.before, ledger, step.now)
    }
    guard isCompared else {
      live?.comparison.note(committed)
      return
    }
    let push = PushPolicy.push(committed, to: self, ledger.mark, step)
    announce(committed, push.announcement, &step)
    for left in push.left {
      let isAll = leave(left, of: partition, ledger)
      if left.way != .direct { live?.passedOn.insert(partition) }
      if !isAll, let due = push.elseAt { live?.relays.begin(partition, at: due) }
    }
    switch push.runs {
    case .none: break
    case .now: send(committed.runs[...], partition, ledger, &step)
    case .fromLog: pump(partition, ledger, &step)
    case .relayed(let due): live?.relays.begin(partition, at: due)
    case .postponed(let due): live?.relays.postpone(partition, until: due)
    }
    noteWaiting(committed)
    // When these runs were judged there was no stream to show them on.
    if !hadStream { showApart(partition, ledger, &step) }
  }

  /// Answers whether that is all of the runs.
  private mutating func leave(_ left: PushPolicy.Push.Left, of partition: PartitionID, _ ledger: Ledger) -> Bool {
    ledger.partitions.look(at: partition) { state in
      live?.streams[partition]?.leaveToOthers(left.runs, by: left.way, state.log) ?? true
    } ?? true
  }

  private mutating func noteWaiting(_ committed: CommittedRuns) {
    let partition = committed.partition
    guard let bringer = committed.bringer?.markIfAlone, live?.relays[partition] != nil else { return }
    for run in lacked(of: committed.runs, in: partition) { live?.relays.note(run, of: partition, from: bringer) }
  }

  /// What the peer neither has nor is to get by now; nothing where there is no stream.
  func lacked(of runs: [LoggedRun], in partition: PartitionID) -> [LoggedRun] {
    live?.streams.look(at: partition) { stream in runs.filter { !stream.covers($0.replica, $0.last) } } ?? []
  }

  private mutating func announce(
    _ committed: CommittedRuns, _ announcement: PushPolicy.Announcement, _ step: inout Step
  ) {
    guard !committed.offered.isEmpty else { return }
    let vector = PartitionVector(name: committed.name, vector: committed.offered)
    switch announcement {
    case .none: return
    case .gathered(let due) where gather(vector, of: committed, until: due, isHeldBack: false): return
    case .heldBack(let due) where gather(vector, of: committed, until: due, isHeldBack: true): return
    case .gathered, .heldBack, .now: send(vector, &step) { .have($0) }
    }
  }

  private mutating func gather(
    _ vector: PartitionVector, of committed: CommittedRuns, until due: MonotonicTime, isHeldBack: Bool
  ) -> Bool {
    sparing?.gather(
      committed.partition, vector, until: due, isHeldBack: isHeldBack, runs: committed.runs,
      from: committed.bringer?.markIfAlone) == true
  }

  /// No comparison is under way, or still to come, that does not know of what was just committed.
  func isCompared(withChangesOf partition: PartitionID) -> Bool {
    guard live?.comparison.hasBegun == true else { return false }
    return live?.comparison.isUnderWay == false || hasStream(partition)
  }

  /// Between equal summaries and the first change the stream needs no entry: it begins with the vector of then.
  mutating func openIfLevel(
    _ partition: PartitionID, known: VersionVector, _ ledger: Ledger, _ now: MonotonicTime
  ) {
    guard !hasStream(partition) else { return }
    live?.streams[partition] = ledger.partitions.look(at: partition) { .level($0, known: known, now) }
  }

  /// Passes on what has waited for that long enough.
  mutating func relay(_ ledger: Ledger, _ step: inout Step) {
    for partition in live?.relays.due(step.now) ?? [] {
      live?.relays.end(partition)
      pump(partition, ledger, &step)
    }
  }
}
