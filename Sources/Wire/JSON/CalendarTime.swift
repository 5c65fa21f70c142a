/// Milliseconds since 1970 and the ISO 8601 form that Extended JSON uses, in the proleptic Gregorian calendar.
///
/// The conversion between days and dates is that of Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms".
package enum CalendarTime {
  package static let millisecondsPerDay: Int64 = 86_400_000
  /// 10000-01-01T00:00:00Z: from here on, and before 1970, Extended JSON writes a number instead.
  package static let endOfWrittenDates: Int64 = 253_402_300_800_000

  /// `YYYY-MM-DDThh:mm:ss[.f](Z|±hh:mm|±hhmm)` with up to nine digits of fraction, those below a millisecond zero.
  package static func milliseconds(_ text: [UInt8]) -> Int64? {
    var scan = Scanner(bytes: text)
    guard let year = scan.number(digits: 4), scan.skip("-"), let month = scan.number(digits: 2), scan.skip("-"),
      let day = scan.number(digits: 2), scan.skip("T"), let hour = scan.number(digits: 2), scan.skip(":"),
      let minute = scan.number(digits: 2), scan.skip(":"), let second = scan.number(digits: 2),
      let fraction = scan.fraction(), let offset = scan.offset(), scan.isAtEnd,
      (1...12).contains(month), day >= 1, day <= daysIn(month: month, year: year),
      hour < 24, minute < 60, second < 60
    else { return nil }
    let seconds = (hour * 60 + minute - offset) * 60 + second
    return daysSince1970(year: year, month: month, day: day) * millisecondsPerDay + seconds * 1000 + fraction
  }

  /// `YYYY-MM-DDThh:mm:ss.fffZ`, on the full second `YYYY-MM-DDThh:mm:ssZ` as relaxed Extended JSON 2 wants it; nil outside
  /// 1970–9999.
  package static func text(_ milliseconds: Int64) -> [UInt8]? {
    guard (0..<endOfWrittenDates).contains(milliseconds) else { return nil }
    let (day, rest) = milliseconds.quotientAndRemainder(dividingBy: millisecondsPerDay)
    let (year, month, dayOfMonth) = date(day: day)
    var out: [UInt8] = []
    out.reserveCapacity(24)
    func append(_ number: Int64, digits: Int, then mark: Unicode.Scalar) {
      var divisor: Int64 = 1
      for _ in 1..<digits { divisor *= 10 }
      while divisor > 0 {
        out.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
        divisor /= 10
      }
      out.append(UInt8(ascii: mark))
    }
    append(year, digits: 4, then: "-")
    append(month, digits: 2, then: "-")
    append(dayOfMonth, digits: 2, then: "T")
    append(rest / 3_600_000, digits: 2, then: ":")
    append(rest / 60_000 % 60, digits: 2, then: ":")
    let fraction = rest % 1000
    append(rest / 1000 % 60, digits: 2, then: fraction == 0 ? "Z" : ".")
    if fraction > 0 { append(fraction, digits: 3, then: "Z") }
    return out
  }

  private static func daysIn(month: Int64, year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Years begin in March here, so that the leap day is the last of its year.
  private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// `day` is not negative.
  private static func date(day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let (era, dayOfEra) = (day + 719_468).quotientAndRemainder(dividingBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
  }

  private struct Scanner {
    let bytes: [UInt8]
    var position = 0

    var isAtEnd: Bool { position == bytes.count }
    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func digit() -> Int64? {
      guard let next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(next) else { return nil }
      position += 1
      return Int64(next - UInt8(ascii: "0"))
    }

    mutating func number(digits: Int) -> Int64? {
      var value: Int64 = 0
      for _ in 0..<digits {
        guard let digit = digit() else { return nil }
        value = value * 10 + digit
      }
      return value
    }

    mutating func skip(_ mark: Unicode.Scalar) -> Bool {
      guard next == UInt8(ascii: mark) else { return false }
      position += 1
      return true
    }

    /// In milliseconds.
    mutating func fraction() -> Int64? {
      guard skip(".") else { return 0 }
      var (value, count): (Int64, Int) = (0, 0)
      while let digit = digit() {
        count += 1
        if count <= 3 { value = value * 10 + digit } else if digit != 0 || count > 9 { return nil }
      }
      return switch count {
      case 0: nil
      case 1: value * 100
      case 2: value * 10
      default: value
      }
    }

    /// In minutes east of Greenwich.
    mutating func offset() -> Int64? {
      if skip("Z") { return 0 }
      let sign: Int64 = next == UInt8(ascii: "-") ? -1 : 1
      guard skip("+") || skip("-"), let hours = number(digits: 2) else { return nil }
      _ = skip(":")
      guard let minutes = number(digits: 2), hours < 24, minutes < 60 else { return nil }
      return sign * (hours * 60 + minutes)
    }
  }
}
