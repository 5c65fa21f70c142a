// Not generic, unlike the core's `appendBigEndian`: generics are not specialised across modules, and these run in the
// loops that every received change passes through.
extension [UInt8] {
  /// Eight bytes, big-endian.
  mutating func append(bigEndian word: UInt64) {
    Swift.withUnsafeBytes(of: word.bigEndian) { append(contentsOf: $0) }
  }

  /// Content with 00 written as 00 FF, closed by 00 (rule M2).
  mutating func append(escaped content: UnsafeRawBufferPointer) {
    for byte in content {
      append(byte)
      if byte == 0 { append(0xff) }
    }
    append(0)
  }
}
