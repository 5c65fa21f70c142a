import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Contexts beside runs")
struct ContextCodecTests {
  @Test("a context is read back against the base it was written with", arguments: 0..<40 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<20 {
      let base = generator.vector(count: generator.below(12))
      var context = base
      for (replica, _) in base.sorted where generator.chance(20) { context[replica] = nil }
      for (replica, position) in base.sorted where generator.chance(20) {
        context[replica] = ChainPosition(sequence: position.sequence / 2 + 1, tip: TipHash(high: 1, low: 2))
      }
      for (replica, position) in generator.vector(count: generator.below(3)).entries { context[replica] = position }
      let encoded = ContextCodec.encode(context, base: base)
      #expect(try ContextCodec.decode(encoded[...], base: base) == context)
    }
  }

  @Test("what changed little is written as increments, what changed much as a whole")
  func shorterForm() throws {
    var generator = SplitMix64(seed: 1)
    let base = generator.vector(count: 50)
    #expect(hex(ContextCodec.encode(base, base: base)) == "820180")
    #expect(hex(ContextCodec.encode(VersionVector(), base: base)) == "820080")
    var next = base
    let first = base.sorted[0]
    next[first.replica] = nil
    let removal = ContextCodec.encode(next, base: base)
    #expect(hex(removal) == "82018182" + "50" + hex(first.replica.bytes) + "00")
    let other = generator.vector(count: 3)
    let whole = ContextCodec.encode(other, base: base)
    #expect(try ContextCodec.decode(whole[...], base: VersionVector()) == other)
  }

  @Test("a context cut off at any byte is refused, a damaged one never traps", arguments: 0..<5 as Range<UInt64>)
  func damage(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    let base = generator.vector(count: 9)
    var next = base
    for entry in base.sorted.prefix(3) { next[entry.replica] = nil }
    for context in [next, generator.vector(count: 4)] {
      let mutations = Mutations(original: ContextCodec.encode(context, base: base))
      for part in mutations.truncations {
        #expect(kindOfFailure { try ContextCodec.decode(part, base: base) } == .truncated)
      }
      for _ in 0..<500 { _ = try? ContextCodec.decode(mutations.random(&generator)[...], base: base) }
    }
  }

  @Test("entries out of order, twice, with number 0, or removed from nothing whole are refused")
  func refused() {
    let entry = { (replica: String, sequence: String) in
      "8350" + String(repeating: replica, count: 16) + sequence + zeros
    }
    let removal = "8250" + String(repeating: "01", count: 16) + "00"
    let cases: [(String, CBORError.Kind)] = [
      ("820082" + entry("02", "01") + entry("01", "01"), .keyOrder),
      ("820082" + entry("01", "01") + entry("01", "02"), .keyOrder), ("820081" + entry("01", "00"), .outOfRange),
      ("820081" + removal, .wrongLength), ("820181" + removal.dropLast(2) + "01", .outOfRange), ("820280", .outOfRange),
    ]
    for (encoded, kind) in cases {
      #expect(
        kindOfFailure { try ContextCodec.decode(bytes(encoded)[...], base: VersionVector()) } == kind, "\(encoded)")
    }
  }

  @Test("4,096 replicas are taken and one more refused, also where increments lead there")
  func limit() throws {
    var generator = SplitMix64(seed: 2)
    let full = generator.vector(count: ContextCodec.entryLimit)
    var above = full
    above[generator.replica()] = ChainPosition(sequence: 1, tip: .zero)
    let encoded = ContextCodec.encode(full, base: VersionVector())
    #expect(try ContextCodec.decode(encoded[...], base: VersionVector()) == full)
    for base in [VersionVector(), full] {
      let tooMany = ContextCodec.encode(above, base: base)
      #expect(kindOfFailure { try ContextCodec.decode(tooMany[...], base: base) } == .tooLong)
    }
  }

  private let zeros = "50" + String(repeating: "00", count: 16)
}
