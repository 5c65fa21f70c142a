/// What the TXT record of our service says: `v=1` and `t=` the tag in hexadecimal (design §8). Any reader must expect
/// anything here.
enum ServiceRecord {
  static let type = "_seamesh._tcp"

  /// Strings with a length byte each (RFC 6763 §6.1).
  static func bytes(tag: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    let value = tag.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return [Array("v=1".utf8), Array("t=".utf8) + value].flatMap { [UInt8($0.count)] + $0 }
  }

  /// The tag, or 8 zero bytes where there is none that can be read.
  static func tag(in record: [UInt8]) -> [UInt8] {
    let none = [UInt8](repeating: 0, count: Advertisement.tagByteCount)
    var position = 0
    while position < record.count {
      let end = position + 1 + Int(record[position])
      guard end <= record.count else { return none }
      let entry = record[(position + 1)..<end]
      if entry.starts(with: "t=".utf8) { return parse(entry.dropFirst(2)) ?? none }
      position = end
    }
    return none
  }

  private static func parse(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
    guard digits.count == Advertisement.tagByteCount * 2 else { return nil }
    var tag: [UInt8] = []
    var high: UInt8?
    for digit in digits {
      guard let value = hexadecimal(digit) else { return nil }
      if let first = high {
        tag.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return tag
  }

  private static func hexadecimal(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
