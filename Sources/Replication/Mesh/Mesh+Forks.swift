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
        sessions[id]?.searchFork(partition, replica, ledger, &step)
      }
    }
  }

  /// News for everyone who follows the partition.
  mutating func spreadFork(_ replica: ReplicaID, _ partition: PartitionID, _ step: inout Step) {
    for id in sessions.keys.sorted() { sessions[id]?.showNews(of: replica, partition, ledger, &step) }
  }

  mutating func spreadHeld(_ replicas: Set<ReplicaID>, _ partition: PartitionID, _ step: inout Step) {
    for replica in replicas.sorted() where ledger.partitions[partition]?.log.heldAbove[replica] != nil {
      spreadFork(replica, partition, &step)
    }
  }

  mutating func askForHandedOverEarly(_ step: inout Step) {
    for id in sessions.keys.sorted() { sessions[id]?.askForHandedOverEarly(ledger, &step) }
  }

  mutating func chainLoaded(
    _ partition: PartitionID, _ replica: ReplicaID, _ runs: [RunSummary], _ purpose: ChainPurpose, _ step: inout Step
  ) {
    switch purpose {
    case .unfold(let request): unfold(partition, request, runs, &step)
    case .probe(let id, let wantsReply):
      sessions[id]?.sendProbe(partition, replica, runs, wantsReply: wantsReply, ledger, &step)
    case .answer(let id, let probe): sessions[id]?.answer(probe, partition, runs, ledger, &step)
    case .wholeAnswer(let id, let probe): sessions[id]?.answerWhole(probe, partition, runs, ledger, &step)
    case .handOver(let id, let probe): sessions[id]?.continueHandOver(probe, partition, replica, runs, ledger, &step)
    }
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
      || sessions[batch.session]?.live?.streams[partition]?.forks.heldBack.isEmpty == false
  }

  mutating func postpone(_ run: DeliveredRun, _ batch: ParkedRuns, _ partition: PartitionID) {
    let waiting = ParkedRuns(session: batch.session, runs: [.resolved(run)], stream: nil)
    guard let session = sessions[batch.session],
      postponedByteCount(of: session.device) + waiting.byteCount <= Mesh.postponedByteLimit,
      ledger.partitions[partition]?.waiting.postpone(waiting) == true
    else { return }
    sessions[batch.session]?.live?.postponedByteCount += waiting.byteCount
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
      sessions[run.session]?.live?.postponedByteCount -= run.byteCount
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

  /// New statements may move what counts of every chain, unless their reach is known.
  mutating func reconsiderAcceptance(_ reach: StatementReach?, _ step: inout Step) {
    var isMoved = false
    for partition in ledger.partitions.keys.sorted() {
      if let reach, ledger.takeOver(reach, in: partition) { continue }
      adoptAuthority(partition, &step)
      isMoved = true
    }
    if isMoved { ledger.countTakes() }
  }

  private mutating func adoptAuthority(_ partition: PartitionID, _ step: inout Step) {
    switch ledger.adoptAuthority(in: partition) {
    case .done(let change):
      if change != LogChange() { step.emit(.rebuild(partition, change)) }
      for id in sessions.keys.sorted() { sessions[id]?.offerHeldWork(partition, ledger, &step) }
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
  /// What memory has of the chain did not tell what the peer lacks.
  case wholeAnswer(SessionID, ChainProbe)
  /// Of a partition that its author may not carry any more; `peer`: what the other side said, if it has.
  case handOver(SessionID, peer: ChainProbe?)

  /// Of a chain of which memory has what lies above its trunk some runs below that are enough, ever wider apart: all of them
  /// would be read on every session.
  package var needsFewBelowTrunk: Bool {
    switch self {
    case .probe, .answer: true
    case .unfold, .wholeAnswer, .handOver: false
    }
  }
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
