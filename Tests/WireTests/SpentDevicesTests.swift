import Replication
import Testing

@testable import Wire

@Suite struct SpentDevicesTests {
  private func key(_ byte: UInt8) -> PublicKey { PublicKey(Digest(words: (UInt64(byte) << 56, 0, 0, 0))) }

  @Test("who has spent what he may is told in order, read back as told, and refused out of order")
  func roundTrip() throws {
    let told = Message.spent(SpentDevices(places: [key(9), key(2)], branches: [key(3)]))
    var bytes = MessageCodec.encode(told)
    #expect(Array(bytes.prefix(6)) == [0x83, 0x18, 64, 0x82, 0x58, 32] && bytes[6] == 2)
    #expect(try MessageCodec.decode(bytes[...]) == told)
    bytes[6] = 3
    bytes[7 + 31 + 2] = 2
    #expect(throws: CBORError.self) { try MessageCodec.decode(bytes[...]) }
  }
}
