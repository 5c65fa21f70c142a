// What is known elsewhere of what is here.
extension Ledger {
  /// A partition as it is to be judged now; nil where it is not here. `stored`: as for receipts.
  ///
  /// - Parameters:
  ///   - forked: ``forkedDevices``.
  ///   - isHeard: this device would hear what becomes of it elsewhere.
  ///   - reading: what this device's forwarder has read in the backend, and how long ago.
  func wipeHolding(
    of partition: PartitionID, _ book: HoldingsBook, forked: Set<PublicKey>, isHeard: Bool,
    reading: (vector: VersionVector, age: Int64)?, now: MonotonicTime, wallMilliseconds: Int64,
    stored: PartitionLog.StoredTip
  ) -> WipeHolding? {
    guard let state = partitions[partition] else { return nil }
    let received = state.log.received.entries.mapValues(\.sequence)
    func reaches(_ vector: VersionVector) -> [ReplicaID: UInt64] {
      received.reduce(into: [:]) { reaches, chain in
        guard let position = vector[chain.key] else { return }
        reaches[chain.key] = min(chain.value, state.log.known(of: position, of: chain.key, stored: stored))
      }
    }
    let receipts = receipts(of: partition, for: [:], in: book, forked: forked, stored: stored)
    let clock = WordClock(book, now, wallMilliseconds)
    var words = receipts.map { receipt in
      let device = receipt.holdings.device
      return WipeWord(
        speaker: device == self.device ? .own : .other(device, receipt.standing), kind: receipt.holdings.kind,
        age: device == self.device ? clock.leastAge(of: receipt, in: partition) : clock.age(of: receipt, in: partition),
        reaches: reaches(receipt.holdings.vector),
        isHeard: isHeard)
    }
    if let reading {
      words.append(
        WipeWord(speaker: .ownReading, kind: .backend, age: reading.age, reaches: reaches(reading.vector)))
    }
    // Of a chain that did not read whole, something was here that may read again, and of which no word speaks.
    let unread = UInt64(state.log.incompleteChains.count)
    return WipeHolding(
      partition: partition, name: state.name, received: received, apart: state.log.apartCount + unread, words: words)
  }
}

/// How old words are, as far as this node's clock can tell.
private struct WordClock {
  private let book: HoldingsBook
  private let now: MonotonicTime
  private let wall: Int64
  /// A clock that stands before something that was heard by it has gone back: it makes all that was heard before look young.
  private let isBehind: Bool

  init(_ book: HoldingsBook, _ now: MonotonicTime, _ wall: Int64) {
    (self.book, self.now, self.wall) = (book, now, wall)
    isBehind = book.latestHeard > wall + Receipt.clockMilliseconds
  }

  /// As ``Receipt/age(at:)``; nil where it cannot be told. What its speaker said here since the start, by a clock that agrees with
  /// this one, has its age whatever this clock did.
  func age(of receipt: Receipt, in partition: PartitionID) -> Int64? {
    guard Int64(clamping: receipt.holdings.number) <= wall + Receipt.clockMilliseconds else { return nil }
    let heardAt = book.heardAt(partition, receipt.holdings.subject)
    let isOfNow = wall - Int64(clamping: receipt.holdings.number) <= Receipt.clockMilliseconds
    guard !isBehind || heardAt != nil && isOfNow else { return nil }
    let sinceHeard = heardAt.map { Int64(clamping: now.millisecondsSince($0)) } ?? 0
    return max(sinceHeard, receipt.age(at: wall))
  }

  /// Of this device's own word, by no clock that is set: others' are to be later for certain.
  func leastAge(of receipt: Receipt, in partition: PartitionID) -> Int64 {
    let heardAt = book.heardAt(partition, receipt.holdings.subject) ?? book.restoredAt ?? now
    return Int64(clamping: now.millisecondsSince(heardAt))
  }
}

extension Receipt {
  /// So far may another's clock go ahead of this one's.
  static let clockMilliseconds: Int64 = 3_600_000
}
