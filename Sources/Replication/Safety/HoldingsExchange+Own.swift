// What this device says: when it is worth its bytes, or asked for, or an earlier word does not hold.
extension HoldingsExchange {
  /// What was read back from the backend's ledger, which may be less than before.
  package mutating func readBack(
    _ name: PartitionName, _ vector: VersionVector, _ sight: some HoldingsSight
  ) -> [Directive] {
    let partition = sight.id(of: name)
    words[partition, default: [:]][.backend, default: OwnWord()].read(vector, sight.now)
    var out: [Directive] = []
    let next = speakOfBackendIfDue(partition, name, sight, &out)
    // What is received has a time of its own.
    if next.time != nil { looks.add(partition, name) }
    return out
  }

  /// What this device may say that it holds. Where damage was known before the start, until the log was read over no more than
  /// its last word says: a run may be damaged, and the word taken back for that.
  func sayable(_ partition: PartitionID, _ name: PartitionName, _ sight: some HoldingsSight) -> HeldVector? {
    guard let held = sight.held(partition, name) else { return nil }
    guard !sight.knowsDamage else { return held }
    let said = book[partition, ownSubject(.received, sight)]?.holdings.vector ?? VersionVector()
    let known = held.vector.entries.compactMap { replica, position in
      said[replica].map { (replica, position.sequence > $0.sequence ? $0 : position) }
    }
    return HeldVector(vector: VersionVector(Dictionary(known) { first, _ in first }), ownLast: held.ownLast)
  }

  /// Answers when to look again if nothing happens meanwhile.
  mutating func speakIfDue(
    _ partition: PartitionID, _ name: PartitionName, _ sight: some HoldingsSight, _ out: inout [Directive]
  ) -> LooksDue.Next {
    speakOfBackendIfDue(partition, name, sight, &out).sooner(speakOfReceivedIfDue(partition, name, sight, &out))
  }

  private mutating func speakOfReceivedIfDue(
    _ partition: PartitionID, _ name: PartitionName, _ sight: some HoldingsSight, _ out: inout [Directive]
  ) -> LooksDue.Next {
    let word = words[partition]?[.received] ?? OwnWord()
    let worth = word.unspokenBytes / rules.share
    // What is worth less than any word can cost waits for more.
    guard word.mustCorrect || worth >= HoldingsItem.leastByteCount + HoldingsRules.messageBytes else { return .nothing }
    let pause = word.mustCorrect ? rules.askedMilliseconds : rules.wordMilliseconds
    guard isPast(word, pause, sight) else { return .at(time(after: word, pause, sight)) }
    if !word.mustCorrect {
      // ``logScrubbed(_:)`` looks again.
      guard sight.knowsDamage else { return .nothing }
      guard let isAffordable = isAffordable(worth, partition, name, sight) else { return .whenHeard }
      guard isAffordable else { return .at(sight.now.advanced(byMilliseconds: rules.wordMilliseconds)) }
    }
    issue(.received, partition, name, sight, &out)
    // It may have found no room, or not come to the disk.
    return .at(sight.now.advanced(byMilliseconds: pause))
  }

  private func isPast(_ word: OwnWord, _ milliseconds: UInt64, _ sight: some HoldingsSight) -> Bool {
    word.issuedAt.map { sight.now.millisecondsSince($0) >= milliseconds } ?? true
  }

  private func time(after word: OwnWord, _ milliseconds: UInt64, _ sight: some HoldingsSight) -> MonotonicTime {
    (word.issuedAt ?? sight.now).advanced(byMilliseconds: milliseconds)
  }

  /// Whether a record of now would take no more than so many bytes to all who would be told; nil where nobody would.
  private func isAffordable(
    _ bytes: Int, _ partition: PartitionID, _ name: PartitionName, _ sight: some HoldingsSight
  ) -> Bool? {
    let heard = peers.keys.lazy.filter { sight.isInScope($0, partition, name) }
    guard let held = sayable(partition, name, sight), heard.first != nil else { return nil }
    let subject = ownSubject(.received, sight)
    let last = book[partition, subject]?.holdings
    // As where a damaged chain alone has grown.
    guard held.vector != last?.vector ?? VersionVector() else { return false }
    func cost(after base: Holdings?) -> Int {
      let item = HoldingsItem(
        partition: name, subject: subject, number: 1, base: 0, entries: .shorter(held.vector, base: base?.vector),
        ownLast: held.ownLast, signature: Signature(first: .zero, second: .zero))
      return item.byteCount + HoldingsRules.messageBytes
    }
    let (whole, step) = (cost(after: nil), last.map { cost(after: $0) })
    var left = bytes
    for id in heard {
      let knowsLast = last.map { peers[id]?.told[partition]?[.received] == $0.number } ?? false
      left -= knowsLast ? step ?? whole : whole
      if left < 0 { return false }
    }
    return true
  }

  private mutating func speakOfBackendIfDue(
    _ partition: PartitionID, _ name: PartitionName, _ sight: some HoldingsSight, _ out: inout [Directive]
  ) -> LooksDue.Next {
    guard let word = words[partition]?[.backend], let vector = youngReading(partition, sight)?.vector else {
      return .nothing
    }
    let said = book[partition, ownSubject(.backend, sight)]?.holdings.vector ?? VersionVector()
    // What is there no more is taken back soon.
    let isLess = said.entries.contains { $0.value.sequence > vector.sequence(of: $0.key) }
    guard said != vector else { return .nothing }
    let pause = isLess ? rules.askedMilliseconds : rules.wordMilliseconds
    guard isPast(word, pause, sight) else { return .at(time(after: word, pause, sight)) }
    issue(.backend, partition, name, sight, &out)
    return .at(sight.now.advanced(byMilliseconds: rules.askedMilliseconds))
  }

  /// What was read in the backend not long ago: a word must not be younger than what it says.
  func youngReading(_ partition: PartitionID, _ sight: some HoldingsSight) -> (vector: VersionVector, age: Int64)? {
    guard let reading = words[partition]?[.backend]?.backend else { return nil }
    let age = sight.now.millisecondsSince(reading.at)
    return age <= rules.readingMilliseconds ? (reading.vector, Int64(clamping: age)) : nil
  }

  /// Signs what holds now. It speaks of what is on disk, or will be with it in one transaction.
  mutating func issue(
    _ kind: Holdings.Kind, _ partition: PartitionID, _ name: PartitionName, _ sight: some HoldingsSight,
    _ out: inout [Directive]
  ) {
    let word = words[partition]?[kind] ?? OwnWord()
    let held = sayable(partition, name, sight)
    let number = word.next(sight.wallMilliseconds)
    guard number > word.number, let vector = kind == .backend ? word.backend?.vector : held?.vector ?? VersionVector()
    else {
      return
    }
    let holdings = Holdings(
      fleet: sight.fleet, device: sight.device, partition: name, number: number, vector: vector, kind: kind,
      ownLast: kind == .received ? held?.ownLast : nil)
    guard book.admits(holdings, in: partition) else { return }
    words[partition, default: [:]][kind, default: OwnWord()].issue(number, sight.now)
    out.append(.keep(SignedHoldings(holdings, signature: sight.sign(sight.signedBytes(of: holdings))), from: nil))
  }

  /// A record of this very device came that was not made by this store as it is. Answers whether it may stand.
  mutating func recognise(_ holdings: Holdings, _ partition: PartitionID, _ sight: some HoldingsSight) -> Bool {
    words[partition, default: [:]][holdings.kind, default: OwnWord()].note(holdings)
    guard holdings.kind == .received else { return true }
    let held = sight.held(partition, holdings.partition)?.vector ?? VersionVector()
    let isTrue = holdings.vector.entries.allSatisfy { replica, position in
      held[replica].map { $0.sequence > position.sequence || $0 == position } ?? false
    }
    guard !isTrue else { return true }
    demandCorrection(of: partition, holdings.partition)
    return false
  }

  // MARK: Telling

  mutating func tell(
    _ id: SessionID, _ partition: PartitionID, _ subject: Holdings.Subject, _ out: inout [Directive]
  ) {
    guard let entry = book.pages[partition]?.entries[subject] else { return }
    let known = peers[id]?.told[partition]?[subject.kind]
    guard known.map({ $0 < entry.kept.holdings.number }) ?? true else { return }
    out.append(.send(id, .records([entry.kept.signed.item(after: entry.step, known: known)])))
    peers[id]?.told[partition, default: [:]][subject.kind] = entry.kept.holdings.number
  }

  /// The peer wants to know what holds now.
  mutating func answerFresh(
    _ id: SessionID, _ name: PartitionName, _ sight: some HoldingsSight, _ out: inout [Directive]
  ) {
    let partition = sight.id(of: name)
    guard sight.isInScope(id, partition, name), let held = sayable(partition, name, sight) else { return }
    let kinds: [(Holdings.Kind, VersionVector?)] = [
      (.received, held.vector), (.backend, youngReading(partition, sight)?.vector),
    ]
    for (kind, vector) in kinds {
      guard let vector else { continue }
      let subject = ownSubject(kind, sight)
      let word = words[partition]?[kind] ?? OwnWord()
      let said = book[partition, subject]?.holdings.vector
      // Of a log that may be damaged a word stands as it is, and grows no younger.
      guard kind == .backend || sight.knowsDamage else {
        tell(id, partition, subject, &out)
        continue
      }
      guard said != nil || !vector.isEmpty else { continue }
      let isChanged = said.map { $0 != vector } ?? true
      let pause = isChanged ? rules.askedMilliseconds : rules.renewMilliseconds
      // Of the backend only what was read there since makes a word young.
      if isPast(word, pause, sight), kind == .received || isChanged || word.isReadAnew && said != nil {
        issue(kind, partition, name, sight, &out)
      } else {
        tell(id, partition, subject, &out)
      }
    }
  }
}
