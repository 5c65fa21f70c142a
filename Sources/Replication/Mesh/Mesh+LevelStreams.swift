// Streams that equal summaries opened, without a pull. Each end opens and closes its own by what it knows of scopes and
// rights: one end may hold such a stream that the other does not have any more, or has begun anew.
extension Mesh {
  func isLevel(_ id: SessionID, _ partition: PartitionID) -> Bool {
    sessions[id]?.streams[partition]?.incoming == PeerStream.level
  }

  /// What comes on it does not fit: now it is asked for, under a number of its own.
  mutating func pullInsteadOfLevel(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    sessions[id]?.streams[partition]?.incoming = nil
    considerPull(id, partition, &step)
  }

  /// Equal summaries open streams only where both ends held the same scope against them, and an interest that changed
  /// during the handshake may have reached one of them alone. A peer that names more than it sent is therefore asked.
  mutating func doubtLevelStream(_ id: SessionID, _ partition: PartitionID) {
    guard isLevel(id, partition), let stream = sessions[id]?.streams[partition], isAhead(stream, partition),
      catchUps[partition] == nil
    else { return }
    sessions[id]?.streams[partition]?.incoming = nil
  }

  /// The run's context stands on one that the peer sent before this side began the stream anew. Each side's first context
  /// on a stream is whole, so that this is no breach of the peer's.
  func lacksBase(_ run: IncomingRun, _ id: SessionID, _ partition: PartitionID) -> Bool {
    guard isLevel(id, partition), sessions[id]?.streams[partition]?.incomingBase == nil else { return false }
    if case .increments = run.context { return true }
    return false
  }
}
