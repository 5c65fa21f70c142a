// How two nodes come to know the same records: one sum where they do, else the partitions that differ, then numbers, which
// acknowledge what is here, then what is newer.
extension HoldingsExchange {
  mutating func compareIfDue(_ id: SessionID, _ sight: some HoldingsSight, _ out: inout [Directive]) {
    guard let peer = peers[id], peer.isDue, sight.now >= peer.nextComparison else { return }
    peers[id]?.isDue = false
    // Who has any begins.
    guard peer.lacks || !scope(id, sight).isEmpty else { return }
    peers[id]?.lacks = false
    putOffComparison(id, sight)
    out.append(.send(id, .question(.sum(scopeSum(id, sight), isAnswer: false))))
  }

  private mutating func putOffComparison(_ id: SessionID, _ sight: some HoldingsSight) {
    let doublings = min(peers[id]?.unequalInRow ?? 0, HoldingsExchange.doublingLimit)
    peers[id]?.nextComparison = sight.now.advanced(byMilliseconds: rules.compareMilliseconds << doublings)
  }

  private static let doublingLimit: UInt64 = 5

  private func scope(_ id: SessionID, _ sight: some HoldingsSight) -> [PartitionID] {
    book.pages.filter { sight.isInScope(id, $0.key, $0.value.name) }.keys.sorted()
  }

  private mutating func scopeSum(_ id: SessionID, _ sight: some HoldingsSight) -> UInt64 {
    scope(id, sight).reduce(0) { $0 &+ sum(of: $1, sight) }
  }

  mutating func receiveSum(
    _ id: SessionID, _ theirs: UInt64, isAnswer: Bool, _ sight: some HoldingsSight, _ out: inout [Directive]
  ) {
    let mine = scopeSum(id, sight)
    if mine == theirs {
      setLevel(id)
      noteOwnTold(id, sight)
    } else {
      noteUnequal(id)
    }
    guard !isAnswer else { return }
    out.append(.send(id, .question(mine == theirs ? .sum(mine, isAnswer: true) : .list(listed(id, sight)))))
  }

  /// After two in a row what both took to be level is not.
  private mutating func noteUnequal(_ id: SessionID) {
    peers[id]?.unequalInRow += 1
    if peers[id].map({ $0.unequalInRow > 1 }) ?? false { forgetLevel(id) }
  }

  /// The peer has every record that is here.
  private mutating func noteOwnTold(_ id: SessionID, _ sight: some HoldingsSight) {
    for partition in words.keys {
      guard let name = book.pages[partition]?.name, sight.isInScope(id, partition, name) else { continue }
      for kind in Holdings.Kind.allCases {
        let number = book.number(partition, ownSubject(kind, sight))
        if number > 0 { peers[id]?.told[partition, default: [:]][kind] = number }
      }
    }
  }

  private mutating func listed(_ id: SessionID, _ sight: some HoldingsSight) -> [HoldingsQuestion.Listed] {
    let level = peers[id]?.levelRevision ?? 0
    let meant = scope(id, sight).filter { (book.pages[$0]?.revision ?? 0) > level }
    return meant.prefix(HoldingsQuestion.listLimit).map {
      HoldingsQuestion.Listed(prefix: Summary.prefix(of: $0), sum: sum(of: $0, sight))
    }
  }

  /// Names what is here of every partition that one side lists and the other has otherwise.
  mutating func receiveList(
    _ id: SessionID, _ list: [HoldingsQuestion.Listed], _ sight: some HoldingsSight, _ out: inout [Directive]
  ) {
    noteUnequal(id)
    peers[id]?.isDue = true
    putOffComparison(id, sight)
    let theirs = Dictionary(list.map { ($0.prefix, $0.sum) }) { first, _ in first }
    let mine = Set(listed(id, sight).map(\.prefix))
    var meant: [PartitionID: PartitionName] = [:]
    for (partition, name) in sight.partitions + book.pages.map({ ($0.key, $0.value.name) }) {
      let prefix = Summary.prefix(of: partition)
      guard meant[partition] == nil, theirs[prefix] != nil || mine.contains(prefix),
        theirs[prefix] ?? 0 != sum(of: partition, sight), sight.isInScope(id, partition, name)
      else { continue }
      meant[partition] = name
    }
    sayKnown(id, meant.sorted { $0.key < $1.key }.map(\.value), wantsBack: true, sight, &out)
  }

  private func sayKnown(
    _ id: SessionID, _ names: [PartitionName], wantsBack: Bool, _ sight: some HoldingsSight, _ out: inout [Directive]
  ) {
    var batch: [HoldingsQuestion.Known] = []
    var count = 0
    func close() {
      if !batch.isEmpty { out.append(.send(id, .question(.known(batch, wantsBack: wantsBack)))) }
      (batch, count) = ([], 0)
    }
    for name in names.prefix(HoldingsExchange.repairLimit) {
      let numbers = book.numbers(of: sight.id(of: name))
      let told = numbers.sorted { $0.key < $1.key }.prefix(HoldingsQuestion.numberLimit)
      if count + told.count > HoldingsQuestion.numberLimit || batch.count == HoldingsQuestion.knownLimit { close() }
      batch.append(
        HoldingsQuestion.Known(
          partition: name, numbers: Dictionary(told.map { ($0.key, $0.value) }) { first, _ in first }))
      count += told.count
    }
    close()
  }

  /// Partitions that one comparison brings level; the others come with the next.
  private static let repairLimit = 1_024

  mutating func receiveKnown(
    _ id: SessionID, _ list: [HoldingsQuestion.Known], wantsBack: Bool, _ sight: some HoldingsSight,
    _ out: inout [Directive]
  ) {
    var items: [HoldingsItem] = []
    var behind: [PartitionName] = []
    for known in list {
      let partition = sight.id(of: known.partition)
      guard sight.isInScope(id, partition, known.partition) else { continue }
      let entries = book.pages[partition]?.entries ?? [:]
      for (subject, entry) in entries.sorted(by: { $0.key < $1.key }) {
        let number = known.numbers[subject]
        if subject.device == sight.device {
          peers[id]?.told[partition, default: [:]][subject.kind] = max(number ?? 0, entry.kept.holdings.number)
        }
        guard number.map({ $0 < entry.kept.holdings.number }) ?? true else { continue }
        items.append(entry.kept.signed.item(after: entry.step, known: number))
      }
      if known.numbers.contains(where: { $0.value > book.number(partition, $0.key) }) { behind.append(known.partition) }
    }
    send(items, to: id, &out)
    if wantsBack, !behind.isEmpty { sayKnown(id, behind, wantsBack: false, sight, &out) }
  }

  private func send(_ items: [HoldingsItem], to id: SessionID, _ out: inout [Directive]) {
    var batch: [HoldingsItem] = []
    var bytes = 0
    for item in items {
      batch.append(item)
      bytes += item.byteCount
      guard batch.count == HoldingsItem.limit || bytes >= HoldingsItem.byteTarget else { continue }
      out.append(.send(id, .records(batch)))
      (batch, bytes) = ([], 0)
    }
    if !batch.isEmpty { out.append(.send(id, .records(batch))) }
  }

  // MARK: Records

  /// Somebody's word: kept where it is newer than what is here, signed, and of a member.
  mutating func take(
    _ item: HoldingsItem, _ id: SessionID, _ sight: some HoldingsSight, _ out: inout [Directive]
  ) {
    let partition = sight.id(of: item.partition)
    guard sight.isInScope(id, partition, item.partition), sight.isMember(item.subject.device) else { return }
    let old = book[partition, item.subject]?.holdings
    guard old.map({ item.number > $0.number || item.base == 0 && item.number == $0.number }) ?? true else { return }
    // It goes on from what is not here, or not on disk yet: the next comparison brings the whole.
    guard item.base == 0 || item.base == old?.number else {
      peers[id]?.isDue = true
      peers[id]?.lacks = true
      return
    }
    let vector = item.entries.resolved(on: old?.vector)
    let holdings = Holdings(
      fleet: sight.fleet, device: item.subject.device, partition: item.partition, number: item.number, vector: vector,
      kind: item.subject.kind, ownLast: item.ownLast)
    guard vector.count <= RunSummary.contextEntryLimit, holdings != old, book.admits(holdings, in: partition),
      old.map({ sight.precedes($0, holdings) }) ?? true,
      sight.verify(item.signature, sight.signedBytes(of: holdings), holdings.device)
    else { return }
    if holdings.device == sight.device {
      peers[id]?.told[partition, default: [:]][holdings.kind] = holdings.number
      guard recognise(holdings, partition, sight) else { return }
    }
    out.append(.keep(SignedHoldings(holdings, signature: item.signature), from: id))
  }
}
