import Identity
import Testing
import TestSupport

@Suite struct TextFormTests {
  /// RFC 4648 §10, without the padding.
  static let vectors = [
    ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB"),
    ("foobar", "MZXW6YTBOI"),
  ]

  @Test("base32 has the published form both ways", arguments: vectors)
  func base32(plain: String, coded: String) throws {
    #expect(Base32.encode(plain.utf8) == coded)
    #expect(try Base32.decode(coded) == Array(plain.utf8))
  }

  @Test("base32 and hexadecimal read back what they wrote")
  func roundTrips() throws {
    var generator = SplitMix64(seed: 0x5ea1)
    for count in 0..<100 {
      let bytes = generator.bytes(count)
      #expect(try Base32.decode(Base32.encode(bytes)) == bytes)
      #expect(Hex.decode(Hex.encode(bytes)) == bytes)
    }
  }

  @Test("base32 takes lower case, hyphens, blanks and line ends")
  func tolerance() throws { #expect(try Base32.decode(" mzxw-6yTB\r\noi\n") == Array("foobar".utf8)) }

  @Test("a foreign character is named with its place")
  func foreign() {
    #expect(throws: Base32.Invalid.character("0", place: 4)) { try Base32.decode("MZ-0XW6") }
    #expect(throws: Base32.Invalid.character("é", place: 1)) { try Base32.decode("éMZXW6") }
  }

  @Test(
    "base32 that ends in the middle of a byte, or with stray bits, is refused",
    arguments: ["M", "MZXW6Y", "MZ", "MZXQAA"])
  func incomplete(text: String) { #expect(throws: Base32.Invalid.incomplete) { try Base32.decode(text) } }

  @Test("hexadecimal refuses odd lengths and foreign characters", arguments: ["0", "0g", "x1", "00 ", "٠٠"])
  func hexadecimal(text: String) { #expect(Hex.decode(text) == nil) }
}
