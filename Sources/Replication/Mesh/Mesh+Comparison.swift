// Comparing what two nodes hold: digest, buckets, partitions, and only then vectors, of what differs alone.
extension Mesh {
  // MARK: Sums

  /// The session's sums as they are now.
  mutating func sums(_ id: SessionID) -> ScopeSums {
    let moved = ledger.partitions.settleDigests(cryptography.hash)
    if moved.contains(where: { $0.value != nil && ledger.partitions.name(of: $0.key) == nil }) { scopeChanged() }
    if !moved.isEmpty { for id in sessions.keys { sessions[id]?.comparison.sums?.moved(moved) } }
    guard let session = sessions[id] else { return ScopeSums() }
    let digests = ledger.partitions.digests
    var sums = session.comparison.sums ?? ScopeSums()
    if session.comparison.sums == nil {
      for (partition, digest) in digests { sums.add(partition, term(session, partition, digest)) }
    } else {
      sums.settle(digests) { term(session, $0, $1) }
    }
    sessions[id]?.comparison.sums = sums
    return sums
  }

  private func term(_ session: PeerSession, _ id: PartitionID, _ digest: Digest) -> UInt64 {
    guard isCompared(session, id) else { return 0 }
    return Summary.term(of: id, digest, exporter: session.exporter, cryptography.hash)
  }

  /// Statements or interests moved: what is in common has to be looked at anew.
  mutating func scopeChanged() {
    for id in sessions.keys { sessions[id]?.comparison.sums = nil }
    holdings.scopeMoved()
  }

  // MARK: Asking

  mutating func ask(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], session.phase == .live else { return }
    let number = session.comparison.count + 1
    let total = sums(id).total
    sessions[id]?.comparison.count = number
    sessions[id]?.comparison.isOutdated = false
    sessions[id]?.comparison.enter(.asked(number), step.now)
    sessions[id]?.lastCompared = step.now
    step.emit(.send(id, .summary(Summary(number, .digest(total)))))
  }

  /// The listener asks first; whoever was asked before it was live answers then.
  mutating func beginComparing(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    if let waiting = session.comparison.waiting {
      sessions[id]?.comparison.waiting = nil
      receiveSummary(id, waiting, &step)
    } else if session.isDialer {
      let due = afterAnAnswer(step.now)
      sessions[id]?.nextComparison = due
    } else {
      let due = step.now.advanced(byMilliseconds: configuration.antiEntropyMilliseconds)
      sessions[id]?.nextComparison = due
      ask(id, &step)
    }
  }

  mutating func receiveSummary(_ id: SessionID, _ summary: Summary, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let (stage, number) = (session.comparison.stage, summary.number)
    switch summary.step {
    case .digest where session.phase != .live: sessions[id]?.comparison.waiting = summary
    case .digest(let digest): answer(id, number, digest, &step)
    // What is no answer to what was said last comes late, after a comparison that gave way to another.
    case .equal: if stage == .asked(number) { conclude(id, level: .max, &step) }
    case .buckets(let buckets): if stage == .asked(number) { list(id, number, buckets, &step) }
    case .partitions(let equal, let listings):
      if stage == .toldBuckets(number) { tellDiffering(id, number, equal, listings, &step) }
    case .differing(let prefixes):
      if case .toldPartitions(number, let listed) = stage { takeDiffering(id, listed, Set(prefixes), &step) }
    }
  }

  // MARK: Answering

  private mutating func answer(_ id: SessionID, _ number: UInt64, _ digest: UInt64, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    // Of two that cross, the dialer's goes on.
    if session.isDialer, case .asked = session.comparison.stage { return }
    guard allowsAnswer(session, step.now) else { return }
    let sums = sums(id)
    sessions[id]?.comparison.count += 1
    sessions[id]?.comparison.isOutdated = false
    guard sums.total != digest else {
      step.emit(.send(id, .summary(Summary(number, .equal))))
      sessions[id]?.comparison.enter(.none, step.now)
      return conclude(id, level: .max, &step)
    }
    sessions[id]?.comparison.enter(.toldBuckets(number), step.now)
    step.emit(.send(id, .summary(Summary(number, .buckets(sums.buckets)))))
  }

  /// Of questions that come long before a comparison is due, a few are answered. Whom that leaves waiting has its answer
  /// in the next comparison that this side begins.
  private mutating func allowsAnswer(_ session: PeerSession, _ now: MonotonicTime) -> Bool {
    let isNearlyDue =
      !session.comparison.hasBegun
      || now.millisecondsSince(session.lastCompared) >= configuration.antiEntropyMilliseconds / 2
    guard isNearlyDue || session.earlyComparisons < PeerSession.earlyComparisonLimit else { return false }
    sessions[session.id]?.earlyComparisons = isNearlyDue ? 0 : session.earlyComparisons + 1
    sessions[session.id]?.lastCompared = now
    let due = afterAnAnswer(now)
    sessions[session.id]?.nextComparison = due
    return true
  }

  /// Whoever asked asks again; the other only if that does not come.
  func afterAnAnswer(_ now: MonotonicTime) -> MonotonicTime {
    now.advanced(byMilliseconds: configuration.antiEntropyMilliseconds * 3 / 2)
  }

  // MARK: Buckets

  private mutating func list(_ id: SessionID, _ number: UInt64, _ buckets: [UInt64], _ step: inout Step) {
    let sums = sums(id)
    guard let session = sessions[id] else { return }
    var (equal, listed): (UInt64, UInt64) = (0, 0)
    var (listings, room): ([BucketListing], Int) = ([], Summary.listedLimit)
    for (bucket, pair) in zip(sums.buckets, buckets).enumerated() {
      guard pair.0 != pair.1 else {
        equal |= 1 << UInt64(bucket)
        continue
      }
      let entries = entries(session, in: bucket).map(\.entry)
      guard entries.count <= room else { continue }
      room -= entries.count
      listed |= 1 << UInt64(bucket)
      listings.append(BucketListing(bucket: bucket, entries: entries))
    }
    step.emit(.send(id, .summary(Summary(number, .partitions(equal: equal, listings)))))
    // Compared with what is here now.
    sessions[id]?.comparison.enter(.toldPartitions(number, listed: listed), step.now)
    markLevel(id, buckets: equal)
    if equal | listed != .max { sessions[id]?.mustCompareAgain = true }
    if listed == 0 { conclude(id, level: 0, &step) }
  }

  private func entries(
    _ session: PeerSession, in bucket: Int
  ) -> [(id: PartitionID, entry: BucketListing.Entry)] {
    ledger.partitions.ids(in: bucket).compactMap { partition in
      guard let digest = ledger.partitions.digests[partition], isCompared(session, partition) else { return nil }
      let term = Summary.term(of: partition, digest, exporter: session.exporter, cryptography.hash)
      return (partition, BucketListing.Entry(prefix: Summary.prefix(of: partition), term: term))
    }
  }

  // MARK: Partitions

  private mutating func tellDiffering(
    _ id: SessionID, _ number: UInt64, _ equal: UInt64, _ listings: [BucketListing], _ step: inout Step
  ) {
    _ = sums(id)
    guard let session = sessions[id] else { return }
    var differing: Set<PartitionID> = []
    var told: [UInt64] = []
    var listed: UInt64 = 0
    for listing in listings {
      listed |= 1 << UInt64(listing.bucket)
      let theirs = Set(listing.entries)
      let mine = entries(session, in: listing.bucket)
      for (partition, entry) in mine {
        if theirs.contains(entry) { markLevel(id, partition) } else { differing.insert(partition) }
      }
      told += theirs.subtracting(mine.map(\.entry)).map(\.prefix).sorted()
    }
    // What changed since the buckets were told, in a bucket of which there is no word, is told all the same.
    let changed = session.comparison.changed
    differing.formUnion(changed.keys.filter { (equal | listed) >> bit($0) & 1 == 0 })
    // Those of equal buckets are judged by what stood there when the buckets were told.
    let toConclude = changed.filter { equal >> bit($0.key) & 1 == 1 }
    sessions[id]?.comparison.changed = toConclude
    compareRooms(id, differing, &step)
    // The vectors first: who is behind then asks at once, and need not tell its own beside.
    sendVectors(id, differing, inComparison: true, &step)
    if listed != 0 { step.emit(.send(id, .summary(Summary(number, .differing(told))))) }
    conclude(id, level: equal, &step)
  }

  private func bit(_ id: PartitionID) -> UInt64 { UInt64(Summary.bucket(of: id)) }

  private mutating func takeDiffering(
    _ id: SessionID, _ listed: UInt64, _ prefixes: Set<UInt64>, _ step: inout Step
  ) {
    guard let session = sessions[id] else { return }
    var differing: Set<PartitionID> = []
    for bucket in 0..<Summary.bucketCount where listed >> UInt64(bucket) & 1 == 1 {
      for partition in ledger.partitions.ids(in: bucket) where isInScope(session, partition) {
        guard !prefixes.contains(Summary.prefix(of: partition)) else {
          differing.insert(partition)
          continue
        }
        if ledger.partitions.digests[partition] != nil { markLevel(id, partition) }
      }
    }
    // What changed since it was listed was the same then.
    sessions[id]?.comparison.changed = session.comparison.changed.filter { !differing.contains($0.key) }
    compareRooms(id, differing.subtracting(session.rooms.heard), &step)
    sendVectors(id, differing, inComparison: true, &step)
    conclude(id, level: 0, &step)
  }

  private mutating func markLevel(_ id: SessionID, buckets: UInt64) {
    if sessions[id]?.comparison.isOutdated == false { sessions[id]?.level.mark(buckets: buckets) }
  }

  private mutating func markLevel(_ id: SessionID, _ partition: PartitionID) {
    if sessions[id]?.comparison.isOutdated == false { sessions[id]?.level.mark(partition) }
  }

  // MARK: The end

  /// What was equal, now or earlier, opens streams. What changed since this side's last step goes out.
  private mutating func conclude(_ id: SessionID, level buckets: UInt64, _ step: inout Step) {
    markLevel(id, buckets: buckets)
    guard let session = sessions[id] else { return }
    let changed = session.comparison.changed
    sessions[id]?.comparison.enter(.none, step.now)
    sessions[id]?.rooms.concludeComparison()
    for partition in changed.keys.sorted() {
      guard let state = ledger.partitions[partition], isInScope(session, state) else { continue }
      guard session.level.contains(partition, state.name) else {
        sendVectors(id, [partition], &step)
        continue
      }
      if sessions[id]?.streams[partition] == nil {
        sessions[id]?.streams[partition] = PeerStream(
          state.name, known: changed[partition] ?? VersionVector(), number: PeerStream.level, now: step.now)
      }
      pump(id, partition, &step)
    }
    offerHeldWork(id, &step)
    if session.mustCompareAgain { sessions[id]?.nextComparison = step.now }
    sessions[id]?.mustCompareAgain = false
  }
}
