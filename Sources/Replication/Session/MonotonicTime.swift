/// Elapsed time since an arbitrary start, never a wall clock: the only time that timeouts and intervals look at.
package struct MonotonicTime: Hashable, Comparable, Sendable {
  package let milliseconds: UInt64

  package init(milliseconds: UInt64) { self.milliseconds = milliseconds }

  package static let never = MonotonicTime(milliseconds: .max)

  package func advanced(byMilliseconds count: UInt64) -> MonotonicTime {
    let (sum, overflow) = milliseconds.addingReportingOverflow(count)
    return MonotonicTime(milliseconds: overflow ? .max : sum)
  }

  /// Zero where `earlier` is not earlier.
  package func millisecondsSince(_ earlier: MonotonicTime) -> UInt64 {
    milliseconds > earlier.milliseconds ? milliseconds - earlier.milliseconds : 0
  }

  package static func < (a: MonotonicTime, b: MonotonicTime) -> Bool { a.milliseconds < b.milliseconds }
}
