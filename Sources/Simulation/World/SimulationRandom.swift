/// The one source of chance of a run (SplitMix64; Steele, Lea, Flood 2014): a seed repeats everything.
package struct SimulationRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return SimulationRandom.mix(state)
  }

  static func mix(_ word: UInt64) -> UInt64 {
    var z = word
    z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
    return z ^ z >> 31
  }

  /// 0 ..< `limit`, which is above 0.
  mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }

  mutating func between(_ range: ClosedRange<UInt64>) -> UInt64 {
    range.lowerBound + next() % (range.upperBound - range.lowerBound + 1)
  }

  mutating func between(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }

  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  /// Nil of nothing.
  mutating func pick<Item>(_ items: [Item]) -> Item? { items.isEmpty ? nil : items[below(items.count)] }

  mutating func uuid() -> UInt64Pair { UInt64Pair(high: next(), low: next()) }

  /// A generator of its own, so that what one part draws does not shift another's.
  mutating func fork() -> SimulationRandom { SimulationRandom(seed: next()) }

  struct UInt64Pair {
    let high: UInt64
    let low: UInt64
  }
}
