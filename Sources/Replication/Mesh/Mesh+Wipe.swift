// What is known elsewhere of what is here.
extension Mesh {
  /// A partition as it is to be judged now, by both clocks; nil where it is not here. `stored`: as for receipts.
  package func wipeHolding(
    of partition: PartitionID, _ surroundings: Surroundings, stored: PartitionLog.StoredTip
  ) -> WipeHolding? {
    guard let state = ledger.partitions[partition] else { return nil }
    let received = state.log.received.entries.mapValues(\.sequence)
    func reaches(_ vector: VersionVector) -> [ReplicaID: UInt64] {
      received.reduce(into: [:]) { reaches, chain in
        guard let position = vector[chain.key] else { return }
        reaches[chain.key] = min(chain.value, state.log.known(of: position, of: chain.key, stored: stored))
      }
    }
    let isHeard = interest.wants(partition, name: state.name)
    var words = receipts(of: partition, for: [:], stored: stored).map { receipt in
      let device = receipt.holdings.device
      return WipeWord(
        speaker: device == local.device ? .own : .other(device, receipt.standing), kind: receipt.holdings.kind,
        age: receipt.certainAge(at: surroundings.wallMilliseconds), reaches: reaches(receipt.holdings.vector),
        isHeard: isHeard)
    }
    if let reading = holdings.youngReading(partition, MeshSight(mesh: self, surroundings: surroundings)) {
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
