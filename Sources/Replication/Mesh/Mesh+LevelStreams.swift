// Streams that equal summaries opened, without a pull (``IncomingStream/isLevel``).
extension Mesh {
  /// What comes on it does not fit: now it is asked for, under a number of its own.
  mutating func pullInsteadOfLevel(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    sessions[id]?.streams[partition]?.incoming.close()
    considerPull(id, partition, &step)
  }

  /// Equal summaries open streams only where both ends held the same scope against them, and an interest that changed
  /// during the handshake may have reached one of them alone. A peer that names more than it sent is therefore asked.
  mutating func doubtLevelStream(_ id: SessionID, _ partition: PartitionID) {
    guard let stream = sessions[id]?.streams[partition], stream.incoming.isLevel,
      stream.isAhead(of: ledger.partitions[partition]?.log),
      catchUps[partition] == nil
    else { return }
    sessions[id]?.streams[partition]?.incoming.close()
  }
}
