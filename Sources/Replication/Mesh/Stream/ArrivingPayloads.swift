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
  /// The payload whose pieces came last on a stream that was asked for.
  private var arriving: [UInt64: Arriving] = [:]
  /// Under the number 0 evidence goes, and the stream that equal summaries opened: their payloads may come by turns, and one of
  /// the latter is left where it is when the stream is asked for. Those that came last stand last.
  private var unnumbered: [Arriving] = []
  /// Of unnumbered payloads, as many as are remembered.
  private static let unnumberedLimit = 8

  /// The stream is asked for anew. What came on the one before is void, but for evidence, which stands outside.
  mutating func begin(naming staged: [StagedPayload]) {
    arriving = [:]
    named = Dictionary(staged.map { ($0.hash, $0.byteCount) }) { first, _ in first }
  }

  mutating func distrustOthers() { namesOwnAlone = true }

  /// On a stream one payload after the other. `stream`: the number of the one that is open.
  mutating func take(_ piece: PayloadPiece, on stream: UInt64?) -> Judgement {
    guard piece.stream != PayloadPiece.evidence else { return takeUnnumbered(piece) }
    let judgement = judge(piece, on: stream)
    if case .taken = judgement {
      arriving[piece.stream] = Arriving(hash: piece.hash, total: piece.total, end: piece.end)
    }
    return judgement
  }

  /// What came before a piece may have been passed over: no pull has numbered these. One that was left may begin again.
  private mutating func takeUnnumbered(_ piece: PayloadPiece) -> Judgement {
    let before = unnumbered.first { $0.hash == piece.hash && !$0.isWhole }
    if piece.offset > 0 {
      guard let before else { return .isPassedOver }
      guard before.total == piece.total, before.end == piece.offset else { return .isOutOfOrder }
    }
    unnumbered.removeAll { $0.hash == piece.hash }
    if unnumbered.count >= ArrivingPayloads.unnumberedLimit { unnumbered.removeFirst() }
    unnumbered.append(Arriving(hash: piece.hash, total: piece.total, end: piece.end))
    return .taken
  }

  private func judge(_ piece: PayloadPiece, on stream: UInt64?) -> Judgement {
    if let before = arriving[piece.stream], !before.isWhole {
      let follows = before.hash == piece.hash && before.total == piece.total && before.end == piece.offset
      return follows ? .taken : .isOutOfOrder
    }
    return piece.offset == 0 || piece.stream == stream && named[piece.hash] == piece.offset ? .taken : .isOutOfOrder
  }

  /// The peer has done its part for the payload: all of it came, or the pull said that it was here.
  func wasSent(_ hash: Digest, byteCount: UInt64, on stream: UInt64) -> Bool {
    let arrived = stream == PayloadPiece.evidence ? unnumbered : arriving[stream].map { [$0] } ?? []
    return arrived.contains { $0.hash == hash && $0.isWhole } || named[hash] == byteCount
  }
}
