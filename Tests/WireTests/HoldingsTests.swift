import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Holdings")
struct HoldingsTests {
  @Test("decoding undoes encoding", arguments: 0..<30 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let signed = try generator.holdings()
    let encoded = HoldingsCodec.encode(signed)
    #expect(try HoldingsCodec.decode(encoded[...]) == signed)
  }

  @Test("the signature is over everything but itself, with the device's key", arguments: 0..<10 as Range<UInt64>)
  func signature(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let signed = try generator.holdings()
    let encoded = HoldingsCodec.encode(signed)
    let message = HoldingsCodec.signedBytes(signed.holdings)
    #expect(message == DomainTag.holdings.bytes + [0x88] + encoded[1..<encoded.count - Signature.byteCount - 2])
    #expect(
      signed.isSigned { $0 == signed.signature && $1 == message && $2 == signed.holdings.device })
    #expect(!signed.isSigned { _, _, _ in false })
  }

  @Test("records that differ in anything are signed over different bytes")
  func distinct() throws {
    var generator = SplitMix64(seed: 3)
    let own = Holdings.OwnLast(replica: generator.replica(), sequence: 5)
    let base = changed(try generator.holdings().holdings, ownLast: own)
    var vector = base.vector
    vector[generator.replica()] = ChainPosition(sequence: 1, tip: .zero)
    let others = [
      base, changed(base, fleet: FleetID(.zero)), changed(base, device: PublicKey(.zero)),
      changed(base, partition: try PartitionName("other")), changed(base, number: base.number + 1),
      changed(base, vector: vector), changed(base, kind: base.kind == .accepted ? .received : .accepted),
      changed(base, ownLast: .some(nil)), changed(base, ownLast: Holdings.OwnLast(replica: .zero, sequence: 1)),
    ]
    #expect(Set(others.map(HoldingsCodec.signedBytes)).count == others.count)
  }

  @Test("damaged holdings are refused, or have the one form of what they say", arguments: 0..<20 as Range<UInt64>)
  func mutation(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let mutations = Mutations(original: HoldingsCodec.encode(try generator.holdings()))
    for part in mutations.truncations { #expect(throws: CBORError.self) { try HoldingsCodec.decode(part) } }
    for _ in 0..<300 {
      let damaged = mutations.random(&generator)
      guard let signed = try? HoldingsCodec.decode(damaged[...]) else { continue }
      #expect(HoldingsCodec.encode(signed) == damaged)
    }
  }

  @Test("another version, kind or number is refused for its reason")
  func refused() throws {
    var generator = SplitMix64(seed: 5)
    let holdings = changed(try generator.holdings().holdings, vector: VersionVector(), ownLast: .some(nil))
    let encoded = HoldingsCodec.encode(SignedHoldings(holdings, signature: generator.signature()))
    let tail = encoded.count - Signature.byteCount - 2
    // version at 1; number, empty vector, kind, null before the signature
    for (place, byte, kind) in [(1, 2, .unsupported), (tail - 2, 3, .outOfRange), (tail - 4, 0, .outOfRange)]
      as [(Int, UInt8, CBORError.Kind)]
    {
      var other = encoded
      other[place] = byte
      #expect(kindOfFailure { try HoldingsCodec.decode(other[...]) } == kind)
    }
  }

  private func changed(
    _ base: Holdings, fleet: FleetID? = nil, device: PublicKey? = nil, partition: PartitionName? = nil,
    number: UInt64? = nil, vector: VersionVector? = nil, kind: Holdings.Kind? = nil,
    ownLast: Holdings.OwnLast?? = nil
  ) -> Holdings {
    Holdings(
      fleet: fleet ?? base.fleet, device: device ?? base.device, partition: partition ?? base.partition,
      number: number ?? base.number, vector: vector ?? base.vector, kind: kind ?? base.kind,
      ownLast: ownLast ?? base.ownLast)
  }
}

extension SplitMix64 {
  fileprivate mutating func holdings() throws -> SignedHoldings {
    let own = Holdings.OwnLast(replica: replica(), sequence: 1 + UInt64(below(900)))
    let holdings = Holdings(
      fleet: FleetID(digest()), device: PublicKey(digest()), partition: try PartitionName("agency=Gabon"),
      number: 1 + UInt64(below(20)), vector: vector(count: below(5)), kind: Holdings.Kind.allCases[below(3)],
      ownLast: chance(30) ? nil : own)
    return SignedHoldings(holdings, signature: signature())
  }
}
