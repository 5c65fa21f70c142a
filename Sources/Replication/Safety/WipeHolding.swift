// What is known elsewhere of what is here.
extension Ledger {
  /// A partition as it is to be judged now; nil where it is not here. `stored`: as for receipts.
  ///
  /// - Parameters:
  ///   - isHeard: this device would hear what becomes of it elsewhere.
  ///   - reading: what this device's forwarder has read in the backend, and how long ago.
  func wipeHolding(
    of partition: PartitionID, _ book: HoldingsBook, isHeard: Bool, reading: (vector: VersionVector, age: Int64)?,
    wallMilliseconds: Int64, stored: PartitionLog.StoredTip
  ) -> WipeHolding? {
    guard let state = partitions[partition] else { return nil }
    let received = state.log.received.entries.mapValues(\.sequence)
    func reaches(_ vector: VersionVector) -> [ReplicaID: UInt64] {
      received.reduce(into: [:]) { reaches, chain in
        guard let position = vector[chain.key] else { return }
        reaches[chain.key] = min(chain.value, state.log.known(of: position, of: chain.key, stored: stored))
      }
    }
    let receipts = receipts(of: partition, for: [:], in: book, stored: stored)
    // A clock that stands before something that was heard by it has gone back: it makes all that was heard look young.
    let isBehind = receipts.contains { $0.isHeardAhead(of: wallMilliseconds) }
    var words = receipts.map { receipt in
      let device = receipt.holdings.device
      return WipeWord(
        speaker: device == self.device ? .own : .other(device, receipt.standing), kind: receipt.holdings.kind,
        age: isBehind ? nil : receipt.certainAge(at: wallMilliseconds), reaches: reaches(receipt.holdings.vector),
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

extension Receipt {
  /// So far may another's clock go ahead of this one's.
  private static let clockMilliseconds: Int64 = 3_600_000

  fileprivate func isHeardAhead(of wall: Int64) -> Bool { kept.heard > wall + Receipt.clockMilliseconds }

  /// As ``age(at:)``; nil where the number or the time of its coming lies ahead: how old it is cannot be told then.
  fileprivate func certainAge(at wall: Int64) -> Int64? {
    let latest = wall + Receipt.clockMilliseconds
    return kept.heard <= latest && Int64(clamping: holdings.number) <= latest ? age(at: wall) : nil
  }
}
