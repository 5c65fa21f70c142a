import Replication

/// A piece of a payload, with whose it is and the session that it came on.
struct StagedPiece {
  let key: StagedKey
  let session: SessionID
  let piece: PayloadPiece
}

// Payloads that travel apart: each device's pieces are kept apart from all others' until they are whole.
extension CommitWriter {
  mutating func add(_ staged: StagedPiece) throws {
    let (key, piece) = (staged.key, staged.piece)
    if let known = done.staged[key], known.total != piece.total { try removePieces(key) }
    var share = done.staged[key] ?? StagedShare(key, total: piece.total)
    // What is here already is not looked at again; what does not follow was ahead of what had to make room.
    guard piece.offset <= share.byteCount, piece.end > share.byteCount, try transaction.intactPayload(key.hash) == nil
    else { return }
    let bytes = piece.bytes.dropFirst(Int(share.byteCount - piece.offset))
    for key in done.staged.displaced(by: bytes.count, for: key) { try removePieces(key) }
    let isOfOneSession = done.staged.isAll(of: key, from: staged.session)
    share.byteCount = piece.end
    if share.byteCount == share.total {
      let before = done.staged[key] == nil ? [] : try transaction.stagedBytes(key)
      share.isWhole = Digest.of(before + bytes, state.identity.cryptography.hash) == key.hash
      guard share.isWhole else {
        // What waited since an earlier session may have rotted here, and waits without a sum: the run finds that its payload is lost.
        if isOfOneSession { done.spoiled.append((staged.session, piece.name)) }
        return try removePieces(key)
      }
    }
    try transaction.addPiece(bytes, to: share)
    done.staged.put(share, from: isOfOneSession ? staged.session : nil)
  }

  mutating func removePieces(_ key: StagedKey) throws {
    guard done.staged[key] != nil else { return }
    try transaction.removePieces(key)
    done.staged.remove(key)
  }
}
