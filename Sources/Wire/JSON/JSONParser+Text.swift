import Replication

extension JSONParser {
  mutating func skipWhitespace(_ input: Span<UInt8>) {
    while position < input.count {
      switch input[position] {
      case 0x20, 0x0a, 0x0d, 0x09: position += 1
      default: return
      }
    }
  }

  mutating func consume(_ byte: UInt8, _ input: Span<UInt8>) -> Bool {
    guard position < input.count, input[position] == byte else { return false }
    position += 1
    return true
  }

  mutating func expect(
    _ byte: UInt8, _ expected: @autoclosure () -> String, _ input: Span<UInt8>
  ) throws(JSONError) {
    guard position < input.count else { throw fail(.unexpectedEnd(expected: expected()), input) }
    guard input[position] == byte else {
      throw fail(.unexpectedByte(input[position], expected: expected()), input)
    }
    position += 1
  }

  mutating func skipColon(_ input: Span<UInt8>) throws(JSONError) {
    skipWhitespace(input)
    try expect(UInt8(ascii: ":"), "':'", input)
    skipWhitespace(input)
  }

  mutating func parseKey(_ input: Span<UInt8>) throws(JSONError) -> Text {
    let start = position
    guard position < input.count else { throw fail(.unexpectedEnd(expected: "a key"), input) }
    guard input[position] == UInt8(ascii: "\"") else {
      throw fail(.unexpectedByte(input[position], expected: "a key in quotation marks"), input)
    }
    let key = try parseString(input)
    let count = key.utf8.count
    guard count <= limits.keyByteCount else {
      throw fail(.keyTooLong(byteCount: count, limit: limits.keyByteCount), at: start, input)
    }
    // Without an escape a key cannot contain U+0000, and then it is as long as its text between the quotation marks.
    if position - start != count + 2, key.utf8.contains(0) { throw fail(.nulInKey, at: start, input) }
    return key
  }

  /// From the opening quotation mark to behind the closing one.
  mutating func parseString(_ input: Span<UInt8>) throws(JSONError) -> Text {
    position += 1
    let start = position
    var allBits: UInt8 = 0
    while position < input.count {
      let byte = input[position]
      if byte == UInt8(ascii: "\"") {
        let text = try text(start..<position, input, isASCII: allBits < 0x80)
        position += 1
        return text
      }
      if byte == UInt8(ascii: "\\") { return try parseEscapedString(from: start, input) }
      if byte < 0x20 { throw fail(.controlCharacter(byte), input) }
      allBits |= byte
      position += 1
    }
    throw fail(.unexpectedEnd(expected: "the closing '\"'"), input)
  }

  private func text(_ range: Range<Int>, _ input: Span<UInt8>, isASCII: Bool) throws(JSONError) -> Text {
    let content = input.extracting(range)
    // Validated here and not by `String(validating:)`, which takes several times as long and does not tell the place.
    if !isASCII, case let valid = validUTF8Prefix(content), valid < content.count {
      throw fail(.invalidUTF8, at: range.lowerBound + valid, input)
    }
    return Text(content.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
  }

  /// The slow way: from the first backslash on the content is not what stands in the input.
  private mutating func parseEscapedString(from start: Int, _ input: Span<UInt8>) throws(JSONError) -> Text {
    var content: [UInt8] = []
    var runStart = start
    while position < input.count {
      let byte = input[position]
      if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
        position += 1
        continue
      }
      if byte < 0x20 { throw fail(.controlCharacter(byte), input) }
      content.append(contentsOf: try text(runStart..<position, input, isASCII: false).string.utf8)
      position += 1
      if byte == UInt8(ascii: "\"") { return Text(String(decoding: content, as: UTF8.self)) }
      try parseEscape(input, into: &content)
      runStart = position
    }
    throw fail(.unexpectedEnd(expected: "the closing '\"'"), input)
  }

  /// From behind the backslash.
  private mutating func parseEscape(_ input: Span<UInt8>, into content: inout [UInt8]) throws(JSONError) {
    guard position < input.count else { throw fail(.unexpectedEnd(expected: "an escape sequence"), input) }
    switch input[position] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(input[position])
    case UInt8(ascii: "b"): content.append(0x08)
    case UInt8(ascii: "f"): content.append(0x0c)
    case UInt8(ascii: "n"): content.append(0x0a)
    case UInt8(ascii: "r"): content.append(0x0d)
    case UInt8(ascii: "t"): content.append(0x09)
    case UInt8(ascii: "u"):
      let scalar = try parseUnicodeEscape(input)
      content.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
      return
    default: throw fail(.invalidEscape, at: position - 1, input)
    }
    position += 1
  }

  /// From the `u`: four digits, or a surrogate pair.
  private mutating func parseUnicodeEscape(_ input: Span<UInt8>) throws(JSONError) -> Unicode.Scalar {
    let start = position - 1
    let first = try parseFourDigits(input)
    if let scalar = Unicode.Scalar(first) { return scalar }
    guard first < 0xdc00, position + 1 < input.count, input[position] == UInt8(ascii: "\\"),
      input[position + 1] == UInt8(ascii: "u")
    else { throw fail(.loneSurrogate, at: start, input) }
    position += 1
    let second = try parseFourDigits(input)
    guard (0xdc00...0xdfff).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    else { throw fail(.loneSurrogate, at: start, input) }
    return scalar
  }

  private mutating func parseFourDigits(_ input: Span<UInt8>) throws(JSONError) -> UInt32 {
    position += 1
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard position < input.count else { throw fail(.unexpectedEnd(expected: "a hexadecimal digit"), input) }
      guard let digit = hexadecimalDigit(input[position]) else { throw fail(.invalidEscape, input) }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }
}

/// Bytes before the first sequence that is not well formed (Unicode 16, table 3-7).
private func validUTF8Prefix(_ input: Span<UInt8>) -> Int {
  var index = 0
  while index < input.count {
    let (length, second): (Int, ClosedRange<UInt8>) =
      switch input[index] {
      case 0x00...0x7f: (1, 0...0)
      case 0xc2...0xdf: (2, 0x80...0xbf)
      case 0xe0: (3, 0xa0...0xbf)
      case 0xed: (3, 0x80...0x9f)
      case 0xe1...0xef: (3, 0x80...0xbf)
      case 0xf0: (4, 0x90...0xbf)
      case 0xf1...0xf3: (4, 0x80...0xbf)
      case 0xf4: (4, 0x80...0x8f)
      default: (0, 0...0)
      }
    guard length > 0, index + length <= input.count else { return index }
    for step in 1..<max(length, 1) {
      let allowed = step == 1 ? second : 0x80...0xbf
      guard allowed.contains(input[index + step]) else { return index }
    }
    index += length
  }
  return index
}
