/// Base32 of RFC 4648 §6 without padding: upper-case letters and digits 2–7, which QR codes hold in their compact mode.
package enum Base32 {
  package enum Invalid: Error, Equatable {
    /// `place` counts the characters of the text from 1.
    case character(Character, place: Int)
    /// No number of whole bytes has this many characters, or bits are set behind the last byte.
    case incomplete
  }

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var out: [UInt8] = []
    var (bits, count) = (0 as UInt32, 0)
    for byte in bytes {
      (bits, count) = (bits << 8 | UInt32(byte), count + 8)
      while count >= 5 {
        count -= 5
        out.append(alphabet[Int(bits >> UInt32(count) & 31)])
      }
      bits &= (1 << UInt32(count)) - 1
    }
    if count > 0 { out.append(alphabet[Int(bits << UInt32(5 - count) & 31)]) }
    return String(decoding: out, as: UTF8.self)
  }

  /// Takes lower case, and passes over blanks, line ends and hyphens: people type and wrap codes.
  package static func decode(_ text: some StringProtocol) throws(Invalid) -> [UInt8] {
    var out: [UInt8] = []
    var (bits, count, place) = (0 as UInt32, 0, 0)
    for character in text {
      place += 1
      if character.isWhitespace || character == "-" { continue }
      guard let value = value(of: character) else { throw .character(character, place: place) }
      (bits, count) = (bits << 5 | UInt32(value), count + 5)
      if count >= 8 {
        count -= 8
        out.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        bits &= (1 << UInt32(count)) - 1
      }
    }
    guard count < 5, bits == 0 else { throw .incomplete }
    return out
  }

  private static func value(of character: Character) -> UInt8? {
    switch character.asciiValue {
    case let letter? where letter >= UInt8(ascii: "A") && letter <= UInt8(ascii: "Z"): letter - UInt8(ascii: "A")
    case let letter? where letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z"): letter - UInt8(ascii: "a")
    case let digit? where digit >= UInt8(ascii: "2") && digit <= UInt8(ascii: "7"): digit - UInt8(ascii: "2") + 26
    default: nil
    }
  }
}
