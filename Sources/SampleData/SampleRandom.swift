/// The only source of chance here (SplitMix64: Steele, Lea, Flood 2014), with its own ways to draw: those of the standard
/// library may change between versions, and one seed must give the same bytes everywhere.
package struct SampleRandom: Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
    return mixed ^ mixed >> 31
  }

  /// 0 up to `bound`, which is positive and not part of it. The bias, below `bound` in 2⁶⁴, does not matter here.
  mutating func below(_ bound: Int) -> Int {
    Int(truncatingIfNeeded: next().multipliedFullWidth(by: UInt64(max(1, bound))).high)
  }

  mutating func within(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }

  mutating func chance(percent: Int) -> Bool { below(100) < percent }

  /// From 0 up to 1, which is not part of it.
  mutating func fraction() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }

  mutating func pick<Element>(_ items: [Element]) -> Element {
    precondition(!items.isEmpty, "nothing to pick from")
    return items[below(items.count)]
  }

  /// An index, as often as its weight says.
  mutating func pickIndex(weights: [Int]) -> Int {
    var rest = below(weights.reduce(0, +))
    for (index, weight) in weights.enumerated() {
      if rest < weight { return index }
      rest -= weight
    }
    return 0
  }

  /// How often a chance of `percent` comes true in a row. It is the exponential distribution, cut down to whole numbers,
  /// without a logarithm, whose last bit differs between platforms.
  mutating func streak(percent: Int, limit: Int) -> Int {
    var length = 0
    while length < limit, chance(percent: percent) { length += 1 }
    return length
  }

  mutating func digits(_ count: Int) -> String {
    var out = String(within(1...9))
    for _ in 1..<max(1, count) { out += String(below(10)) }
    return out
  }
}
