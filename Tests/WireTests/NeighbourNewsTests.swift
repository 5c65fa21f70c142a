import Replication
import Testing

@testable import Wire

@Suite("Neighbours as bytes")
struct NeighbourNewsTests {
  private func marks(_ words: [UInt64]) -> Set<DeviceMark> { Set(words.map { DeviceMark(word: $0) }) }

  @Test("neighbours are told in order, read back as told, and refused out of order or twice")
  func roundTrip() throws {
    let told = Message.neighbours(NeighbourNews(added: marks([9, 2, .max]), removed: marks([3])))
    let bytes = MessageCodec.encode(told)
    #expect(Array(bytes.prefix(5)) == [0x83, 0x18, 65, 0x58, 24])
    #expect(try MessageCodec.decode(bytes[...]) == told)
    for last in [9, 10] as [UInt8] {
      var wrong = bytes
      wrong[5 + 7] = last
      #expect(throws: CBORError.self) { try MessageCodec.decode(wrong[...]) }
    }
  }

  @Test("a list that is too long, or no whole number of marks, is refused")
  func bounds() throws {
    let most = NeighbourNews(added: marks(Array(0..<UInt64(NeighbourNews.limit))))
    #expect(try MessageCodec.decode(MessageCodec.encode(.neighbours(most))[...]) == .neighbours(most))
    let more = NeighbourNews(removed: marks(Array(0...UInt64(NeighbourNews.limit))))
    #expect(throws: CBORError.self) { try MessageCodec.decode(MessageCodec.encode(.neighbours(more))[...]) }
    #expect(throws: CBORError.self) { try MessageCodec.decode([0x83, 0x18, 65, 0x41, 1, 0x40][...]) }
    #expect(throws: CBORError.self) { try MessageCodec.decode([0x82, 0x18, 65, 0x40][...]) }
  }
}
