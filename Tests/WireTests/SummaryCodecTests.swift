import Replication
import Testing

@testable import Wire

@Suite("Steps of a comparison on the wire") struct SummaryCodecTests {
  private func listing(_ bucket: Int, _ count: Int) -> BucketListing {
    BucketListing(
      bucket: bucket, entries: (0..<UInt64(count)).map { BucketListing.Entry(prefix: $0, term: .max - $0) })
  }

  private func isRead(_ step: Summary.Step) throws -> Bool {
    let message = Message.summary(Summary(.max, step))
    return try MessageCodec.decode(MessageCodec.encode(message)[...]) == message
  }

  @Test("every step reads back as it was written, also at its bounds and where it is empty")
  func roundTrips() throws {
    let all = Summary.listedLimit
    let steps: [Summary.Step] = [
      .digest(.max), .equal, .buckets((0..<64).map { $0 }), .partitions(equal: 5, []),
      .partitions(equal: 0, [listing(0, 0), listing(63, 3)]),
      .partitions(equal: 0, [listing(1, all - 1), listing(2, 1)]),
      .differing([]), .differing([UInt64](repeating: 7, count: all)),
    ]
    for step in steps { #expect(try isRead(step)) }
  }

  @Test("what is beyond its bounds, out of order or of another length is refused")
  func refused() {
    let all = Summary.listedLimit
    let steps: [Summary.Step] = [
      .buckets([1]), .partitions(equal: 0, [listing(64, 0)]), .partitions(equal: 0, [listing(2, 0), listing(1, 0)]),
      .partitions(equal: 0, [listing(1, all), listing(2, 1)]), .differing([UInt64](repeating: 7, count: all + 1)),
    ]
    for step in steps { #expect(throws: CBORError.self) { try isRead(step) } }
    let frames: [[UInt8]] = [
      [0x83, 0x0a, 0x01, 0x00], [0x84, 0x0a, 0x01, 0x01, 0x40], [0x83, 0x0a, 0x01, 0x05],
      [0x84, 0x0a, 0x01, 0x00, 0x47, 1, 2, 3, 4, 5, 6, 7], [0x84, 0x0a, 0x01, 0x04, 0x41, 1], [0x82, 0x0a, 0x01],
      [0x85, 0x0a, 0x01, 0x03, 0x48, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0x82, 0x01, 0x48, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
    for frame in frames { #expect(throws: CBORError.self) { try MessageCodec.decode(frame[...]) } }
  }
}
