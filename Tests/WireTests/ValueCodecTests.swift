import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Values on the wire")
struct ValueCodecTests {
  @Test("decoding undoes encoding", arguments: 0..<30 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<200 {
      let value = generator.value()
      let encoded = encode(value)
      var reader = CBORReader(encoded)
      #expect(try reader.readValue() == value)
      try reader.finish()
    }
  }

  @Test("checking without building passes and refuses exactly what building does", arguments: 0..<30 as Range<UInt64>)
  func scanAgrees(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<300 {
      let damaged = Mutations(original: encode(generator.value())).random(&generator)
      var (builder, scanner) = (CBORReader(damaged), CBORReader(damaged))
      let built = failure { try builder.readValue() }
      let scanned = failure { try scanner.scanValue() }
      #expect(built == scanned, "\(hex(damaged))")
      #expect(built != nil || builder.offset == scanner.offset)
    }
  }

  @Test("what a damaged value still says has that one form", arguments: 0..<30 as Range<UInt64>)
  func oneForm(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<300 {
      let damaged = Mutations(original: encode(generator.value())).random(&generator)
      var reader = CBORReader(damaged)
      guard let value = try? reader.readValue() else { continue }
      #expect(encode(value) == Array(damaged[..<reader.offset]))
    }
  }

  @Test("a value cut off at any byte is refused", arguments: 0..<10 as Range<UInt64>)
  func truncation(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for part in Mutations(original: encode(generator.value(depth: 5))).truncations {
      var reader = CBORReader(part)
      #expect(kindOfFailure { try reader.readValue() } == .truncated)
    }
  }

  @Test("canonical bytes made from the encoding are those of the value", arguments: 0..<20 as Range<UInt64>)
  func canonicalBytes(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<100 {
      let value = generator.value()
      var reader = CBORReader(encode(value))
      var canonical: [UInt8] = []
      try reader.readCanonicalBytes(to: &canonical)
      #expect(canonical == value.canonicalBytes)
      #expect(reader.isAtEnd)
    }
  }

  @Test(
    "tagged values have their registered bytes",
    arguments: [
      (.date(0), "d9d10100"), (.date(-1), "d9d10120"),
      (.objectID(ObjectID(high: 0x0102_0304_0506_0708, low: 0x090a_0b0c)), "d9d1024c0102030405060708090a0b0c"),
      (.uuid(UUIDValue(high: 1, low: 2)), "d8255000000000000000010000000000000002"),
      (
        .blob(of: 5, listHash: nil),
        "d9d103845820" + String(repeating: "00", count: 32) + "0563612f6240"
      ),
      (
        .blob(of: 262_145, listHash: .zero),
        "d9d103845820" + String(repeating: "00", count: 32) + "1a0004000163612f625820"
          + String(repeating: "00", count: 32)
      ),
    ] as [(Value, String)])
  func tags(value: Value, encoded: String) {
    #expect(hex(encode(value)) == encoded)
  }

  @Test("shorter keys come first, whatever their order in the map")
  func keyOrder() {
    #expect(hex(encode(.map([("b", .null), ("aa", .null), ("", .null)]))) == "a360f66162f6626161f6")
  }

  @Test(
    "what breaks a rule of values is refused for its reason",
    arguments: [
      ("d9d104f6", .reservedTag), ("d9d105f6", .unknownTag), ("d9d1016161", .unexpectedType),
      ("d9d1024b0102030405060708090a0b", .wrongLength), ("d8254101", .wrongLength), ("d9d10382", .truncated),
      ("d9d103820000", .wrongLength), ("62c328", .invalidUTF8), ("63eda080", .invalidUTF8), ("a10000", .unexpectedType),
      ("a241610041620", .unexpectedType), ("1bffffffffffffffff", .outOfRange),
      (blobHead(4) + "206040", .unexpectedType), (blobHead(4) + "1b00000004000000016040", .outOfRange),
      (blobHead(3) + "0560", .wrongLength), (blobHead(4) + "05604100", .wrongLength),
      (blobHead(4) + "05605820" + zeros, .wrongLength), (blobHead(4) + "1a000400016040", .wrongLength),
    ] as [(String, CBORError.Kind)])
  func refused(encoded: String, kind: CBORError.Kind) {
    var reader = CBORReader(bytes(encoded))
    #expect(kindOfFailure { try reader.readValue() } == kind)
  }

  @Test("arrays and maps nest to the limit, the document being level 1, and no deeper")
  func depth() {
    for nest in ["81", "a160"] {
      let exact = bytes(String(repeating: nest, count: Value.depthLimit - 1) + "f6")
      var reader = CBORReader(exact)
      #expect(throws: Never.self) { try reader.readValue(depth: 2) }
      var deeper = CBORReader(exact)
      #expect(kindOfFailure { try deeper.readValue(depth: 3) } == .tooDeep)
      var scanner = CBORReader(exact)
      #expect(kindOfFailure { try scanner.scanValue(depth: 3) } == .tooDeep)
    }
  }

  @Test("a key of 1 KiB is read, a longer one refused")
  func keyLength() {
    for (count, kind) in [(Value.keyByteLimit, nil), (Value.keyByteLimit + 1, .tooLong)] as [(Int, CBORError.Kind?)] {
      var reader = CBORReader(encode(.map([(Text(String(repeating: "k", count: count)), .null)])))
      #expect(kindOfFailure { try reader.readValue() } == kind)
    }
  }

  private func encode(_ value: Value) -> [UInt8] {
    var writer = CBORWriter()
    value.encode(to: &writer)
    return writer.bytes
  }

  private func failure(_ body: () throws -> some Any) -> CBORError? {
    do {
      _ = try body()
      return nil
    } catch {
      return error as? CBORError
    }
  }
}

private let zeros = String(repeating: "00", count: 32)

/// A blob reference of so many items up to its content's hash.
private func blobHead(_ count: Int) -> String { "d9d1038\(count)5820" + zeros }
