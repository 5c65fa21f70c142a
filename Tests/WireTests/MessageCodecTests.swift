import Replication
import Testing

@testable import Wire

@Suite("Session messages")
struct MessageCodecTests {
  @Test("fields are read back, and those of a later version passed over")
  func fields() throws {
    var writer = MessageWriter(kind: 9, fieldCount: 3)
    writer.fields.unsigned(5 as UInt64)
    writer.fields.text("a")
    writer.fields.encoded(bytes("a1616182f5f4"))
    var reader = try MessageReader(writer.bytes[...])
    #expect(reader.kind == 9)
    try reader.require(2)
    #expect(try reader.fields.readUnsigned() == 5)
    #expect(try reader.fields.readText() == "a")
    try reader.finish(after: 2)
    #expect(reader.fields.isAtEnd)
  }

  @Test("a message with too few fields, bytes behind it, or none at all is refused")
  func refused() throws {
    var few = try MessageReader(bytes("820105")[...])
    #expect(kindOfFailure { try few.require(2) } == .wrongLength)
    _ = try few.fields.readUnsigned()
    #expect(kindOfFailure { try few.finish(after: 2) } == .wrongLength)
    var long = try MessageReader(bytes("82010500")[...])
    _ = try long.fields.readUnsigned()
    #expect(kindOfFailure { try long.finish(after: 1) } == .trailingBytes)
    for encoded in ["", "80", "8161", "01", "8120"] {
      #expect(throws: CBORError.self) { try MessageReader(bytes(encoded)[...]) }
    }
  }
}
