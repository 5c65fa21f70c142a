/// The part of RFC 8949 that the protocol uses.
package enum CBOR {
  /// Major types 0–6 (RFC 8949 §3.1). Of type 7 only false, true, null and finite floats occur.
  package enum Major: UInt8, Sendable {
    case unsigned = 0
    case negative = 1
    case bytes = 2
    case text = 3
    case array = 4
    case map = 5
    case tag = 6
    case simple = 7

    /// The type that an initial byte names. Written out, this is three instructions; `init(rawValue:)` is a call.
    @inline(__always)
    init(initialByte: UInt8) {
      switch initialByte >> 5 {
      case 0: self = .unsigned
      case 1: self = .negative
      case 2: self = .bytes
      case 3: self = .text
      case 4: self = .array
      case 5: self = .map
      case 6: self = .tag
      default: self = .simple
      }
    }
  }

  static let `false`: UInt8 = 0xf4
  static let `true`: UInt8 = 0xf5
  static let null: UInt8 = 0xf6
  static let halfFloat: UInt8 = 0xf9
  static let singleFloat: UInt8 = 0xfa
  static let doubleFloat: UInt8 = 0xfb
  static let emptyArray: UInt8 = 0x80
  static let emptyMap: UInt8 = 0xa0

  /// Arrays, maps and tags within one another, in anything that is skipped without being understood.
  package static let depthLimit = 96

  /// Tags of values that CBOR has no type for. 37 is registered for UUIDs; the others are the protocol's own.
  package enum Tag {
    package static let uuid: UInt64 = 37
    package static let date: UInt64 = 53505
    package static let objectID: UInt64 = 53506
    package static let blob: UInt64 = 53507
    /// Reserved: refused as such, so that a later version can give it its meaning.
    package static let decimal128: UInt64 = 53508
  }
}

/// IEEE 754 binary16, by bits: `Float16` does not exist on every platform that the package builds on.
enum HalfFloat {
  /// Nil if half precision does not hold the finite value exactly.
  static func bits(of value: Float) -> UInt16? {
    let bits = value.bitPattern
    let sign = UInt16(truncatingIfNeeded: bits >> 16) & 0x8000
    let exponent = Int(bits >> 23 & 0xff) - 127
    let fraction = bits & 0x7f_ffff
    if bits & 0x7fff_ffff == 0 { return sign }
    if (-14...15).contains(exponent), fraction & 0x1fff == 0 {
      return sign | UInt16(truncatingIfNeeded: (exponent + 15) << 10) | UInt16(truncatingIfNeeded: fraction >> 13)
    }
    guard (-24 ... -15).contains(exponent) else { return nil }
    let significand = fraction | 0x80_0000
    let shift = UInt32(-1 - exponent)
    guard significand & ((1 << shift) - 1) == 0 else { return nil }
    return sign | UInt16(truncatingIfNeeded: significand >> shift)
  }

  /// Nil for infinities and NaN.
  static func value(of bits: UInt16) -> Double? {
    let exponent = Int(bits >> 10 & 0x1f)
    let fraction = Double(bits & 0x3ff)
    let sign: FloatingPointSign = bits >> 15 == 1 ? .minus : .plus
    switch exponent {
    case 0: return Double(sign: sign, exponent: -24, significand: fraction)
    case 31: return nil
    default: return Double(sign: sign, exponent: exponent - 25, significand: fraction + 1024)
    }
  }
}
