/// One partition on one session, both directions. The partition may be known by name alone: it begins with its first run.
struct PeerStream: Sendable {
  let name: PartitionName
  /// What the peer has announced that it holds durably.
  var known: VersionVector
  var outgoing: OutgoingStream
  var incoming: IncomingStream
  var forks = ForkSearch()
  /// What is known is what the peer told last, as it told it.
  private var isKnownAsTold = false
  /// The comparisons in which its vector was told last, and differed last.
  private var toldIn: UInt64?
  private var differedIn: UInt64?

  /// The number of a stream that equal summaries opened. Those that a pull opens have higher ones.
  static let level: UInt64 = 0

  init(
    _ name: PartitionName, known: VersionVector = VersionVector(), number: UInt64? = nil, now: MonotonicTime
  ) {
    (self.name, self.known) = (name, known)
    outgoing = OutgoingStream(number: number)
    incoming = IncomingStream(number: number, now: now)
  }

  /// The peer has it, or it is under way: on this stream, or from somebody else.
  func covers(_ replica: ReplicaID, _ sequence: UInt64) -> Bool {
    hasOrIsSent(replica, sequence) || outgoing.left.covers(replica, sequence)
  }

  private func have(of replica: ReplicaID) -> UInt64 {
    max(known.sequence(of: replica), outgoing.sent.sequence(of: replica), outgoing.left.vector.sequence(of: replica))
  }

  /// How far the peer has it, or is being sent it on this stream.
  func hasOrIsSent(of replica: ReplicaID) -> UInt64 {
    max(known.sequence(of: replica), outgoing.sent.sequence(of: replica))
  }

  private func hasOrIsSent(_ replica: ReplicaID, _ sequence: UInt64) -> Bool {
    outgoing.passed.contains(replica)
      || max(known.sequence(of: replica), outgoing.sent.sequence(of: replica)) >= sequence
  }

  /// Leaves to others what the peer lacks nothing before. Answers whether that is all of the runs.
  mutating func leaveToOthers(_ runs: [LoggedRun], by way: LeftRuns.Way, _ log: PartitionLog) -> Bool {
    runs.reduce(true) { leaveToOthers($1.replica, $1.first, through: $1.last, by: way, log) && $0 }
  }

  /// The same of changes of one chain. Of a forked one a number does not say which branch the peer comes to have.
  @discardableResult
  mutating func leaveToOthers(
    _ replica: ReplicaID, _ first: UInt64, through last: UInt64, by way: LeftRuns.Way = .direct, _ log: PartitionLog
  ) -> Bool {
    if covers(replica, last) { return true }
    guard first == 1 || covers(replica, first - 1), log.forkPoints[replica] == nil, !forks.holdsBack(replica) else {
      return false
    }
    outgoing.left.leave(replica, first, through: last, way)
    return true
  }

  /// The peer lacks something that can go out on this stream now.
  func lacks(_ log: PartitionLog) -> Bool {
    log.clipped.entries.contains { !covers($0.key, $0.value.sequence) && !forks.holdsBack($0.key) }
  }

  /// The peer lacks something beside these chains.
  func lacks(_ log: PartitionLog, beside chains: [BroughtChains.Chain]) -> Bool {
    log.clipped.entries.contains { replica, position in
      guard !forks.holdsBack(replica), !covers(replica, position.sequence) else { return false }
      var end = have(of: replica)
      for chain in chains where chain.replica == replica && chain.first <= end + 1 { end = max(end, chain.last) }
      return end < position.sequence || log.forkPoints[replica] != nil
    }
  }

  /// The peer has something that this node lacks. Of a forked chain it may hold more than the branch chosen here has: that
  /// is searched and shown apart, and no stream brings it.
  func isAhead(of log: PartitionLog?, in isMeant: (ReplicaID) -> Bool = { _ in true }) -> Bool {
    known.entries.contains { isMeant($0.key) && isAhead($0.value, of: $0.key, log) }
  }

  func chainsAhead(of log: PartitionLog?) -> [ReplicaID] {
    known.entries.filter { isAhead($0.value, of: $0.key, log) }.map(\.key)
  }

  func isAhead(_ position: ChainPosition, of replica: ReplicaID, _ log: PartitionLog?) -> Bool {
    position.sequence > (log?.received.sequence(of: replica) ?? 0) && log?.forkPoints[replica] == nil
      && !forks.isSearched(replica) && !incoming.leftOut.contains(replica)
  }

  /// No read is under way, and what went out of the last one has gone. Answers whether chains may go out that it left out.
  mutating func endRead() -> Bool {
    guard !outgoing.isLoading else { return false }
    let isPassedNoMore = outgoing.settlePassed()
    return forks.endRead() || isPassedNoMore
  }

  /// What is not to be read of the log for the peer.
  func have(of log: PartitionLog) -> VersionVector {
    var have = known
    have.join(outgoing.sent)
    have.join(outgoing.left.vector)
    for replica in forks.heldBack { have[replica] = log.clipped[replica] }
    for replica in outgoing.passed { have[replica] = log.clipped[replica] }
    return have
  }

  // MARK: Vectors

  /// What the peer says that it holds. Of a forked chain only what lies on the branch chosen here is what it has of it; chains
  /// that are `spared` are searched by nobody, and go by their number. Answers whether some were passed over, and may go out now.
  @discardableResult mutating func note(
    _ vector: VersionVector, _ log: PartitionLog?, spared: (ReplicaID) -> Bool = { _ in false }
  ) -> Bool {
    isKnownAsTold = false
    let isPassedNoMore = outgoing.passNoMore(outgoing.passed.filter { hasMoved($0, to: vector[$0], log) })
    known.join(vector)
    outgoing.endLeft(known)
    guard let log else { return isPassedNoMore }
    for (replica, entry) in vector.entries where log.forkPoints[replica] != nil && !spared(replica) {
      judge(entry, of: replica, log)
    }
    return isPassedNoMore
  }

  /// To a position that is not off the branch that counts here.
  private func hasMoved(_ replica: ReplicaID, to entry: ChainPosition?, _ log: PartitionLog?) -> Bool {
    guard let entry, entry != known[replica] else { return false }
    return log?.isOnBranch(entry, of: replica) ?? true
  }

  /// The peer has pulled: `known` is what it holds, as far as that is kept of what it has `told`. Chains that are `spared` are
  /// searched by nobody.
  mutating func begin(
    _ number: UInt64, known: VersionVector, told: PartitionVector, base: VersionVector?, _ log: PartitionLog?,
    spared: (ReplicaID) -> Bool
  ) {
    self.known = known
    noteTold(told.vector)
    outgoing.begin(number, naming: told.staged, base: base)
    forks.beginStream()
    guard let log else { return }
    for replica in log.forkPoints.keys.sorted() where !spared(replica) {
      let standing = self.known[replica].map { self.standing(of: $0, of: replica, log) } ?? 0
      // Either what was shown is on its way, or the peer did not take it: a search tells, whose answer comes behind it.
      if standing < forks.settled(replica) ?? 0 { forks.forget(replica) }
      noteBranches(of: replica, log)
    }
  }

  /// A stream that equal summaries opened.
  static func level(_ state: PartitionState, known: VersionVector, _ now: MonotonicTime) -> PeerStream {
    var stream = PeerStream(state.name, known: known, number: level, now: now)
    for replica in state.log.forkPoints.keys { stream.noteBranches(of: replica, state.log) }
    return stream
  }

  /// Another branch of the chain may count here than before: what the peer announced and was sent may lie off it.
  mutating func noteBranches(of replica: ReplicaID, _ log: PartitionLog?) {
    outgoing.passNoMore([replica])
    guard let log, log.forkPoints[replica] != nil, let entry = known[replica] else { return }
    isKnownAsTold = false
    judge(entry, of: replica, log)
  }

  private mutating func judge(_ entry: ChainPosition, of replica: ReplicaID, _ log: PartitionLog) {
    let standing = standing(of: entry, of: replica, log)
    known[replica] = standing > 0 ? ChainPosition(sequence: standing, tip: entry.tip) : nil
    let sent = forks.onItsWay(replica)
    outgoing.sent[replica] = sent > 0 ? ChainPosition(sequence: sent, tip: .zero) : nil
    outgoing.left.forget(replica)
  }

  /// Whether the peer stands on another branch than the one that counts here, as far as it has said.
  ///
  /// - Parameter named: what it has named of the chain, where it was asked.
  func isOffBranch(_ replica: ReplicaID, named: [ChainPosition], _ log: PartitionLog) -> Bool {
    if let received = log.received[replica], named.contains(received) { return false }
    let entries = known[replica].map { [$0] } ?? named
    return entries.contains { entry in
      log.judge(entry, of: replica) { _, _ in entry.tip } != .known
        || standing(of: entry, of: replica, log) < entry.sequence
    }
  }

  private func standing(of entry: ChainPosition, of replica: ReplicaID, _ log: PartitionLog) -> UInt64 {
    log.standing(of: entry, of: replica) { _, _ in entry.tip }
  }

  /// Whoever sends a run from its log has it. Of a forked chain that says how much of the branch that counts here, only where the
  /// run lies on that, or goes on from it: of another run this is not to be called. Answers whether the chain was passed over, and
  /// may go out now.
  mutating func noteHolding(of run: DeliveredRun) -> Bool {
    let replica = run.incoming.replica
    guard let tip = run.incoming.hashes.last?.tip, run.last > known.sequence(of: replica) else { return false }
    known[replica] = ChainPosition(sequence: run.last, tip: tip)
    isKnownAsTold = false
    return outgoing.passNoMore([replica])
  }

  /// What is still to be named of it: on an open stream what the peer neither announced nor is being sent; all of it, where
  /// that did not make the two level since the last comparison. `comparison`: the one that found it to differ.
  func untold(_ log: PartitionLog, in comparison: UInt64?) -> VersionVector {
    if comparison != nil, toldIn == comparison { return VersionVector() }
    let isStuck = comparison.map { now in differedIn.map { $0 + 1 >= now } ?? false } ?? false
    return outgoing.number != nil && !isStuck ? unknown(of: log.clipped, shownApart: Set(log.shownApart)) : log.clipped
  }

  private func unknown(of vector: VersionVector, shownApart: Set<ReplicaID>) -> VersionVector {
    VersionVector(
      vector.entries.filter { replica, position in
        shownApart.contains(replica) || !hasOrIsSent(replica, position.sequence)
          || known[replica].map { $0.sequence == position.sequence && $0.tip != position.tip } ?? false
      })
  }

  mutating func noteDifference(in comparison: UInt64) { differedIn = comparison }

  /// Behind what was noted of it: what the peer told in `vectors` or a pull.
  mutating func noteTold(_ vector: VersionVector) {
    isKnownAsTold = vector.count >= ToldVectors.leastEntries && known == vector
  }

  /// What the first pull may refer to.
  var referable: VersionVector? { isKnownAsTold && toldIn == nil ? known : nil }

  /// The peer's first pull is still to come.
  var isAwaitingPull: Bool { outgoing.number.map { $0 == PeerStream.level } ?? true }

  /// The peer's stream is asked for under this number; the pull tells what is held. `base`: of the first context.
  mutating func pull(
    _ number: UInt64, naming staged: [StagedPayload], base: VersionVector?, in comparison: UInt64, _ now: MonotonicTime
  ) {
    incoming.begin(number, naming: staged, base: base, now)
    toldIn = comparison
  }

  // MARK: Runs

  /// Off the branch that counts here nothing goes out on a stream, and nothing ahead of what it follows and has seen.
  func maySend(_ run: LoggedRun, _ log: PartitionLog) -> Bool { isChosen(run, log) && isCovered(run, log) }

  private func isChosen(_ run: LoggedRun, _ log: PartitionLog) -> Bool {
    guard log.forkPoints[run.replica] != nil else { return true }
    guard let hash = run.hashAtLast else { return false }
    let position = ChainPosition(sequence: run.last, tip: hash.tip)
    return log.judge(position, of: run.replica, stored: { _, _ in hash.tip }) == .known
      && log.standing(of: position, of: run.replica, stored: { _, _ in hash.tip }) == run.last
  }

  /// The peer has, or gets before it, what the run follows and what it has seen.
  func isCovered(_ run: LoggedRun, _ log: PartitionLog) -> Bool {
    (run.first == 1 || covers(run.replica, run.first - 1))
      && run.context.entries.allSatisfy { replica, position in
        covers(replica, position.sequence)
          || !forks.holdsBack(replica) && covers(replica, log.owed(position.sequence, of: replica))
      }
  }

  /// The run follows on what the peer says it has: its tip is our hash there. If not, the histories differ (C5).
  func continues(_ run: LoggedRun) -> Bool {
    guard let known = known[run.replica], known.sequence == run.first - 1 else { return true }
    return known.tip == run.hashBefore.tip
  }

  /// The peer lacks nothing before these runs: they can go out from memory.
  func isFollowed(by runs: [LoggedRun]) -> Bool {
    runs.allSatisfy { run in
      run.first == 1 || covers(run.replica, run.first - 1)
        || runs.contains { $0.replica == run.replica && $0.last == run.first - 1 }
    } && runs.allSatisfy { run in run.context.entries.allSatisfy { covers($0.key, $0.value.sequence) } }
  }
}
