/// A session message is a CBOR array: its kind, then its fields.
package struct MessageWriter: Sendable {
  /// Where the fields are written, exactly as many as were announced.
  package var fields: CBORWriter

  package init(kind: UInt64, fieldCount: Int, reserving byteCount: Int = 64) {
    fields = CBORWriter(reserving: byteCount)
    fields.arrayHeader(fieldCount + 1)
    fields.unsigned(kind)
  }

  package var bytes: [UInt8] { fields.bytes }
}

/// Reads what ``MessageWriter`` writes. Fields that a later version appended are passed over.
package struct MessageReader: Sendable {
  package let kind: UInt64
  /// Stands at the first field.
  package var fields: CBORReader
  private let fieldCount: Int

  package init(_ bytes: ArraySlice<UInt8>) throws(CBORError) {
    var reader = CBORReader(bytes)
    let count = try reader.readArrayHeader()
    guard count > 0 else { throw CBORError(.wrongLength, at: bytes.startIndex) }
    kind = try reader.readUnsigned()
    (fields, fieldCount) = (reader, count - 1)
  }

  /// Refuses a message with fewer fields than this version reads of its kind.
  package func require(_ count: Int) throws(CBORError) {
    guard fieldCount >= count else { throw CBORError(.wrongLength, at: fields.offset) }
  }

  /// Passes over fields beyond the `count` that were read, and refuses what follows the message.
  package mutating func finish(after count: Int) throws(CBORError) {
    try require(count)
    for _ in count..<fieldCount { try fields.skipValue() }
    try fields.finish()
  }
}
