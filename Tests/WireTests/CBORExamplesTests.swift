import Replication
import Testing

@testable import Wire

/// The examples of RFC 8949, appendix A: what is deterministic and in the protocol's part of CBOR is read, the rest is
/// refused, each for its reason.
@Suite("CBOR examples of RFC 8949")
struct CBORExamplesTests {
  @Test(
    "integers have the bytes of the RFC, and are read back",
    arguments: [
      (0, "00"), (1, "01"), (10, "0a"), (23, "17"), (24, "1818"), (25, "1819"), (100, "1864"), (1000, "1903e8"),
      (1_000_000, "1a000f4240"), (1_000_000_000_000, "1b000000e8d4a51000"), (-1, "20"), (-10, "29"), (-100, "3863"),
      (-1000, "3903e7"), (.max, "1b7fffffffffffffff"), (.min, "3b7fffffffffffffff"),
    ] as [(Int64, String)])
  func integers(value: Int64, encoded: String) throws {
    #expect(try roundTrip(.int(value)) == encoded)
  }

  @Test(
    "an integer beyond 64 signed bits is refused as a value", arguments: ["1bffffffffffffffff", "3bffffffffffffffff"])
  func largeIntegers(encoded: String) {
    #expect(throws: CBORError(.outOfRange, at: 0)) { try decode(encoded) }
    #expect(throws: Never.self) { try skip(encoded) }
  }

  @Test(
    "floats have the shortest bytes that keep them, and are read back",
    arguments: [
      (0.0, "f90000"), (-0.0, "f98000"), (1.0, "f93c00"), (1.1, "fb3ff199999999999a"), (1.5, "f93e00"),
      (65504.0, "f97bff"), (100000.0, "fa47c35000"), (3.4028234663852886e+38, "fa7f7fffff"),
      (1.0e+300, "fb7e37e43c8800759c"), (5.960464477539063e-8, "f90001"), (0.00006103515625, "f90400"),
      (-4.0, "f9c400"),
      (-4.1, "fbc010666666666666"), (65505.0, "fa477fe100"), (2.98023223876953125e-8, "fa33000000"),
      (1.401298464324817e-45, "fa00000001"), (.leastNonzeroMagnitude, "fb0000000000000001"),
    ] as [(Double, String)])
  func floats(value: Double, encoded: String) throws {
    #expect(try roundTrip(.double(value)) == encoded)
  }

  @Test(
    "texts, byte strings, arrays and maps have the bytes of the RFC, and are read back",
    arguments: [
      (.bool(false), "f4"), (.bool(true), "f5"), (.null, "f6"), (.bytes([]), "40"),
      (.bytes([1, 2, 3, 4]), "4401020304"),
      (.string(""), "60"), (.string("a"), "6161"), (.string("IETF"), "6449455446"), (.string("\"\\"), "62225c"),
      (.string("\u{fc}"), "62c3bc"), (.string("\u{6c34}"), "63e6b0b4"), (.string("\u{10151}"), "64f0908591"),
      (.array([]), "80"), (.array([.int(1), .int(2), .int(3)]), "83010203"),
      (.array([.int(1), .array([.int(2), .int(3)]), .array([.int(4), .int(5)])]), "8301820203820405"),
      (.array((1...25).map { .int($0) }), "98190102030405060708090a0b0c0d0e0f101112131415161718181819"),
      (.map([]), "a0"),
      (.map([("a", .int(1)), ("b", .array([.int(2), .int(3)]))]), "a26161016162820203"),
      (.array([.string("a"), .map([("b", .string("c"))])]), "826161a161626163"),
      (
        .map([("a", .string("A")), ("b", .string("B")), ("c", .string("C")), ("d", .string("D")), ("e", .string("E"))]),
        "a56161614161626142616361436164614461656145"
      ),
    ] as [(Value, String)])
  func others(value: Value, encoded: String) throws {
    #expect(try roundTrip(value) == encoded)
  }

  @Test(
    "what is valid elsewhere but has no place in the protocol is refused",
    arguments: [
      ("f97c00", .notFinite), ("f97e00", .notFinite), ("f9fc00", .notFinite), ("fa7f800000", .notFinite),
      ("fa7fc00000", .notFinite), ("fb7ff0000000000000", .notFinite), ("fb7ff8000000000000", .notFinite),
      ("f7", .unsupported), ("f0", .unsupported), ("f818", .unsupported), ("f8ff", .unsupported),
      ("ff", .indefiniteLength),
      ("5f42010243030405ff", .indefiniteLength), ("7f657374726561646d696e67ff", .indefiniteLength),
      ("9fff", .indefiniteLength), ("9f018202039f0405ffff", .indefiniteLength),
      ("83018202039f0405ff", .indefiniteLength),
      ("bf61610161629f0203ffff", .indefiniteLength), ("1c", .unsupported), ("5e", .unsupported),
    ] as [(String, CBORError.Kind)])
  func refused(encoded: String, kind: CBORError.Kind) {
    #expect(kindOfFailure { try skip(encoded) } == kind)
    #expect(kindOfFailure { try decode(encoded) } == kind)
  }

  @Test(
    "a form that is not the shortest is refused",
    arguments: [
      "1800", "1817", "190018", "1900ff", "1a0000ffff", "1b00000000ffffffff", "3800", "5800", "7801", "980101", "b800",
      "d80181", "fa3fc00000", "fb3ff8000000000000", "fa00000000", "fb0000000000000000", "fb47efffffe0000000",
    ])
  func notShortest(encoded: String) {
    #expect(kindOfFailure { try skip(encoded) } == .notShortest)
  }

  @Test(
    "tags of other registries are passed over, and refused as values", arguments: ["c11a514b67b0", "d818456449455446"])
  func tags(encoded: String) {
    #expect(throws: Never.self) { try skip(encoded) }
    #expect(kindOfFailure { try decode(encoded) } == .unknownTag)
  }

  private func roundTrip(_ value: Value) throws -> String {
    var writer = CBORWriter()
    value.encode(to: &writer)
    #expect(try decode(hex(writer.bytes)) == value)
    #expect(throws: Never.self) { try skip(hex(writer.bytes)) }
    return hex(writer.bytes)
  }

  private func decode(_ encoded: String) throws(CBORError) -> Value {
    var reader = CBORReader(bytes(encoded))
    let value = try reader.readValue()
    try reader.finish()
    return value
  }

  private func skip(_ encoded: String) throws(CBORError) {
    var reader = CBORReader(bytes(encoded))
    try reader.skipValue()
    try reader.finish()
  }
}

func kindOfFailure(_ body: () throws -> some Any) -> CBORError.Kind? {
  do {
    _ = try body()
    return nil
  } catch {
    return (error as? CBORError)?.kind
  }
}

extension Value {
  static func map(_ entries: [(Text, Value)]) -> Value {
    .map(ValueMap(unique: entries.map { ValueMap.Entry(key: $0.0, value: $0.1) }))
  }
}
