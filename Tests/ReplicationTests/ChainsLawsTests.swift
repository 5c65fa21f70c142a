import Replication
import Testing

@Suite("Version vectors: laws")
struct ChainsVersionVectorTests {
  /// Where nothing is forked a tip follows from its dot.
  private func vector(_ random: inout ChainsRandom) -> VersionVector {
    var vector = VersionVector()
    for replica in ChainsHistory.replicas where random.chance(70) {
      let sequence = UInt64(1 + random.below(4))
      vector[replica] = ChainPosition(sequence: sequence, tip: TipHash(high: replica.high, low: sequence))
    }
    return vector
  }

  private func joined(_ a: VersionVector, _ b: VersionVector) -> VersionVector {
    var out = a
    out.join(b)
    return out
  }

  @Test("at equal numbers a join keeps the tip that was here")
  func joinKeepsTip() {
    func vector(_ sequence: UInt64, tip: UInt64) -> VersionVector {
      VersionVector([ReplicaID(high: 1, low: 1): ChainPosition(sequence: sequence, tip: TipHash(high: tip, low: 0))])
    }
    var joined = vector(5, tip: 1)
    joined.join(vector(5, tip: 2))
    #expect(joined == vector(5, tip: 1))
    joined.join(vector(4, tip: 3))
    #expect(joined == vector(5, tip: 1))
    joined.join(vector(6, tip: 4))
    #expect(joined == vector(6, tip: 4))
  }

  @Test("join is commutative, associative and idempotent, and an upper bound")
  func join() {
    var random = ChainsRandom(seed: 11)
    for _ in 0..<2_000 {
      let (a, b, c) = (vector(&random), vector(&random), vector(&random))
      #expect(joined(a, b) == joined(b, a))
      #expect(joined(joined(a, b), c) == joined(a, joined(b, c)))
      #expect(joined(a, a) == a)
      #expect(a.entries.allSatisfy { $0.value.sequence <= joined(a, b).sequence(of: $0.key) })
    }
  }
}

@Suite("Hybrid clock: laws")
struct ChainsHybridTimestampTests {
  private func stamps() -> [(last: HybridTimestamp, reference: UInt64)] {
    var random = ChainsRandom(seed: 13)
    let edges: [UInt64] = [0, 1, 600_000, 1 << 47, (1 << 48) - 1, .max]
    return (0..<3_000).map { index in
      let reference = index < 36 ? edges[index % 6] : random.next() >> UInt64(16 + random.below(40))
      let last = index < 36 ? edges[index / 6] : reference &+ random.next() % 2_000_000 &- 1_000_000
      return (HybridTimestamp(milliseconds: last, counter: UInt16(truncatingIfNeeded: random.next())), reference)
    }
  }

  @Test("the next stamp lies above the reference, and above the last unless that runs too far ahead")
  func next() {
    for (last, reference) in stamps() {
      let next = HybridTimestamp.next(after: last, referenceMilliseconds: reference)
      let least = HybridTimestamp(milliseconds: reference, counter: 0)
      #expect(next > least)
      let (sum, overflow) = reference.addingReportingOverflow(HybridTimestamp.adoptionLimitMilliseconds)
      let highest = HybridTimestamp(milliseconds: overflow ? .max : sum, counter: 0)
      if last <= highest { #expect(next > last || next.rawValue == .max) }
      #expect(next.rawValue <= max(highest.rawValue, least.rawValue) + 1)
    }
  }

  @Test("stamps that follow one another under a clock that does not go back ascend")
  func ascending() {
    var random = ChainsRandom(seed: 14)
    var (last, reference) = (HybridTimestamp.zero, UInt64(1_700_000_000_000))
    var fallen = 0
    for _ in 0..<70_000 {
      if random.chance(1) { reference += UInt64(random.below(1_000)) }
      let next = HybridTimestamp.next(after: last, referenceMilliseconds: reference)
      fallen += next > last ? 0 : 1
      last = next
    }
    #expect(fallen == 0)
  }
}
