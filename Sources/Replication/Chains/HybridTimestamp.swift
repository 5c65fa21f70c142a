/// Hybrid logical clock reading: 48 bit wall milliseconds since 1970, 16 bit counter.
///
/// After Kulkarni et al., "Logical Physical Clocks" (2014), with one deviation: remote stamps are not adopted when they
/// run more than ``adoptionLimitMilliseconds`` ahead, so that one wrong clock cannot drag the fleet's along. Nothing but
/// ties between concurrent writes depends on the order of stamps.
package struct HybridTimestamp: Hashable, Comparable, Sendable {
  package let rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }
  package init(milliseconds: UInt64, counter: UInt16) {
    rawValue = min(milliseconds, HybridTimestamp.millisecondLimit) << 16 | UInt64(counter)
  }

  package static let zero = HybridTimestamp(rawValue: 0)
  package static let adoptionLimitMilliseconds: UInt64 = 600_000
  private static let millisecondLimit: UInt64 = (1 << 48) - 1

  package var milliseconds: UInt64 { rawValue >> 16 }
  package var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

  /// The stamp of the next own write: `max(reference, min(last, reference + 10 min)) + 1`.
  package static func next(after last: HybridTimestamp, referenceMilliseconds: UInt64) -> HybridTimestamp {
    let reference = HybridTimestamp(milliseconds: referenceMilliseconds, counter: 0)
    let (sum, overflow) = referenceMilliseconds.addingReportingOverflow(adoptionLimitMilliseconds)
    let highest = HybridTimestamp(milliseconds: overflow ? .max : sum, counter: 0)
    let base = max(reference, min(last, highest))
    return HybridTimestamp(rawValue: base.rawValue == .max ? .max : base.rawValue + 1)
  }

  package static func < (a: HybridTimestamp, b: HybridTimestamp) -> Bool { a.rawValue < b.rawValue }
}
