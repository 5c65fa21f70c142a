/// A moment as PostgreSQL writes it into a dump, in its ISO form: `2026-11-25 19:04:19.12+05:30`.
enum DumpTime {
  /// Since 1970; nil where it does not read.
  static func microseconds(_ text: ArraySlice<UInt8>) -> Int64? {
    var rest = text
    guard let year = number(&rest, until: "-"), let month = number(&rest, until: "-"),
      let day = number(&rest, until: " "),
      let hour = number(&rest, until: ":"), let minute = number(&rest, until: ":"), let second = number(&rest),
      (1...9_999).contains(year), (1...12).contains(month), (1...31).contains(day),
      hour < 25, minute < 60, second < 61, let fraction = fraction(&rest), let offset = offset(rest)
    else { return nil }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset
    return seconds * 1_000_000 + fraction
  }

  /// Two digits or four, and what stands behind them.
  private static func number(_ rest: inout ArraySlice<UInt8>, until end: Unicode.Scalar? = nil) -> Int64? {
    let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard !digits.isEmpty, digits.count <= 6 else { return nil }
    rest = rest.dropFirst(digits.count)
    if let end {
      guard rest.first == UInt8(ascii: end) else { return nil }
      rest = rest.dropFirst()
    }
    return digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
  }

  /// Zeros at the end are left out.
  private static func fraction(_ rest: inout ArraySlice<UInt8>) -> Int64? {
    guard rest.first == UInt8(ascii: ".") else { return 0 }
    rest = rest.dropFirst()
    let before = rest.count
    guard var value = number(&rest) else { return nil }
    for _ in (before - rest.count)..<6 { value *= 10 }
    return value
  }

  /// Of the zone, in seconds: hours, and minutes and seconds where it has any.
  private static func offset(_ text: ArraySlice<UInt8>) -> Int64? {
    guard let sign = text.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") else { return nil }
    var seconds: Int64 = 0
    let parts = text.dropFirst().split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard parts.count <= 3 else { return nil }
    for (part, unit) in zip(parts, [3_600, 60, 1] as [Int64]) {
      var rest = part
      guard let value = number(&rest), rest.isEmpty else { return nil }
      seconds += value * unit
    }
    return sign == UInt8(ascii: "-") ? -seconds : seconds
  }

  /// From 1970 on, in the Gregorian calendar: years are counted from March, so that a leap day is their last.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let shifted = month > 2 ? year : year - 1
    let (era, ofEra) = (shifted / 400, shifted % 400)
    let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
  }
}
