// Two histories of one replica: seen by tips, searched by probes, shown by signed runs (rules C5, C6, C20).
extension Mesh {
  /// Equal numbers with different tips are two histories; more of this node's own chain than it holds may be a lost past.
  mutating func checkPeerVector(
    _ id: SessionID, _ partition: PartitionID, _ item: PartitionVector, _ step: inout Step
  ) {
    let log = ledger.partitions[partition]?.log
    for (replica, position) in item.vector.sorted {
      let mine = log?.received[replica]
      if replica == step.surroundings.ownReplica { judgeClaim(id, partition, position, own: mine, &step) }
      guard let log else { continue }
      let standing = log.standing(of: position, of: replica) { _, _ in position.tip }
      let judgement = log.judge(position, of: replica) { _, _ in position.tip }
      if judgement == .differs || judgement == .known && standing < position.sequence {
        searchFork(id, partition, replica, &step)
      }
    }
  }

  /// Both sides show what they hold above the last common position. Once, until something new is known of the chain.
  mutating func searchFork(_ id: SessionID, _ partition: PartitionID, _ replica: ReplicaID, _ step: inout Step) {
    guard let session = sessions[id], !sparesBranches(of: replica, session),
      sessions[id]?.streams[partition]?.forks.begin(replica) == true
    else { return }
    tellSearch(id, partition, replica, &step)
  }

  func tellSearch(_ id: SessionID, _ partition: PartitionID, _ replica: ReplicaID, _ step: inout Step) {
    if ledger.partitions[partition]?.log.heldAbove[replica] == nil { step.emit(.note(id, .forkSeen(replica))) }
    step.emit(.loadChain(partition, replica, from: 1, .probe(id, wantsReply: true)))
  }

  /// Forks go before the runs that are judged under them. Where summaries differ, and perhaps only in what is known of
  /// forks, whatever was shown before is shown `anew`.
  mutating func showForks(_ id: SessionID, _ partition: PartitionID, anew: Bool, _ step: inout Step) {
    let forked = ledger.partitions[partition]?.log.shownApart ?? []
    let start = forked.count > Mesh.searchLimit ? (sessions[id]?.nextSearch ?? 0) % forked.count : 0
    if forked.count > Mesh.searchLimit { sessions[id]?.nextSearch = start + Mesh.searchLimit }
    for replica in (forked[start...] + forked[..<start]).prefix(Mesh.searchLimit) {
      if anew {
        sessions[id]?.streams[partition]?.forks.forget(replica)
      }
      searchFork(id, partition, replica, &step)
    }
  }

  /// News for everyone who follows the partition.
  mutating func spreadFork(_ replica: ReplicaID, _ partition: PartitionID, _ step: inout Step) {
    for id in sessions.keys.sorted() where sessions[id]?.phase == .live {
      sessions[id]?.streams[partition]?.forks.noteNews(of: replica)
      searchFork(id, partition, replica, &step)
    }
  }

  /// The peer has, or gets with what is on its way, all that is known of the chain here.
  private mutating func settleFork(
    _ id: SessionID, _ partition: PartitionID, _ replica: ReplicaID, _ step: inout Step
  ) {
    sessions[id]?.streams[partition]?.forks.settle(replica)
    // Nothing of a chain that is held from its first change on is announced.
    if let position = ledger.partitions[partition]?.log.clipped[replica] {
      sessions[id]?.streams[partition]?.outgoing.sent[replica] = position
    }
    pump(id, partition, &step)
  }

  mutating func receiveProbe(_ id: SessionID, _ probe: ChainProbe, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let partition = ledger.id(of: probe.name)
    guard !receiveHandOver(session, probe, partition, &step) else { return }
    // Also where nothing of the partition is here: the peer keeps the chain back until it knows.
    guard isInScope(session, partition, probe.name),
      var stream = session.streams[partition] ?? newStream(session, partition, probe.name, step.now),
      stream.forks.takes(probe)
    else { return }
    sessions[id]?.streams[partition] = stream
    step.emit(.loadChain(partition, probe.replica, from: 1, .answer(id, probe)))
  }

  mutating func chainLoaded(
    _ partition: PartitionID, _ replica: ReplicaID, _ runs: [RunSummary], _ purpose: ChainPurpose, _ step: inout Step
  ) {
    switch purpose {
    case .unfold(let request): unfold(partition, request, runs, &step)
    case .probe(let id, let wantsReply): sendProbe(id, partition, replica, runs, wantsReply: wantsReply, &step)
    case .answer(let id, let probe): answer(id, partition, probe, runs, &step)
    case .handOver(let id, let probe): continueHandOver(id, partition, replica, runs, probe, &step)
    }
  }

  private func sendProbe(
    _ id: SessionID, _ partition: PartitionID, _ replica: ReplicaID, _ runs: [RunSummary], wantsReply: Bool,
    _ step: inout Step
  ) {
    guard let session = sessions[id], let name = ledger.partitions[partition]?.name ?? session.streams[partition]?.name,
      isInScope(session, partition, name)
    else { return }
    let probe = ChainProbe(
      name: name, replica: replica, positions: Mesh.probePositions(of: runs), wantsReply: wantsReply)
    step.emit(.send(id, .chainProbe(probe)))
  }

  /// Ends of runs: the last sixteen, then ever wider apart, ascending.
  static func probePositions(of runs: [RunSummary]) -> [ChainPosition] {
    var positions: [ChainPosition] = []
    var (index, stride) = (runs.count - 1, 1)
    while index >= 0, positions.count < ChainProbe.positionLimit {
      if let tip = runs[index].hashes.last?.tip {
        positions.append(ChainPosition(sequence: runs[index].last, tip: tip))
      }
      if positions.count >= 16 { stride *= 2 }
      index -= stride
    }
    return positions.reversed()
  }

  private mutating func answer(
    _ id: SessionID, _ partition: PartitionID, _ probe: ChainProbe, _ runs: [RunSummary], _ step: inout Step
  ) {
    guard let session = sessions[id], isInScope(session, partition, probe.name) else { return }
    if probe.wantsReply { sendProbe(id, partition, probe.replica, runs, wantsReply: false, &step) }
    if !keepsBranches(of: probe.replica, from: session), let first = Mesh.firstLacking(of: runs, probe.positions) {
      step.emit(.loadEvidence(id, partition, probe.replica, above: first - 1))
    } else {
      settleFork(id, partition, probe.replica, &step)
    }
  }

  /// Where the first run begins that lies below none of the positions that the peer holds. Nil: the peer holds them all.
  static func firstLacking(of runs: [RunSummary], _ held: [ChainPosition]) -> UInt64? {
    let held = Set(held)
    // What a held run follows is held, too.
    var leading: Set<Digest> = []
    var first: UInt64?
    for run in runs.reversed() {
      let isHeld =
        run.hashes.last.map(leading.contains) == true
        || run.hashes.enumerated().contains { index, hash in
          held.contains(ChainPosition(sequence: run.first + UInt64(index), tip: hash.tip))
        }
      if isHeld { leading.insert(run.hashBefore) } else { first = run.first }
    }
    return first
  }

  mutating func evidenceLoaded(
    _ id: SessionID, _ partition: PartitionID, _ runs: [LoggedRun], _ step: inout Step
  ) {
    guard let state = ledger.partitions[partition], let session = sessions[id], let replica = runs.first?.replica,
      mayShow(session, replica, state)
    else { return }
    let name = state.name
    for run in runs {
      // Large payloads travel ahead of their run here, too.
      for piece in run.apart?.pieces(from: 0, of: name, on: PayloadPiece.evidence) ?? [] {
        step.emit(.send(id, .payloadPiece(piece)))
      }
      let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
      step.emit(.send(id, .runs(RunBatch(name: name, stream: 0, entries: [entry], isForkEvidence: true))))
    }
    settleFork(id, partition, replica, &step)
  }

  // MARK: Evidence that came ahead of what it had seen

  /// Stored only when its context and what it follows are here: whatever counts was delivered causally.
  mutating func isCausal(_ run: DeliveredRun, _ batch: ParkedRuns, _ partition: PartitionID) -> Bool {
    let incoming = run.incoming
    if let log = ledger.partitions[partition]?.log, log.holds(run.context),
      log.holds(before: incoming.first, incoming.hashBefore, of: incoming.replica)
    {
      return true
    }
    postpone(run, batch, partition)
    return false
  }

  /// Where a fork is being looked at, what leads to a run may be on its way as evidence, or wait here itself.
  func mayComeAhead(_ batch: ParkedRuns, _ partition: PartitionID) -> Bool {
    batch.isForkEvidence || ledger.partitions[partition]?.waiting.postponed.isEmpty == false
      || sessions[batch.session]?.streams[partition]?.forks.heldBack.isEmpty == false
  }

  mutating func postpone(_ run: DeliveredRun, _ batch: ParkedRuns, _ partition: PartitionID) {
    let waiting = ParkedRuns(session: batch.session, runs: [.resolved(run)], stream: nil)
    guard let session = sessions[batch.session],
      postponedByteCount(of: session.device) + waiting.byteCount <= Mesh.postponedByteLimit,
      ledger.partitions[partition]?.waiting.postpone(waiting) == true
    else { return }
    sessions[batch.session]?.postponedByteCount += waiting.byteCount
  }

  mutating func dropPostponed(of id: SessionID) {
    for partition in ledger.partitions.filter({ !$0.value.waiting.postponed.isEmpty }).map(\.key) {
      ledger.partitions[partition]?.waiting.dropPostponed(of: id)
      ledger.dropNothing(partition)
    }
  }

  mutating func takePostponed(_ partition: PartitionID, _ step: inout Step) {
    guard ledger.partitions[partition]?.waiting.postponed.isEmpty == false else { return }
    for run in ledger.partitions[partition]?.waiting.takePostponed() ?? [] {
      sessions[run.session]?.postponedByteCount -= run.byteCount
      if ledger.partitions[partition]?.waiting.awaitsHeaders == false {
        process(run, partition, &step)
      } else {
        ledger.partitions[partition]?.waiting.append(run)
      }
    }
  }

  // MARK: Headers that memory does not hold

  /// Parks what cannot be judged until the chain's stored headers are here. Everything later of this partition waits.
  mutating func park(
    _ batch: ParkedRuns, _ partition: PartitionID, until requests: [HeaderRequest], _ step: inout Step
  ) {
    ledger.partitions[partition]?.waiting.putBack(batch, until: requests.count)
    load(requests, partition, &step)
  }

  private func load(_ requests: [HeaderRequest], _ partition: PartitionID, _ step: inout Step) {
    for request in requests {
      step.emit(.loadChain(partition, request.replica, from: request.sequences.lowerBound, .unfold(request)))
    }
  }

  private mutating func unfold(
    _ partition: PartitionID, _ request: HeaderRequest, _ runs: [RunSummary], _ step: inout Step
  ) {
    guard ledger.partitions[partition] != nil else { return }
    do {
      try ledger.partitions[partition]?.log.unfold(request, runs: runs)
    } catch {
      ledger.partitions[partition]?.waiting.giveUp()
      step.emit(.damaged(partition, request.replica))
    }
    ledger.partitions[partition]?.waiting.noteHeaders()
    if ledger.partitions[partition]?.waiting.isAuthorityDue == true { adoptAuthority(partition, &step) }
    while let batch = ledger.partitions[partition]?.waiting.next() { process(batch, partition, &step) }
  }

  /// New statements may move what counts of every chain.
  mutating func reconsiderAcceptance(_ step: inout Step) {
    for partition in ledger.partitions.keys.sorted() { adoptAuthority(partition, &step) }
    ledger.countTakes()
  }

  private mutating func adoptAuthority(_ partition: PartitionID, _ step: inout Step) {
    switch ledger.adoptAuthority(in: partition) {
    case .done(let change):
      if change != LogChange() { step.emit(.rebuild(partition, change)) }
      for id in sessions.keys.sorted() { offerHeldWork(id, partition, &step) }
    case .needsHeaders(let requests):
      ledger.partitions[partition]?.waiting.awaitAuthority(requests.count)
      load(requests, partition, &step)
    case .ignored, nil: break
    }
  }
}

/// Why a chain's stored headers are read.
package enum ChainPurpose: Sendable {
  case unfold(HeaderRequest)
  case probe(SessionID, wantsReply: Bool)
  case answer(SessionID, ChainProbe)
  /// Of a partition that its author may not carry any more; `peer`: what the other side said, if it has.
  case handOver(SessionID, peer: ChainProbe?)
}

/// Runs of one message that wait to be judged. The context of each is put together when its turn comes: all at once would
/// take the memory of as many vectors as there are runs.
struct ParkedRuns: Sendable {
  enum Waiting: Sendable {
    case arrived(IncomingRun)
    case resolved(DeliveredRun)

    var byteCount: Int {
      switch self {
      case .arrived(let run): run.encoded.count
      case .resolved(let run): run.incoming.encoded.count + run.context.count * RunBatch.contextEntryBytes
      }
    }
  }

  let session: SessionID
  let runs: ArraySlice<Waiting>
  /// The stream on which they came; nil for evidence of a fork, which stands outside.
  let stream: UInt64?

  var isForkEvidence: Bool { stream == nil }
  /// With what a partition takes of which nothing else is here.
  var byteCount: Int { runs.reduce(2_048) { $0 + $1.byteCount } }

  func rest(_ runs: ArraySlice<Waiting>) -> ParkedRuns { ParkedRuns(session: session, runs: runs, stream: stream) }
}
