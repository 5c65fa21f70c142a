/// Payloads that travel apart, as they come on one stream: each from its beginning, or from where the pull said that it is
/// lacking.
struct ArrivingPayloads: Sendable {
  /// How far one has come.
  private struct Arriving: Sendable {
    let hash: Digest
    let total: UInt64
    var end: UInt64
    var isWhole: Bool { end == total }
  }

  enum Judgement {
    case taken
    case isPassedOver
    case isOutOfOrder
  }

  /// Bytes that this side said to hold when it asked for the stream.
  private(set) var named: [Digest: UInt64] = [:]
  /// What others sent whole was lost once, and is not relied on again.
  private(set) var namesOwnAlone = false
  /// The payload whose pieces came last: on the stream under its number, and ahead of evidence.
  private var arriving: [UInt64: Arriving] = [:]

  /// The stream is asked for anew. What came on the one before is void, but for evidence, which stands outside.
  mutating func begin(naming staged: [StagedPayload]) {
    arriving = arriving.filter { $0.key == PayloadPiece.evidence }
    named = Dictionary(staged.map { ($0.hash, $0.byteCount) }) { first, _ in first }
  }

  mutating func distrustOthers() { namesOwnAlone = true }

  /// One payload after the other. `stream`: the number of the one that is open.
  mutating func take(_ piece: PayloadPiece, on stream: UInt64?) -> Judgement {
    let judgement = judge(piece, on: stream)
    if case .taken = judgement {
      arriving[piece.stream] = Arriving(hash: piece.hash, total: piece.total, end: piece.end)
    }
    return judgement
  }

  private func judge(_ piece: PayloadPiece, on stream: UInt64?) -> Judgement {
    if let before = arriving[piece.stream], !before.isWhole {
      let follows = before.hash == piece.hash && before.total == piece.total && before.end == piece.offset
      return follows ? .taken : .isOutOfOrder
    }
    if piece.offset == 0 || piece.stream == stream && named[piece.hash] == piece.offset { return .taken }
    // What came before it may have been passed over: no pull has numbered these.
    return piece.stream == PayloadPiece.evidence ? .isPassedOver : .isOutOfOrder
  }

  /// The peer has done its part for the payload: all of it came, or the pull said that it was here.
  func wasSent(_ hash: Digest, byteCount: UInt64, on stream: UInt64) -> Bool {
    arriving[stream].map { $0.hash == hash && $0.isWhole } ?? false || named[hash] == byteCount
  }
}
