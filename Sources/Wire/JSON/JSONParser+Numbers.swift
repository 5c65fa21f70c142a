import Replication

extension JSONParser {
  /// A number of RFC 8259: int64 without fraction and exponent, else the nearest double.
  mutating func parseNumber(_ input: Span<UInt8>) throws(JSONError) -> Value {
    let start = position
    let number = scanNumber(input, from: start)
    guard let number else {
      // `-Infinity` is what some writers make of a value that JSON cannot carry.
      let infinite = start + 1 < input.count && input[start + 1] == UInt8(ascii: "I")
      throw fail(infinite ? .notFinite : .invalidNumber, at: start, input)
    }
    position = number.end
    if !number.isDouble {
      if let integer = number.integer { return .int(integer) }
      guard limits.takesLargeDoubles, number.isShortestOfDouble(input) else {
        throw fail(.integerOutOfRange, at: start, input)
      }
    }
    guard let double = number.double(input) else { throw fail(.doubleOutOfRange, at: start, input) }
    return .double(double)
  }
}

/// The parts of a number as it stands in the text, from which its value follows without looking at each digit again.
struct ScannedNumber {
  let start: Int
  fileprivate(set) var end: Int
  fileprivate(set) var isNegative = false
  fileprivate(set) var isDouble = false
  /// All digits before the exponent as one number; nil once it left 64 bits.
  fileprivate var digits: UInt64? = 0
  fileprivate var fractionDigits = 0
  fileprivate var exponent = 0

  var integer: Int64? {
    guard let digits else { return nil }
    if isNegative { return digits <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- digits) : nil }
    return Int64(exactly: digits)
  }

  /// Nil when it is too large.
  func double(_ input: Span<UInt8>) -> Double? {
    // Both factors are exact in this range, so that the one rounding is the right one (Clinger 1990).
    let scale = exponent - fractionDigits
    if let digits, digits <= 1 << 53, abs(scale) < powersOfTen.count {
      let magnitude = scale < 0 ? Double(digits) / powersOfTen[-scale] : Double(digits) * powersOfTen[scale]
      return isNegative ? -magnitude : magnitude
    }
    let text = input.extracting(start..<end).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    guard let value = Double(text), value.isFinite else { return nil }
    return value
  }
}

extension ScannedNumber {
  /// Whether a whole number has no digits but the fewest that tell its double from others, and zeros behind them.
  fileprivate func isShortestOfDouble(_ input: Span<UInt8>) -> Bool {
    guard let double = double(input) else { return false }
    let text = input.extracting(start..<end).withUnsafeBufferPointer { Array($0) }
    return ScannedNumber.significantDigits(text) == ScannedNumber.significantDigits(Array(double.description.utf8))
  }

  /// Those before an exponent, without zeros at both ends.
  private static func significantDigits(_ text: [UInt8]) -> [UInt8] {
    let zero = UInt8(ascii: "0")
    let digits = text.prefix { $0 | 0x20 != UInt8(ascii: "e") }.filter { $0 >= zero && $0 <= UInt8(ascii: "9") }
    return Array(Array(digits.drop { $0 == zero }.reversed()).drop { $0 == zero })
  }
}

private let powersOfTen: [Double] = [
  1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
  1e21, 1e22,
]

/// Nil where no number of RFC 8259 begins, or where one breaks off.
func scanNumber(_ input: Span<UInt8>, from start: Int) -> ScannedNumber? {
  var number = ScannedNumber(start: start, end: start)
  func peek() -> UInt8 { number.end < input.count ? input[number.end] : 0 }
  if peek() == UInt8(ascii: "-") {
    number.isNegative = true
    number.end += 1
  }
  let hasLeadingZero = peek() == UInt8(ascii: "0")
  let wholeDigits = number.takeDigits(input)
  guard wholeDigits > 0, !hasLeadingZero || wholeDigits == 1 else { return nil }
  if peek() == UInt8(ascii: ".") {
    number.isDouble = true
    number.end += 1
    number.fractionDigits = number.takeDigits(input)
    guard number.fractionDigits > 0 else { return nil }
  }
  if peek() | 0x20 == UInt8(ascii: "e") {
    number.isDouble = true
    number.end += 1
    guard number.takeExponent(input) else { return nil }
  }
  return number
}

extension ScannedNumber {
  fileprivate mutating func takeDigits(_ input: Span<UInt8>) -> Int {
    let first = end
    while end < input.count, case let digit = input[end] &- UInt8(ascii: "0"), digit < 10 {
      if let digits {
        let (product, tooLarge) = digits.multipliedReportingOverflow(by: 10)
        let (sum, carried) = product.addingReportingOverflow(UInt64(digit))
        self.digits = tooLarge || carried ? nil : sum
      }
      end += 1
    }
    return end - first
  }

  fileprivate mutating func takeExponent(_ input: Span<UInt8>) -> Bool {
    var isNegative = false
    if end < input.count, input[end] == UInt8(ascii: "-") || input[end] == UInt8(ascii: "+") {
      isNegative = input[end] == UInt8(ascii: "-")
      end += 1
    }
    let first = end
    while end < input.count, case let digit = input[end] &- UInt8(ascii: "0"), digit < 10 {
      // Beyond this every exponent means the same: the slow way decides.
      if exponent < 100_000 { exponent = exponent * 10 + Int(digit) }
      end += 1
    }
    if isNegative { exponent = -exponent }
    return end > first
  }
}
