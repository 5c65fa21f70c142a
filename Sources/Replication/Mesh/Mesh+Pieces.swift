// Payloads that travel apart, in pieces ahead of their run: whose are taken, and whether a peer has sent what it owes.
extension Mesh {
  /// Taken on the stream that is open here, in order; what comes on another, or of what is not in common, is passed over.
  mutating func receivePiece(_ id: SessionID, _ piece: PayloadPiece, _ step: inout Step) {
    let partition = ledger.id(of: piece.name)
    if sessions[id]?.takesHandedOver(piece, partition, ledger, &step) == true { return }
    guard let session = sessions[id], var stream = heardStream(session, partition, piece.name, step.now),
      piece.stream == PayloadPiece.evidence || piece.stream == stream.incoming.number
    else { return }
    switch stream.incoming.payloads.take(piece, on: stream.incoming.number) {
    case .taken: stream.incoming.noteProgress(step.now)
    case .isPassedOver: return
    case .isOutOfOrder: return fail(id, .protocolError, "a piece of a payload out of order", &step)
    }
    sessions[id]?.live?.streams[partition] = stream
    step.emit(.stage(id, StagedKey(device: session.device, partition: partition, hash: piece.hash), piece))
  }

  /// The stream on which the peer may send; nil outside of the common scope.
  func heardStream(
    _ session: PeerSession, _ partition: PartitionID, _ name: PartitionName, _ now: MonotonicTime
  ) -> PeerStream? {
    guard session.isInScope(partition, name, ledger) else { return nil }
    return session.stream(partition, name, ledger, now)
  }

  /// Whether the peer has done its part for a payload that a run of this batch names: all of it came ahead, or the pull
  /// said that it was here. What is not here all the same was lost on this side, or passed over with its run.
  package func wasSent(_ hash: Digest, byteCount: UInt64, aheadOf batch: RunBatch, on id: SessionID) -> Bool {
    let partition = ledger.id(of: batch.name)
    // What shows a fork may come while its partition comes into the scope, with its first pieces passed over.
    guard !batch.isForkEvidence, let session = sessions[id], session.isInScope(partition, batch.name, ledger),
      let stream = session.live?.streams[partition], stream.incoming.number == batch.stream
    else { return true }
    return stream.incoming.payloads.wasSent(hash, byteCount: byteCount, on: batch.stream)
  }

  /// The payload has to come once more, all that is not here of it from this very peer. Evidence comes again by itself.
  mutating func payloadLost(_ id: SessionID, _ batch: RunBatch, _ step: inout Step) {
    let partition = ledger.id(of: batch.name)
    guard let session = sessions[id], !batch.isForkEvidence,
      let stream = heardStream(session, partition, batch.name, step.now)
    else { return }
    sessions[id]?.live?.streams[partition] = stream
    if stream.incoming.number == batch.stream {
      sessions[id]?.live?.streams[partition]?.incoming.close()
      sessions[id]?.live?.streams[partition]?.incoming.payloads.distrustOthers()
      catchUps.end(partition, on: id)
    }
    considerPull(id, partition, &step)
  }
}
