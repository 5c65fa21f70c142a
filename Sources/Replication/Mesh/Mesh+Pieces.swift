// Payloads that travel apart, in pieces ahead of their run: whose are taken, and whether a peer has sent what it owes.
extension Mesh {
  /// Taken on the stream that is open here, in order; what comes on another, or of what is not in common, is passed over.
  mutating func receivePiece(_ id: SessionID, _ piece: PayloadPiece, _ step: inout Step) {
    let partition = piece.name.id(fleet: local.fleet, hash: cryptography.hash)
    if takeHandedOver(id, piece, partition, &step) { return }
    guard let session = sessions[id], var stream = heardStream(session, partition, piece.name, step.now),
      piece.stream == PayloadPiece.evidence || piece.stream == stream.incoming
    else { return }
    switch stream.progress(with: piece) {
    case .follows(let arriving): stream.arriving[piece.stream] = arriving
    case .isPassedOver: return
    case .isOutOfOrder: return fail(id, .protocolError, "a piece of a payload out of order", &step)
    }
    sessions[id]?.streams[partition] = stream
    sessions[id]?.streams[partition]?.lastProgress = step.now
    step.emit(.stage(id, StagedKey(device: session.device, partition: partition, hash: piece.hash), piece))
  }

  /// The stream on which the peer may send; nil outside of the common scope.
  func heardStream(
    _ session: PeerSession, _ partition: PartitionID, _ name: PartitionName, _ now: MonotonicTime
  ) -> PeerStream? {
    guard session.phase == .live, isInScope(session, partition, name) else { return nil }
    return session.streams[partition] ?? newStream(session, partition, name, now)
  }

  /// Whether the peer has done its part for a payload that a run of this batch names: all of it came ahead, or the pull
  /// said that it was here. What is not here all the same was lost on this side, or passed over with its run.
  package func wasSent(_ hash: Digest, byteCount: UInt64, aheadOf batch: RunBatch, on id: SessionID) -> Bool {
    let partition = batch.name.id(fleet: local.fleet, hash: cryptography.hash)
    // What shows a fork may come while its partition comes into the scope, with its first pieces passed over.
    guard !batch.isForkEvidence, let session = sessions[id], isInScope(session, partition, batch.name),
      let stream = session.streams[partition], stream.incoming == batch.stream
    else { return true }
    let isWhole = stream.arriving[batch.stream].map { $0.hash == hash && $0.isWhole } ?? false
    return isWhole || stream.named[hash] == byteCount
  }

  /// The payload has to come once more, all that is not here of it from this very peer. Evidence comes again by itself.
  mutating func payloadLost(_ id: SessionID, _ batch: RunBatch, _ step: inout Step) {
    let partition = batch.name.id(fleet: local.fleet, hash: cryptography.hash)
    guard let session = sessions[id], !batch.isForkEvidence,
      let stream = heardStream(session, partition, batch.name, step.now)
    else { return }
    sessions[id]?.streams[partition] = stream
    if stream.incoming == batch.stream {
      sessions[id]?.streams[partition]?.incoming = nil
      sessions[id]?.streams[partition]?.namesOwnAlone = true
      if catchUps[partition]?.session == id { catchUps[partition] = nil }
    }
    considerPull(id, partition, &step)
  }
}

/// How far a payload has come on a stream.
struct ArrivingPayload: Sendable {
  let hash: Digest
  let total: UInt64
  var end: UInt64
  var isWhole: Bool { end == total }
}

extension PeerStream {
  enum PieceJudgement {
    case follows(ArrivingPayload)
    case isPassedOver
    case isOutOfOrder
  }

  /// One payload after the other, each from its beginning or from where the pull said that it is lacking.
  func progress(with piece: PayloadPiece) -> PieceJudgement {
    let next = ArrivingPayload(hash: piece.hash, total: piece.total, end: piece.end)
    if let before = arriving[piece.stream], !before.isWhole {
      let follows = before.hash == piece.hash && before.total == piece.total && before.end == piece.offset
      return follows ? .follows(next) : .isOutOfOrder
    }
    if piece.offset == 0 || piece.stream == incoming && named[piece.hash] == piece.offset { return .follows(next) }
    // What came before it may have been passed over: no pull has numbered these.
    return piece.stream == PayloadPiece.evidence ? .isPassedOver : .isOutOfOrder
  }
}
