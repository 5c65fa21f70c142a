/// How far the clocks of two devices are apart, as people say it.
enum ClockDifference {
  private static let units: [(name: String, milliseconds: Int64)] = [
    ("years", 31_557_600_000), ("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000),
  ]

  /// - Parameter milliseconds: above 0 where the peer's is ahead.
  static func sentence(_ milliseconds: Int64) -> String {
    let distance = Int64(clamping: milliseconds.magnitude)
    // The largest unit of which there are two at least.
    let unit = units.first { distance / $0.milliseconds >= 2 } ?? units[units.count - 1]
    let side = milliseconds > 0 ? "ahead of" : "behind"
    return "its clock is \(distance / unit.milliseconds) \(unit.name) \(side) this device's"
  }
}
