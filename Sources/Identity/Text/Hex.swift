/// Lower-case hexadecimal: the text form of ids.
package enum Hex {
  private static let digits = Array("0123456789abcdef".utf8)

  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var out: [UInt8] = []
    out.reserveCapacity(bytes.underestimatedCount * 2)
    for byte in bytes {
      out.append(digits[Int(byte >> 4)])
      out.append(digits[Int(byte & 0x0f)])
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Takes both cases. Nil for an odd length or any other character.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var out: [UInt8] = []
    var high: UInt8?
    for character in text.utf8 {
      guard let nibble = value(of: character) else { return nil }
      if let first = high {
        out.append(first << 4 | nibble)
        high = nil
      } else {
        high = nibble
      }
    }
    return high == nil ? out : nil
  }

  private static func value(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
