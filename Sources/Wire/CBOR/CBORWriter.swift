import Replication

/// Writes deterministic CBOR (RFC 8949 §4.2.1): shortest heads and floats, definite lengths.
///
/// The order of map keys is the caller's: they ascend by their encoded bytes.
package struct CBORWriter: Sendable {
  package private(set) var bytes: [UInt8] = []

  package init(reserving byteCount: Int = 0) { bytes.reserveCapacity(byteCount) }

  /// Begins anew in the same room.
  package mutating func clear() { bytes.removeAll(keepingCapacity: true) }

  package mutating func unsigned(_ value: UInt64) { head(.unsigned, value) }
  package mutating func unsigned(_ value: some FixedWidthInteger & UnsignedInteger) { head(.unsigned, UInt64(value)) }

  package mutating func int(_ value: Int64) {
    // −1 − n has the bits of n inverted, so no negation can overflow.
    value < 0 ? head(.negative, UInt64(bitPattern: ~value)) : head(.unsigned, UInt64(bitPattern: value))
  }

  package mutating func byteString(_ content: [UInt8]) {
    head(.bytes, UInt64(content.count))
    bytes.append(contentsOf: content)
  }

  package mutating func byteString(_ content: ArraySlice<UInt8>) {
    head(.bytes, UInt64(content.count))
    bytes.append(contentsOf: content)
  }

  package mutating func text(_ text: Text) {
    head(.text, UInt64(text.utf8.count))
    bytes.append(contentsOf: text.utf8)
  }

  package mutating func arrayHeader(_ count: Int) { head(.array, UInt64(count)) }
  package mutating func mapHeader(_ count: Int) { head(.map, UInt64(count)) }
  package mutating func tag(_ number: UInt64) { head(.tag, number) }
  package mutating func bool(_ value: Bool) { bytes.append(value ? CBOR.true : CBOR.false) }
  package mutating func null() { bytes.append(CBOR.null) }

  /// Half, single or double precision, whichever is the shortest that keeps the value, the sign of zero included.
  package mutating func double(_ value: Double) {
    precondition(value.isFinite, "NaN and infinities have no place in the protocol")
    let single = Float(value)
    guard Double(single) == value else {
      bytes.append(CBOR.doubleFloat)
      return bigEndian(value.bitPattern, byteCount: 8)
    }
    guard let half = HalfFloat.bits(of: single) else {
      bytes.append(CBOR.singleFloat)
      return bigEndian(UInt64(single.bitPattern), byteCount: 4)
    }
    bytes.append(CBOR.halfFloat)
    bigEndian(UInt64(half), byteCount: 2)
  }

  /// Items that are encoded already, taken over as they are.
  package mutating func encoded(_ items: [UInt8]) { bytes.append(contentsOf: items) }
  package mutating func encoded(_ items: ArraySlice<UInt8>) { bytes.append(contentsOf: items) }

  mutating func head(_ major: CBOR.Major, _ argument: UInt64) {
    let type = major.rawValue << 5
    switch argument {
    case 0..<24: bytes.append(type | UInt8(truncatingIfNeeded: argument))
    case 24...0xff: headWithArgument(type | 24, argument, byteCount: 1)
    case 0x100...0xffff: headWithArgument(type | 25, argument, byteCount: 2)
    case 0x1_0000...0xffff_ffff: headWithArgument(type | 26, argument, byteCount: 4)
    default: headWithArgument(type | 27, argument, byteCount: 8)
    }
  }

  private mutating func headWithArgument(_ initial: UInt8, _ argument: UInt64, byteCount: Int) {
    bytes.append(initial)
    bigEndian(argument, byteCount: byteCount)
  }

  /// The low `byteCount` bytes of a word.
  mutating func bigEndian(_ word: UInt64, byteCount: Int) {
    guard byteCount < 8 else { return bytes.append(bigEndian: word) }
    for place in stride(from: (byteCount - 1) * 8, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(place)))
    }
  }
}
