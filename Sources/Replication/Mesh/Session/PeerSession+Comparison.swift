// Comparing what two nodes hold: digest, buckets, partitions, and only then vectors, of what differs alone. Whoever lends the
// ledger has brought its digests up to date (``Mesh/settleSums()``).
extension PeerSession {
  // MARK: Sums

  /// The sums as they are now.
  mutating func sums(_ ledger: Ledger) -> ScopeSums {
    let digests = ledger.partitions.digests
    guard var sums = live?.comparison.sums else {
      let made = makeSums(ledger)
      live?.comparison.sums = made
      return made
    }
    sums.settle(digests) { term($0, $1, ledger) }
    Invariant.check(
      digests.count > Invariant.few || sums.buckets == makeSums(ledger).buckets,
      "sums are not those of what is in common")
    live?.comparison.sums = sums
    return sums
  }

  private func makeSums(_ ledger: Ledger) -> ScopeSums {
    var sums = ScopeSums()
    for (partition, digest) in ledger.partitions.digests { sums.add(partition, term(partition, digest, ledger)) }
    return sums
  }

  private func term(_ partition: PartitionID, _ digest: Digest, _ ledger: Ledger) -> UInt64 {
    guard isCompared(partition, ledger) else { return 0 }
    return Summary.term(of: partition, digest, exporter: exporter, ledger.cryptography.hash)
  }

  // MARK: Asking

  /// The next is due after so long.
  mutating func compare(nextAfter milliseconds: UInt64, _ ledger: Ledger, _ step: inout Step) {
    live?.comparison.setDue(after: milliseconds, step.now)
    for partition in live?.streams.keys ?? [] { live?.streams[partition]?.forks.beginComparison() }
    boundLeftOut(step)
    let total = sums(ledger).total
    guard let number = live?.comparison.ask(step.now) else { return }
    pulse.noteQuestion()
    step.emit(.send(id, .summary(Summary(number, .digest(total)))))
  }

  /// Whether it answers what was said last, or asks what is answered now. What is neither comes late, after a comparison that
  /// gave way to another.
  mutating func takes(_ summary: Summary, _ step: Step) -> Bool {
    guard let stage = live?.comparison.stage else { return false }
    switch summary.step {
    case .digest:
      // Of two that cross, the dialer's goes on.
      if isDialer, case .asked = stage { return false }
      return live?.comparison.allowsAnswer(step.configuration.antiEntropyMilliseconds, step.now) == true
    case .equal, .buckets: return stage == .asked(summary.number)
    case .partitions: return stage == .toldBuckets(summary.number)
    case .differing: return stage.hasListed(in: summary.number) != nil
    }
  }

  /// Goes on with a summary that was taken.
  mutating func receive(_ summary: Summary, _ ledger: Ledger, _ step: inout Step) {
    let number = summary.number
    switch summary.step {
    case .digest(let digest):
      pulse.hearQuestion()
      answer(number, digest, ledger, &step)
    case .equal: conclude(level: .max, ledger, &step)
    case .buckets(let buckets): list(number, buckets, ledger, &step)
    case .partitions(let equal, let listings): tellDiffering(number, equal, listings, ledger, &step)
    case .differing(let prefixes):
      takeDiffering(live?.comparison.stage.hasListed(in: number) ?? 0, Set(prefixes), ledger, &step)
    }
  }

  // MARK: Answering

  private mutating func answer(_ number: UInt64, _ digest: UInt64, _ ledger: Ledger, _ step: inout Step) {
    boundLeftOut(step)
    let sums = sums(ledger)
    live?.comparison.begin()
    guard sums.total != digest else {
      step.emit(.send(id, .summary(Summary(number, .equal))))
      live?.comparison.enter(.none, step.now)
      return conclude(level: .max, ledger, &step)
    }
    let isEarly = live?.comparison.isAnsweredEarly == true
    for partition in live?.streams.keys ?? [] { live?.streams[partition]?.forks.beginComparison(isEarly: isEarly) }
    live?.comparison.goOn(to: .toldBuckets(number), step.now)
    step.emit(.send(id, .summary(Summary(number, .buckets(sums.buckets)))))
  }

  // MARK: Buckets

  private mutating func list(_ number: UInt64, _ buckets: [UInt64], _ ledger: Ledger, _ step: inout Step) {
    var (equal, listed): (UInt64, UInt64) = (0, 0)
    var (listings, room): ([BucketListing], Int) = ([], Summary.listedLimit)
    for (bucket, pair) in zip(sums(ledger).buckets, buckets).enumerated() {
      guard pair.0 != pair.1 else {
        equal |= 1 << UInt64(bucket)
        continue
      }
      let entries = entries(in: bucket, ledger).map(\.entry)
      guard entries.count <= room else { continue }
      room -= entries.count
      listed |= 1 << UInt64(bucket)
      listings.append(BucketListing(bucket: bucket, entries: entries))
    }
    step.emit(.send(id, .summary(Summary(number, .partitions(equal: equal, listings)))))
    // Compared with what is here now.
    live?.comparison.goOn(to: .toldPartitions(number, listed: listed), step.now)
    markLevel { $0.mark(buckets: equal) }
    if equal | listed != .max { live?.comparison.noteMore() }
    if listed == 0 { conclude(level: 0, ledger, &step) }
  }

  private func entries(in bucket: Int, _ ledger: Ledger) -> [(id: PartitionID, entry: BucketListing.Entry)] {
    ledger.partitions.ids(in: bucket).compactMap { partition in
      guard let digest = ledger.partitions.digests[partition], isCompared(partition, ledger) else { return nil }
      let term = Summary.term(of: partition, digest, exporter: exporter, ledger.cryptography.hash)
      return (partition, BucketListing.Entry(prefix: Summary.prefix(of: partition), term: term))
    }
  }

  // MARK: Partitions

  private mutating func tellDiffering(
    _ number: UInt64, _ equal: UInt64, _ listings: [BucketListing], _ ledger: Ledger, _ step: inout Step
  ) {
    _ = sums(ledger)
    var differing: Set<PartitionID> = []
    var told: [UInt64] = []
    var listed: UInt64 = 0
    for listing in listings {
      listed |= 1 << UInt64(listing.bucket)
      let theirs = Set(listing.entries)
      let mine = entries(in: listing.bucket, ledger)
      for (partition, entry) in mine {
        if theirs.contains(entry) { markLevel { $0.mark(partition) } } else { differing.insert(partition) }
      }
      told += theirs.subtracting(mine.map(\.entry)).map(\.prefix).sorted()
    }
    // What changed since the buckets were told, in a bucket of which there is no word, is told all the same.
    let changed = live?.comparison.changed ?? [:]
    differing.formUnion(changed.keys.filter { (equal | listed) >> Self.bit($0) & 1 == 0 })
    // Those of equal buckets are judged by what stood there when the buckets were told.
    let ofEqual = changed.filter { equal >> Self.bit($0.key) & 1 == 1 }
    let unasked = differing.compactMap { partition in self.unasked(partition, ledger).map { (partition, $0) } }
    live?.comparison.changed = ofEqual.merging(unasked) { $1 }
    compareRooms(differing, ledger, &step)
    // The vectors first: who is behind then asks at once, and need not tell its own beside.
    sendVectors(differing, inComparison: true, ledger, &step)
    if listed != 0 { step.emit(.send(id, .summary(Summary(number, .differing(told))))) }
    conclude(level: equal, ledger, &step)
  }

  private static func bit(_ id: PartitionID) -> UInt64 { UInt64(Summary.bucket(of: id)) }

  private mutating func takeDiffering(
    _ listed: UInt64, _ prefixes: Set<UInt64>, _ ledger: Ledger, _ step: inout Step
  ) {
    var differing: Set<PartitionID> = []
    for bucket in 0..<Summary.bucketCount where listed >> UInt64(bucket) & 1 == 1 {
      for partition in ledger.partitions.ids(in: bucket) where isInScope(partition, ledger) {
        guard !prefixes.contains(Summary.prefix(of: partition)) else {
          differing.insert(partition)
          continue
        }
        if ledger.partitions.digests[partition] != nil { markLevel { $0.mark(partition) } }
      }
    }
    // What changed since it was listed was the same then.
    for partition in differing {
      let unasked = self.unasked(partition, ledger)
      live?.comparison.changed[partition] = unasked
    }
    compareRooms(differing.subtracting(rooms.heard), ledger, &step)
    sendVectors(differing, inComparison: true, ledger, &step)
    conclude(level: 0, ledger, &step)
  }

  /// What changed of a partition of which vectors are told, and goes out all the same when the comparison ends: a peer whose
  /// stream is open since an earlier one does not ask for what others may bring (``PullPolicy/doubtLevel``).
  private func unasked(_ partition: PartitionID, _ ledger: Ledger) -> Comparison.Change? {
    guard sparing?.neighbours.isEmpty == false, let name = ledger.partitions.name(of: partition),
      live?.level.contains(partition, name) == true, let change = live?.comparison.changes(of: partition),
      !change.hasOwn
    else { return nil }
    return change
  }

  private mutating func markLevel(_ mark: (inout LevelMarks) -> Void) {
    guard live?.comparison.isOutdated == false, var level = live?.level else { return }
    live?.level = LevelMarks()
    mark(&level)
    live?.level = level
  }

  // MARK: Rooms

  /// Begins with those of these partitions that are rooms.
  mutating func compareRooms(_ differing: Set<PartitionID>, _ ledger: Ledger, _ step: inout Step) {
    let differing = differing.filter { ledger.partitions.holdsStatements(of: $0) && isInScope($0, ledger) }
    rooms.forgetLevel(besides: differing)
    for room in rooms.next(of: differing) { tellTips(room, ledger, &step) }
  }

  private mutating func tellTips(_ room: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard let name = ledger.partitions.name(of: room) else { return }
    let held = ledger.authority.statements(of: name.text)
    // Where no more of the creator's is kept, all that could come of it would be passed over.
    guard let creation = held.first(where: \.createsItsScope), !ledger.roomAllowance.isSpent(by: creation.issuer) else {
      return
    }
    let comparison = live?.comparison.count ?? 0
    rooms.tell(room, in: comparison)
    let tips = StatementSet.Step.tips(listed: .max, ScopeStatements(held).list(.max))
    step.emit(.send(id, .statementSet(StatementSet(scope: name.text, tips))))
  }

  // MARK: The end

  /// What was equal, now or earlier, opens streams. What changed since this side's last step goes out.
  private mutating func conclude(level buckets: UInt64, _ ledger: Ledger, _ step: inout Step) {
    markLevel { $0.mark(buckets: buckets) }
    guard let changed = live?.comparison.end(step.now) else { return }
    rooms.concludeComparison()
    let news = changed.keys.sorted().filter { isInScope($0, ledger) }
    for partition in news {
      guard let state = ledger.partitions[partition], let change = changed[partition] else { continue }
      guard live?.level.contains(partition, state.name) == true else {
        sendVectors([partition], ledger, &step)
        continue
      }
      openIfLevel(partition, known: change.before, ledger, step.now)
      leaveToOthers(change.brought, state, &step)
      pump(partition, ledger, &step)
    }
    offerHeldWork(ledger, &step)
    for partition in news { showApart(partition, ledger, &step) }
  }

  /// What came from those with whom the peer is linked, too. It is announced as all that is left to others.
  private mutating func leaveToOthers(_ brought: BroughtChains, _ state: PartitionState, _ step: inout Step) {
    var left = VersionVector()
    for chain in brought.chains where isLeft(chain, of: state.id) {
      let isLeft = live?.streams[state.id]?.leaveToOthers(
        chain.replica, chain.first, through: chain.last, state.log)
      if isLeft == true { left[chain.replica] = state.log.clipped[chain.replica] }
    }
    guard !left.isEmpty else { return }
    let due = step.now.advanced(byMilliseconds: step.configuration.gatherMilliseconds * 2)
    let vector = PartitionVector(name: state.name, vector: left)
    if sparing?.gather(state.id, vector, until: due) != true { send(vector, &step) { .have($0) } }
  }

  private func isLeft(_ chain: BroughtChains.Chain, of partition: PartitionID) -> Bool {
    guard live?.choices.isLazy(chain.replica, in: partition) != true else { return true }
    return isLinked(with: chain.bringer) && live?.choices.isEager(chain.replica, in: partition) != true
  }

  /// A comparison that the peer does not go on with: what waited for its end is told.
  mutating func lapse(_ ledger: Ledger, _ step: inout Step) {
    guard let since = live?.comparison.since,
      step.now.millisecondsSince(since) > step.configuration.catchUpSilenceMilliseconds
    else { return }
    let changed = live?.comparison.allChanged ?? []
    live?.comparison.enter(.none, step.now)
    rooms.concludeComparison()
    sendVectors(changed, ledger, &step)
    for partition in changed.sorted() where isInScope(partition, ledger) { showApart(partition, ledger, &step) }
  }
}
