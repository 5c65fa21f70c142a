// What waits to be judged: evidence that came ahead of what it had seen, and what needs headers that memory does not hold.
extension Mesh {
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

  // MARK: Evidence that came ahead

  /// Else it waits for what leads to it.
  mutating func keepsCausal(_ run: DeliveredRun, _ batch: ParkedRuns, _ partition: PartitionID) -> Bool {
    if ledger.isCausal(run, partition) { return true }
    postpone(run, batch, partition)
    return false
  }

  /// Where a fork is being looked at, what leads to a run may be on its way as evidence, or wait here itself.
  func mayComeAhead(_ batch: ParkedRuns, _ partition: PartitionID) -> Bool {
    batch.isForkEvidence || ledger.postpones(partition)
      || sessions[batch.session]?.live?.streams[partition]?.forks.isSearching == true
  }

  mutating func postpone(_ run: DeliveredRun, _ batch: ParkedRuns, _ partition: PartitionID) {
    guard let state = ledger.partitions[partition] else { return }
    let byteCount = ParkedRuns(session: batch.session, runs: [.resolved(run)], stream: nil).byteCount
    let lacked = state.log.lacked(by: run) ?? .change(of: run.incoming.replica)
    guard sessions.mayPostpone(byteCount, on: batch.session),
      ledger.partitions[partition]?.waiting.ahead.add(run, of: batch.session, lacking: lacked) == true
    else { return }
    sessions[batch.session]?.live?.postponedByteCount += byteCount
  }

  /// What came ahead and now waits for nothing; it may have to wait for headers, as whatever comes of its partition.
  mutating func takeReleased(_ partition: PartitionID) -> ParkedRuns? {
    guard ledger.postpones(partition) else { return nil }
    while let run = ledger.partitions[partition]?.waiting.ahead.takeReleased() {
      sessions[run.session]?.live?.postponedByteCount -= run.byteCount
      guard ledger.partitions[partition]?.waiting.awaitsHeaders == true else { return run }
      ledger.partitions[partition]?.waiting.append(run)
    }
    return nil
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
    guard ledger.partitions.holds(partition) else { return }
    do {
      try ledger.partitions[partition]?.log.unfold(request, runs: runs)
    } catch {
      // Asked again, the disk would answer the same: all else goes on without them.
      ledger.leaveTrunk(of: request.replica, in: partition)
      step.emit(.damaged(partition, request.replica))
    }
    ledger.partitions[partition]?.waiting.noteHeaders(of: request.replica)
    if ledger.partitions[partition]?.waiting.isAuthorityDue == true { adoptAuthority(partition, &step) }
    while let batch = ledger.partitions[partition]?.waiting.next() { process(batch, partition, &step) }
    guard let waiting = ledger.partitions[partition]?.waiting, waiting.unfoldedCount > 0 else { return }
    unfolded.insert(partition)
    if max(waiting.unfoldedCount, unfolded.count) > Mesh.unfoldedLimit { foldUnfolded() }
  }

  /// What was judged may have been here, or taken nowhere: memory would keep the chains in parts for it. Not with each message, since
  /// the next may be about the same chain.
  mutating func foldUnfolded() {
    for partition in unfolded {
      for replica in ledger.partitions[partition]?.waiting.takeUnfolded() ?? [] {
        ledger.partitions[partition]?.log.fold(replica)
      }
    }
    unfolded = unfolded.filter { (ledger.partitions[$0]?.waiting.unfoldedCount ?? 0) > 0 }
  }

  /// So many chains of a partition, and so many partitions with any, stay taken apart until the next tick.
  static let unfoldedLimit = 16

  mutating func adoptAuthority(_ partition: PartitionID, _ step: inout Step) {
    switch ledger.adoptAuthority(in: partition) {
    case .done(let change):
      // Less may be asked of a chain now, and more be wanting.
      ledger.partitions[partition]?.waiting.ahead.releaseAll()
      if change != LogChange() { step.emit(.rebuild(partition, change)) }
      sessions.offerHeldWork(partition, ledger, &step)
      sessions.showHeldUnderWay(Set(change.acceptance.map(\.replica)), partition, ledger, &step)
    case .needsHeaders(let requests):
      ledger.partitions[partition]?.waiting.awaitAuthority(requests.count)
      load(requests, partition, &step)
    case .ignored, nil: break
    }
  }
}
