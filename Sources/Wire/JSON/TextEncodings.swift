/// The value of a hexadecimal digit of either case.
func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}

/// Two lower-case digits for each byte.
package func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var out: [UInt8] = []
  out.reserveCapacity(bytes.underestimatedCount * 2)
  for byte in bytes {
    out.append(digits[Int(byte >> 4)])
    out.append(digits[Int(byte & 15)])
  }
  return String(decoding: out, as: UTF8.self)
}

/// Nil unless there is an even number of digits and nothing else.
package func decodeHexadecimal(_ digits: some Sequence<UInt8>) -> [UInt8]? {
  var out: [UInt8] = []
  out.reserveCapacity(digits.underestimatedCount / 2)
  var high: UInt8?
  for byte in digits {
    guard let digit = hexadecimalDigit(byte) else { return nil }
    if let first = high {
      out.append(first << 4 | digit)
      high = nil
    } else {
      high = digit
    }
  }
  return high == nil ? out : nil
}

private let base64Alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

/// The value of each ASCII character in base64; 255 for those outside the alphabet.
private let base64Values: [UInt8] = {
  var values = [UInt8](repeating: 255, count: 256)
  for (value, character) in base64Alphabet.enumerated() { values[Int(character)] = UInt8(value) }
  return values
}()

/// RFC 4648, section 4, with padding.
func appendBase64(_ bytes: [UInt8], to out: inout [UInt8]) {
  out.reserveCapacity(out.count + (bytes.count + 2) / 3 * 4)
  var index = 0
  while index < bytes.count {
    let present = min(3, bytes.count - index)
    var group: UInt32 = 0
    for step in 0..<3 { group = group << 8 | (step < present ? UInt32(bytes[index + step]) : 0) }
    for step in 0..<4 {
      let value = Int(group >> UInt32(18 - 6 * step) & 63)
      out.append(step <= present ? base64Alphabet[value] : UInt8(ascii: "="))
    }
    index += 3
  }
}

/// Nil for anything but the one encoding that RFC 4648 gives the bytes: padded, unused bits zero, no white space.
func decodeBase64(_ text: some Sequence<UInt8>) -> [UInt8]? {
  var out: [UInt8] = []
  var (group, digits, padding) = (UInt32(0), 0, 0)
  for character in text {
    if character == UInt8(ascii: "=") {
      padding += 1
      continue
    }
    let value = base64Values[Int(character)]
    guard value != 255, padding == 0 else { return nil }
    group = group << 6 | UInt32(value)
    digits += 1
    if digits == 4 {
      out += [
        UInt8(truncatingIfNeeded: group >> 16), UInt8(truncatingIfNeeded: group >> 8), UInt8(truncatingIfNeeded: group),
      ]
      (group, digits) = (0, 0)
    }
  }
  switch (digits, padding) {
  case (0, 0): return out
  case (2, 2): return group & 15 == 0 ? out + [UInt8(truncatingIfNeeded: group >> 4)] : nil
  case (3, 1):
    guard group & 3 == 0 else { return nil }
    return out + [UInt8(truncatingIfNeeded: group >> 10), UInt8(truncatingIfNeeded: group >> 2)]
  default: return nil
  }
}
