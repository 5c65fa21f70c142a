import Replication

/// A cursor over deterministic CBOR (RFC 8949 §4.2.1). Anything else is refused with its kind and place.
///
/// Refused: heads and floats longer than need be, indefinite lengths, map keys that do not ascend, NaN, infinities,
/// undefined and unassigned simple values. A count is compared with what remains before it is believed. Offsets are
/// indices of the buffer, so a result can be a range of it and nothing need be copied.
package struct CBORReader: Sendable {
  package let bytes: ArraySlice<UInt8>
  /// Index of the next byte, at most ``end``.
  package internal(set) var offset: Int
  package let end: Int

  package init(_ bytes: ArraySlice<UInt8>) {
    (self.bytes, offset, end) = (bytes, bytes.startIndex, bytes.endIndex)
  }

  package init(_ bytes: [UInt8]) { self.init(bytes[...]) }

  package var remaining: Int { end - offset }
  package var isAtEnd: Bool { offset == end }

  /// Refuses whatever follows the last item.
  package func finish() throws(CBORError) {
    guard isAtEnd else { throw CBORError(.trailingBytes, at: offset) }
  }

  /// The initial byte of the next item.
  @inline(__always)
  func initialByte() throws(CBORError) -> UInt8 {
    guard offset < end else { throw CBORError(.truncated, at: offset) }
    return bytes[offset]
  }

  /// The major type of the next item, without moving.
  @inline(__always)
  package func nextMajor() throws(CBORError) -> CBOR.Major {
    CBOR.Major(initialByte: try initialByte())
  }

  @inline(__always)
  mutating func argument(of major: CBOR.Major) throws(CBORError) -> UInt64 {
    let initial = try initialByte()
    guard initial >> 5 == major.rawValue else { throw CBORError(.unexpectedType, at: offset) }
    return try argument(initial)
  }

  /// The argument of the head whose initial byte lies at the cursor; not for major type 7.
  @inline(__always)
  mutating func argument(_ initial: UInt8) throws(CBORError) -> UInt64 {
    let low = initial & 0x1f
    guard low < 24 else { return try longArgument(low) }
    offset += 1
    return UInt64(low)
  }

  private mutating func longArgument(_ low: UInt8) throws(CBORError) -> UInt64 {
    let start = offset
    guard low <= 27 else { throw CBORError(low == 31 ? .indefiniteLength : .unsupported, at: start) }
    let value = try word(byteCount: 1 << Int(low - 24))
    // What each width is there for begins where the width below ends.
    let least: UInt64 =
      switch low {
      case 24: 24
      case 25: 0x100
      case 26: 0x1_0000
      default: 0x1_0000_0000
      }
    guard value >= least else { throw CBORError(.notShortest, at: start) }
    return value
  }

  /// The big-endian word behind an initial byte.
  mutating func word(byteCount: Int) throws(CBORError) -> UInt64 {
    guard remaining > byteCount else { throw CBORError(.truncated, at: end) }
    var value: UInt64 = 0
    for place in offset + 1...offset + byteCount { value = value << 8 | UInt64(bytes[place]) }
    offset += 1 + byteCount
    return value
  }
}

extension CBORReader {
  @inline(__always)
  package mutating func readUnsigned() throws(CBORError) -> UInt64 { try argument(of: .unsigned) }

  /// An unsigned integer of a narrower type.
  package mutating func readUnsigned<T: FixedWidthInteger & UnsignedInteger>(
    _ type: T.Type
  ) throws(CBORError) -> T {
    let start = offset
    guard let value = T(exactly: try readUnsigned()) else { throw CBORError(.outOfRange, at: start) }
    return value
  }

  package mutating func readInt() throws(CBORError) -> Int64 {
    let start = offset
    let initial = try initialByte()
    guard initial >> 5 <= CBOR.Major.negative.rawValue else { throw CBORError(.unexpectedType, at: start) }
    guard let magnitude = Int64(exactly: try argument(initial)) else { throw CBORError(.outOfRange, at: start) }
    return initial >> 5 == 0 ? magnitude : ~magnitude
  }

  package mutating func readBool() throws(CBORError) -> Bool {
    let initial = try initialByte()
    guard initial == CBOR.true || initial == CBOR.false else { throw CBORError(.unexpectedType, at: offset) }
    offset += 1
    return initial == CBOR.true
  }

  package mutating func readNull() throws(CBORError) {
    guard try initialByte() == CBOR.null else { throw CBORError(.unexpectedType, at: offset) }
    offset += 1
  }

  package mutating func readDouble() throws(CBORError) -> Double {
    let start = offset
    let value: Double
    switch try initialByte() {
    case CBOR.halfFloat:
      guard let half = HalfFloat.value(of: UInt16(truncatingIfNeeded: try word(byteCount: 2))) else {
        throw CBORError(.notFinite, at: start)
      }
      return half
    case CBOR.singleFloat:
      let single = Float(bitPattern: UInt32(truncatingIfNeeded: try word(byteCount: 4)))
      guard !single.isFinite || HalfFloat.bits(of: single) == nil else { throw CBORError(.notShortest, at: start) }
      value = Double(single)
    case CBOR.doubleFloat:
      value = Double(bitPattern: try word(byteCount: 8))
      guard !value.isFinite || Double(Float(value)) != value else { throw CBORError(.notShortest, at: start) }
    default: throw CBORError(.unexpectedType, at: start)
    }
    guard value.isFinite else { throw CBORError(.notFinite, at: start) }
    return value
  }

  /// Where the content of a byte string lies.
  @inline(__always)
  package mutating func readByteRange() throws(CBORError) -> Range<Int> { try content(of: .bytes) }

  package mutating func readBytes() throws(CBORError) -> ArraySlice<UInt8> { bytes[try readByteRange()] }

  /// Where the content of a text lies; it is well-formed UTF-8.
  @inline(__always)
  package mutating func readTextRange() throws(CBORError) -> Range<Int> {
    let range = try content(of: .text)
    guard withContent(range, isWellFormedUTF8) else { throw CBORError(.invalidUTF8, at: range.lowerBound) }
    return range
  }

  package mutating func readText() throws(CBORError) -> Text { text(at: try readTextRange()) }

  /// The number of items, of which each takes at least one byte.
  @inline(__always)
  package mutating func readArrayHeader() throws(CBORError) -> Int { try count(of: .array, itemByteCount: 1) }

  /// The number of items of an array that must have this many.
  package mutating func readArrayHeader(count: Int) throws(CBORError) {
    let start = offset
    guard try readArrayHeader() == count else { throw CBORError(.wrongLength, at: start) }
  }

  package mutating func readMapHeader() throws(CBORError) -> Int { try count(of: .map, itemByteCount: 2) }

  package mutating func readTag() throws(CBORError) -> UInt64 { try argument(of: .tag) }

  @inline(__always)
  private mutating func count(of major: CBOR.Major, itemByteCount: Int) throws(CBORError) -> Int {
    let start = offset
    let count = try argument(of: major)
    guard count <= UInt64(remaining / itemByteCount) else { throw CBORError(.truncated, at: start) }
    return Int(truncatingIfNeeded: count)
  }

  @inline(__always)
  private mutating func content(of major: CBOR.Major) throws(CBORError) -> Range<Int> {
    let start = offset
    let count = try argument(of: major)
    guard count <= UInt64(remaining) else { throw CBORError(.truncated, at: start) }
    let range = offset..<offset + Int(truncatingIfNeeded: count)
    offset = range.upperBound
    return range
  }
}
