// Two histories of one replica, as one session searches them: by probes, and shown by signed runs (rules C5, C6, C20).
extension PeerSession {
  /// Both sides show what they hold above the last common position. Once, until something new is known of the chain.
  /// Answers whether it was begun.
  @discardableResult
  mutating func searchFork(
    _ partition: PartitionID, _ replica: ReplicaID, _ ledger: Ledger, _ step: inout Step
  ) -> Bool {
    guard !sparesBranches(of: replica, ledger), live?.streams[partition]?.forks.begin(replica) == true else {
      return false
    }
    tellSearch(partition, replica, ledger, &step)
    return true
  }

  /// The peer has another branch than this side and takes no more. Who would take the peer's is shown that.
  mutating func pass(
    _ replica: ReplicaID, _ stream: inout PeerStream, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step
  ) {
    stream.outgoing.pass(replica)
    live?.passedIn.insert(partition)
    if !sparesBranches(of: replica, ledger), stream.forks.begin(replica) {
      tellSearch(partition, replica, ledger, &step)
    }
  }

  func tellSearch(_ partition: PartitionID, _ replica: ReplicaID, _ ledger: Ledger, _ step: inout Step) {
    if ledger.partitions[partition]?.log.heldAbove[replica] == nil { step.emit(.note(id, .forkSeen(replica))) }
    step.emit(.loadChain(partition, replica, from: 1, .probe(id, wantsReply: true)))
  }

  /// Forks go before the runs that are judged under them. Where summaries differ, and perhaps only in what is known of
  /// forks, whatever was shown before is shown `anew`.
  mutating func showForks(_ partition: PartitionID, anew: Bool, _ ledger: Ledger, _ step: inout Step) {
    let chains = live?.takeSearches(of: ledger.partitions[partition]?.log.shownApart ?? []) ?? []
    guard !anew else { return searchAnew(partition, chains, ledger, &step) }
    for replica in chains { searchFork(partition, replica, ledger, &step) }
  }

  /// Where a comparison finds the partition to differ: what the peer was asked before and has not answered is asked anew.
  mutating func askAnew(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    let chains = live?.streams[partition]?.forks.unanswered.prefix(LiveSession.searchLimit) ?? []
    searchAnew(partition, Array(chains), ledger, &step)
  }

  /// Whatever was shown of them before. Where the peer takes no branches, what was held back for a search goes out.
  private mutating func searchAnew(
    _ partition: PartitionID, _ replicas: [ReplicaID], _ ledger: Ledger, _ step: inout Step
  ) {
    var isAnyLeft = false
    for replica in replicas {
      live?.streams[partition]?.forks.forget(replica)
      if !searchFork(partition, replica, ledger, &step) { isAnyLeft = true }
    }
    if isAnyLeft { pump(partition, ledger, &step) }
  }

  /// What is held above its limit, where the partition differs and perhaps only in this.
  mutating func showHeld(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard let state = ledger.partitions[partition], isInScope(state, ledger) else { return }
    let chains = state.log.heldAbove.sorted.map(\.replica)
    guard !chains.isEmpty else { return }
    let opened = stream(partition, state.name, ledger, step.now)
    live?.streams[partition] = opened
    searchAnew(partition, chains, ledger, &step)
  }

  /// The peer takes branches again of who wrote these chains: what it was shown before it may not have taken. Once, with its next
  /// pull.
  mutating func doubtFreed(_ partition: PartitionID, _ ledger: Ledger) {
    guard !spared.freed.isEmpty, live?.doubtedIn.insert(partition).inserted == true else { return }
    for replica in ledger.partitions[partition]?.log.shownApart ?? [] {
      guard let author = ledger.authority.author(of: replica), spared.freed.contains(author),
        live?.streams[partition]?.forks.isSearched(replica) == false
      else { continue }
      live?.streams[partition]?.forks.forget(replica)
    }
  }

  /// What no stream brings of a partition that changed, where that found no stream on this session. Nothing is said of it
  /// before the peer is live for certain.
  mutating func showApart(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard live?.handOvers.mayOffer == true, let state = ledger.partitions[partition], !state.log.shownApart.isEmpty
    else { return }
    if live?.streams[partition] == nil { live?.streams[partition] = PeerStream(state.name, now: step.now) }
    showForks(partition, anew: false, ledger, &step)
  }

  mutating func showNews(of replica: ReplicaID, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    live?.streams[partition]?.forks.noteNews(of: replica)
    live?.streams[partition]?.outgoing.passNoMore([replica])
    if !sparesBranches(of: replica, ledger) {
      live?.streams[partition]?.noteBranches(of: replica, ledger.partitions[partition]?.log)
    }
    searchFork(partition, replica, ledger, &step)
  }

  /// Statements made this held, and the peer has not said that it holds it: no stream brings it any more.
  mutating func showHeldUnderWay(
    _ position: ChainPosition, of replica: ReplicaID, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step
  ) {
    guard let stream = live?.streams[partition], stream.known.sequence(of: replica) < position.sequence else { return }
    showNews(of: replica, partition, ledger, &step)
  }

  mutating func receive(_ probe: ChainProbe, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard !takesHandOver(probe, partition, ledger, &step) else { return }
    // Also where nothing of the partition is here: the peer keeps the chain back until it knows.
    guard isInScope(partition, probe.name, ledger), var stream = stream(partition, probe.name, ledger, step.now),
      stream.forks.takes(probe)
    else { return }
    live?.streams[partition] = stream
    step.emit(.loadChain(partition, probe.replica, from: 1, .answer(id, probe)))
  }

  func sendProbe(
    _ partition: PartitionID, _ replica: ReplicaID, _ runs: [RunSummary], wantsReply: Bool, _ ledger: Ledger,
    _ step: inout Step
  ) {
    guard let name = ledger.partitions[partition]?.name ?? live?.streams[partition]?.name,
      isInScope(partition, name, ledger)
    else { return }
    let above = ledger.partitions[partition]?.log.probed(replica, limit: ChainProbe.unfoldedLimit) ?? []
    let probe = ChainProbe(name: name, replica: replica, above: above, runs: runs, wantsReply: wantsReply)
    step.emit(.send(id, .chainProbe(probe)))
  }

  mutating func answer(
    _ probe: ChainProbe, _ partition: PartitionID, _ runs: [RunSummary], _ ledger: Ledger, _ step: inout Step
  ) {
    guard isInScope(partition, probe.name, ledger) else { return }
    if probe.wantsReply { sendProbe(partition, probe.replica, runs, wantsReply: false, ledger, &step) }
    guard let log = ledger.partitions[partition]?.log, log.isUnfolded(probe.replica) else {
      return showLacking(probe, partition, probe.firstLacking(ofOneBranch: runs), ledger, &step)
    }
    guard !log.isNamed(probe.replica, by: probe.positions) else {
      return showLacking(probe, partition, nil, ledger, &step)
    }
    guard let holding = log.holding(of: probe.replica, by: probe.positions) else {
      // They part where memory has nothing any more.
      return step.emit(.loadChain(partition, probe.replica, from: 1, .wholeAnswer(id, probe)))
    }
    showLacking(probe, partition, log.firstLacking(of: probe.replica, to: holding), ledger, &step)
  }

  /// What of a chain the peer lacks, as the whole of it tells.
  mutating func answerWhole(
    _ probe: ChainProbe, _ partition: PartitionID, _ runs: [RunSummary], _ ledger: Ledger, _ step: inout Step
  ) {
    guard isInScope(partition, probe.name, ledger) else { return }
    showLacking(probe, partition, probe.firstLacking(of: runs), ledger, &step)
  }

  private mutating func showLacking(
    _ probe: ChainProbe, _ partition: PartitionID, _ first: UInt64?, _ ledger: Ledger, _ step: inout Step
  ) {
    let end = ledger.partitions[partition]?.log.shownEnd(of: probe.replica) ?? 0
    guard let first, first <= end else { return settleFork(partition, probe.replica, ledger, &step) }
    guard !keepsBranches(of: probe.replica, ledger) else {
      return endWithoutShowing(partition, probe.replica, named: probe.positions, ledger, &step)
    }
    // Both sides may have asked: once is enough, and what the peer said since is looked at when all is shown.
    guard live?.streams[partition]?.forks.isShownInParts(probe.replica) != true else {
      return live?.streams[partition]?.forks.noteNews(of: probe.replica) ?? ()
    }
    live?.streams[partition]?.forks.note(probe)
    step.emit(.loadEvidence(id, partition, probe.replica, above: first - 1, isRest: false))
  }

  mutating func show(
    _ evidence: [LoggedRun], hasMore: Bool, of replica: ReplicaID, _ partition: PartitionID, _ ledger: Ledger,
    _ step: inout Step
  ) {
    defer { showRests(&step) }
    guard let state = ledger.partitions[partition], !evidence.isEmpty,
      isInScope(state, ledger) || offers(replica, state.name, ledger)
    else {
      // Nothing could be read, or may be told any more.
      return live?.streams[partition]?.forks.askAgain(replica) ?? ()
    }
    let named = live?.streams[partition]?.forks.named(of: replica) ?? []
    guard !isInScope(state, ledger) || !keepsBranches(of: replica, ledger) else {
      // The peer had asked for branches of the device, and takes no more of them: the work that stood on them has arrived there.
      _ = live?.streams[partition]?.forks.endShowing(of: replica)
      return endWithoutShowing(partition, replica, named: named, ledger, &step)
    }
    let holding = state.log.holding(of: replica, by: named)
    // Whoever asks, and whatever the author's rights were when this was read.
    let end = state.log.shownEnd(of: replica)
    for run in evidence where run.first <= end {
      if let holding, let hash = run.hashAtLast, state.log.isHeld(hash, at: run.last, of: replica, by: holding) {
        continue
      }
      // Large payloads travel ahead of their run here, too.
      for piece in run.apart?.pieces(from: 0, of: state.name, on: PayloadPiece.evidence) ?? [] {
        step.emit(.send(id, .payloadPiece(piece)))
      }
      let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
      step.emit(.send(id, .runs(RunBatch(name: state.name, stream: 0, entries: [entry], isForkEvidence: true))))
    }
    if hasMore, let last = evidence.last?.last, last < end {
      return showRest(EvidenceRest(partition: partition, replica: replica, above: last))
    }
    if live?.streams[partition]?.forks.endShowing(of: replica) == true {
      return searchAnew(partition, [replica], ledger, &step)
    }
    settleFork(partition, replica, ledger, &step)
  }

  /// What a fork put aside may be longer than what may wait for a peer: the rest follows when there is room.
  private mutating func showRest(_ rest: EvidenceRest) {
    live?.streams[rest.partition]?.forks.noteRest(of: rest.replica)
    live?.evidenceRests.append(rest)
  }

  /// One at a time, each when there is room for it.
  mutating func showRests(_ step: inout Step) {
    guard isWritable, live?.isRestAsked == false, live?.evidenceRests.isEmpty == false,
      let rest = live?.evidenceRests.removeFirst()
    else { return }
    live?.isRestAsked = true
    step.emit(.loadEvidence(id, rest.partition, rest.replica, above: rest.above, isRest: true))
  }

  /// The peer has, or gets with what is on its way, all that is known of the chain here.
  private mutating func settleFork(
    _ partition: PartitionID, _ replica: ReplicaID, _ ledger: Ledger, _ step: inout Step
  ) {
    let log = ledger.partitions[partition]?.log
    let position = log?.clipped[replica]
    settle(partition, replica, through: position?.sequence ?? 0, log)
    live?.streams[partition]?.outgoing.passNoMore([replica])
    // Nothing of a chain that is held from its first change on is announced.
    if let log, let position {
      let sent = live?.streams[partition]?.outgoing.sent.sequence(of: replica) ?? 0
      // What went out before a limit was lowered below it went out all the same: what goes behind a payload follows on that. Of a
      // forked chain a number does not say which branch went out.
      if position.sequence > sent || log.forkPoints[replica] != nil {
        live?.streams[partition]?.outgoing.sent[replica] = position
      }
    }
    pump(partition, ledger, &step)
  }

  /// Nothing is kept of a chain that only the peer speaks of.
  private mutating func settle(
    _ partition: PartitionID, _ replica: ReplicaID, through sequence: UInt64, _ log: PartitionLog?
  ) {
    guard log?.received[replica] != nil || live?.streams[partition]?.forks.holdsBack(replica) == true else { return }
    live?.streams[partition]?.forks.settle(replica, through: sequence)
  }

  /// The peer would not take what it lacks of other branches. What goes on from its own goes out on the stream.
  private mutating func endWithoutShowing(
    _ partition: PartitionID, _ replica: ReplicaID, named: [ChainPosition], _ ledger: Ledger, _ step: inout Step
  ) {
    let log = ledger.partitions[partition]?.log
    settle(partition, replica, through: 0, log)
    if let log, live?.streams[partition]?.isOffBranch(replica, named: named, log) == true {
      live?.streams[partition]?.outgoing.pass(replica)
      live?.passedIn.insert(partition)
    } else {
      live?.streams[partition]?.outgoing.passNoMore([replica])
    }
    pump(partition, ledger, &step)
  }
}

/// Evidence that waits for room: what of a chain lies above a sequence.
struct EvidenceRest: Sendable {
  let partition: PartitionID
  let replica: ReplicaID
  let above: UInt64
}

extension ChainProbe {
  /// Of the limit, what memory has of a chain above its trunk; the rest is for what lies below.
  static let unfoldedLimit = positionLimit * 3 / 4

  /// Ends of runs: the last sixteen, then ever wider apart, ascending; of a chain that is forked or held those below what
  /// memory has `above` its trunk.
  init(
    name: PartitionName, replica: ReplicaID, above: [ChainPosition] = [], runs: [RunSummary], wantsReply: Bool
  ) {
    let runs = above.first.map { lowest in runs.filter { $0.last < lowest.sequence } } ?? runs
    let limit = ChainProbe.positionLimit - above.count
    var positions: [ChainPosition] = []
    var (index, stride) = (runs.count - 1, 1)
    while index >= 0, positions.count < limit {
      if let tip = runs[index].hashes.last?.tip {
        positions.append(ChainPosition(sequence: runs[index].last, tip: tip))
      }
      if positions.count >= 16, runs.count > limit { stride *= 2 }
      index -= stride
    }
    self.init(name: name, replica: replica, positions: positions.reversed() + above, wantsReply: wantsReply)
  }

  /// Where the first run begins that lies below none of the positions that the peer holds. Nil: the peer holds them all.
  func firstLacking(of runs: [RunSummary]) -> UInt64? {
    let held = Set(positions)
    // What a held run follows is held, too.
    var leading: Set<Digest> = []
    var first: UInt64?
    for run in runs.reversed() {
      let isHeld = run.hashes.last.map(leading.contains) == true || run.reaches(held)
      if isHeld { leading.insert(run.hashBefore) } else { first = run.first }
    }
    return first
  }

  /// The same of runs that lie on one branch, some of which may be left out: below one that the peer holds he holds all.
  func firstLacking(ofOneBranch runs: [RunSummary]) -> UInt64? {
    let held = Set(positions)
    let end = runs.lastIndex { $0.reaches(held) }.map { $0 + 1 } ?? 0
    return runs[end...].first?.first
  }
}

extension RunSummary {
  /// One of the positions is a change of this run.
  fileprivate func reaches(_ positions: Set<ChainPosition>) -> Bool {
    hashes.enumerated().contains { index, hash in
      positions.contains(ChainPosition(sequence: first + UInt64(index), tip: hash.tip))
    }
  }
}
