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
    var words = receipts(of: partition, for: [:], in: book, stored: stored).map { receipt in
      let device = receipt.holdings.device
      return WipeWord(
        speaker: device == self.device ? .own : .other(device, receipt.standing), kind: receipt.holdings.kind,
        age: receipt.certainAge(at: wallMilliseconds), reaches: reaches(receipt.holdings.vector),
        isHeard: isHeard)
    }
    if let reading {
      words.append(
        WipeWord(speaker: .ownReading, kind: .backend, age: reading.age, reaches: reaches(reading.vector)))
    }
    return WipeHolding(
      partition: partition, name: state.name, received: received, apart: state.log.apartCount, words: words)
  }
}

extension Receipt {
  /// So far may another's clock go ahead of this one's.
  private static let clockMilliseconds: Int64 = 3_600_000

  /// As ``age(at:)``; nil where the number or the time of its coming lies ahead: how old it is cannot be told then.
  fileprivate func certainAge(at wall: Int64) -> Int64? {
    let latest = wall + Receipt.clockMilliseconds
    return kept.heard <= latest && Int64(clamping: holdings.number) <= latest ? age(at: wall) : nil
  }
}
