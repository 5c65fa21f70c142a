import Replication

/// What was said on one connection, each way, of streams: so that nothing goes twice.
struct SentBook {
  struct Stream: Hashable {
    let connection: UInt64
    /// The sender's.
    let side: Int
    let partition: PartitionName
  }

  struct Kept {
    /// Of the pull that opened it; 0 where equal summaries did.
    var number: UInt64 = 0
    var runs: Set<Int> = []
    /// What the pull said to hold of payloads.
    var staged: [Digest: UInt64] = [:]
    /// Payloads of which a piece went.
    var begun: Set<Digest> = []
    /// The one of which the rest is still to go.
    var underWay: Digest?
  }

  private var streams: [Stream: Kept] = [:]

  /// The peer asked for the stream: all may go once more.
  mutating func pulled(_ stream: Stream, number: UInt64, _ staged: [StagedPayload]) {
    streams[stream] = Kept(
      number: number, staged: Dictionary(staged.map { ($0.hash, $0.byteCount) }) { first, _ in first })
  }

  /// Nothing that went is counted any more: what the two have in common has changed.
  mutating func forget(_ connection: UInt64) {
    for stream in streams.keys where stream.connection == connection { streams[stream]?.runs = [] }
  }

  mutating func ended(_ connection: UInt64) { streams = streams.filter { $0.key.connection != connection } }

  /// False where the run went on this stream before.
  mutating func send(_ run: Int, on stream: Stream, number: UInt64) -> Bool {
    guard streams[stream, default: Kept()].number == number else { return true }
    return streams[stream, default: Kept()].runs.insert(run).inserted
  }

  /// Is a payload under way on this stream of which the rest has to go first?
  func isBusy(_ stream: Stream, number: UInt64, but hash: Digest? = nil) -> Bool {
    guard let kept = streams[stream], kept.number == number, let underWay = kept.underWay else { return false }
    return underWay != hash
  }

  /// What goes on a stream that nobody has pulled may be left where it is when somebody does.
  mutating func go(_ piece: PayloadPiece, on stream: Stream) {
    guard streams[stream]?.number == piece.stream else { return }
    streams[stream]?.underWay = piece.end < piece.total ? piece.hash : nil
  }

  /// False where the first piece begins below what the pull said to hold.
  mutating func send(_ piece: PayloadPiece, on stream: Stream) -> Bool {
    guard let kept = streams[stream], kept.number == piece.stream,
      streams[stream]?.begun.insert(piece.hash).inserted == true
    else { return true }
    return piece.offset >= kept.staged[piece.hash] ?? 0
  }
}
