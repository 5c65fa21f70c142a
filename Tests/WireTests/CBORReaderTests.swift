import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("CBOR reader")
struct CBORReaderTests {
  @Test(
    "a count beyond what remains is refused before anything is made of it",
    arguments: [
      "9bffffffffffffffff", "bbffffffffffffffff", "5bffffffffffffffff", "7bffffffffffffffff", "9a00ffffff01",
      "a2000100",
    ])
  func hugeCounts(encoded: String) {
    var reader = CBORReader(bytes(encoded))
    #expect(kindOfFailure { try reader.skipValue() } == .truncated)
  }

  @Test(
    "map keys that do not ascend, or stand twice, are refused",
    arguments: [
      "a2616201616101", "a2616101616101", "a262616101616201", "a2200100f6", "a2010101f6",
    ])
  func keyOrder(encoded: String) {
    var reader = CBORReader(bytes(encoded))
    #expect(kindOfFailure { try reader.skipValue() } == .keyOrder)
  }

  @Test("nesting is passed over up to the limit and refused beyond it")
  func depth() {
    let limit = CBOR.depthLimit
    for nest in [0x81, 0xc1] as [UInt8] {
      var exact = CBORReader([UInt8](repeating: nest, count: limit - 1) + [0])
      #expect(throws: Never.self) { try exact.skipValue() }
      var beyond = CBORReader([UInt8](repeating: nest, count: limit) + [0])
      #expect(throws: CBORError(.tooDeep, at: limit)) { try beyond.skipValue() }
      var flood = CBORReader([UInt8](repeating: nest, count: 1_000_000))
      #expect(throws: CBORError.self) { try flood.skipValue() }
    }
  }

  @Test("text is accepted exactly where the standard library finds UTF-8", arguments: 0..<40 as Range<UInt64>)
  func utf8(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<500 {
      var content = Array(generator.text(maximum: 20).utf8)
      if generator.chance(80) { content = Mutations(original: content).random(&generator) }
      let expected = String(validating: content, as: UTF8.self) != nil
      #expect(content.withUnsafeBytes(isWellFormedUTF8) == expected, "\(hex(content))")
    }
  }

  @Test("every sequence of two bytes, and every second byte of longer forms, is judged as the standard library does")
  func utf8Edges() {
    let tails: [[UInt8]] = [[], [0x80], [0x80, 0xbf], [0x80, 0xc0]]
    let judgedOtherwise = (0x8000...0xffff).flatMap { pair in
      tails.map { [UInt8(pair >> 8), UInt8(pair & 0xff)] + $0 }.filter {
        $0.withUnsafeBytes(isWellFormedUTF8) != (String(validating: $0, as: UTF8.self) != nil)
      }
    }
    #expect(judgedOtherwise.isEmpty)
  }

  @Test("a slice is read at its own indices, and nothing beyond it is looked at")
  func slices() throws {
    let buffer: [UInt8] = [0xff, 0x82, 0x01, 0x42, 0x05, 0x06, 0xff]
    var reader = CBORReader(buffer[1..<6])
    try reader.readArrayHeader(count: 2)
    #expect(try reader.readUnsigned() == 1)
    #expect(try reader.readByteRange() == 4..<6)
    #expect(throws: CBORError(.truncated, at: 6)) { try reader.readUnsigned() }
    var short = CBORReader(buffer[1..<5])
    #expect(throws: CBORError(.truncated, at: 3)) { try short.skipValue() }
  }

  @Test("a number too large for its place, or of another type, is refused with its place")
  func types() {
    var number = CBORReader([0x19, 0x01, 0x00])
    #expect(throws: CBORError(.outOfRange, at: 0)) { try number.readUnsigned(UInt8.self) }
    var text = CBORReader([0x61, 0x61])
    #expect(throws: CBORError(.unexpectedType, at: 0)) { try text.readUnsigned() }
    #expect(throws: CBORError(.unexpectedType, at: 0)) { try text.readBool() }
    #expect(throws: CBORError(.unexpectedType, at: 0)) { try text.readNull() }
    #expect(throws: CBORError(.unexpectedType, at: 0)) { try text.readDouble() }
    #expect(throws: CBORError(.trailingBytes, at: 0)) { try text.finish() }
  }

  @Test("any bytes are read or refused, never a trap", arguments: 0..<20 as Range<UInt64>)
  func noise(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<2_000 {
      let noise = generator.bytes(generator.below(24))
      var skipper = CBORReader(noise)
      _ = try? skipper.skipValue()
      var reader = CBORReader(noise)
      if let value = try? reader.readValue() {
        var writer = CBORWriter()
        value.encode(to: &writer)
        #expect(writer.bytes == Array(noise[..<reader.offset]), "one value, one form")
      }
    }
  }
}
