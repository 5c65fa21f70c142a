import Testing

@testable import Replication

@Suite("Payloads that arrive in pieces") struct ArrivingPayloadsTests {
  private func payload(_ byte: UInt8, _ byteCount: Int = 100_000) -> ApartPayload {
    ApartPayload(
      hash: Digest(words: (UInt64(byte), 0, 0, 0)), bytes: [UInt8](repeating: byte, count: byteCount)[...])
  }

  private func pieces(_ payload: ApartPayload, on stream: UInt64) throws -> [PayloadPiece] {
    payload.pieces(from: 0, of: try PartitionName("room=a"), on: stream)
  }

  @Test("evidence may come between the pieces of a stream that equal summaries opened, and behind one that was left")
  func besideLevelStream() throws {
    var arriving = ArrivingPayloads()
    let (level, evidence) = (try pieces(payload(1), on: 0), try pieces(payload(2), on: 0))
    for piece in [level[0], evidence[0], evidence[1], level[1]] {
      guard case .taken = arriving.take(piece, on: 0) else {
        Issue.record("a piece at \(piece.offset) is not taken")
        return
      }
    }
    for number in [UInt8(1), 2] {
      #expect(arriving.wasSent(payload(number).hash, byteCount: 100_000, on: 0))
    }
    guard case .isPassedOver = arriving.take(try pieces(payload(3), on: 0)[1], on: 0) else {
      Issue.record("what began elsewhere is passed over")
      return
    }
  }

  @Test("on a stream that was asked for one payload comes after the other")
  func numbered() throws {
    var arriving = ArrivingPayloads()
    arriving.begin(naming: [])
    let (first, other) = (try pieces(payload(1), on: 5), try pieces(payload(2), on: 5))
    guard case .taken = arriving.take(first[0], on: 5), case .isOutOfOrder = arriving.take(other[0], on: 5) else {
      Issue.record("another payload is out of order")
      return
    }
  }
}
