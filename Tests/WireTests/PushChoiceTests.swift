import Replication
import Testing

@testable import Wire

@Suite("Push choices as bytes")
struct PushChoiceTests {
  private let name: PartitionName

  init() throws { name = try PartitionName("a=b") }

  private func chains(_ range: Range<Int>) -> Set<ReplicaID> { Set(range.map { ReplicaID(high: 0, low: UInt64($0)) }) }

  private func decoded(_ choice: PushChoice) throws -> Message? {
    try MessageCodec.decode(MessageCodec.encode(.pushChoice(choice))[...])
  }

  @Test("chains are told in order, read back as told, and refused out of order or twice")
  func roundTrip() throws {
    let choice = PushChoice(name, eager: chains(1..<3), lazy: chains(5..<9), released: chains(3..<4))
    #expect(try decoded(choice) == .pushChoice(choice))
    let bytes = MessageCodec.encode(.pushChoice(choice))
    #expect(Array(bytes.prefix(3)) == [0x85, 0x18, 66])
    // The first of the eager ones ends there: the same as the second, and above it.
    for last in [2, 3] as [UInt8] {
      var wrong = bytes
      wrong[3 + 4 + 1 + 17 - 1] = last
      #expect(throws: CBORError.self) { try MessageCodec.decode(wrong[...]) }
    }
  }

  @Test("too many chains in all, one in two lists, and a list that is missing are refused")
  func bounds() throws {
    let most = PushChoice(name, eager: chains(0..<128), lazy: chains(128..<256))
    #expect(try decoded(most) == .pushChoice(most))
    #expect(throws: CBORError.self) {
      try decoded(PushChoice(name, eager: chains(0..<128), lazy: chains(128..<256), released: chains(256..<257)))
    }
    #expect(throws: CBORError.self) { try decoded(PushChoice(name, eager: chains(0..<2), lazy: chains(1..<3))) }
    let short: [UInt8] = [0x84, 0x18, 66, 0x63, 0x61, 0x3d, 0x62, 0x80, 0x80]
    #expect(throws: CBORError.self) { try MessageCodec.decode(short[...]) }
  }
}
