/// Whether the bytes are well-formed UTF-8 (Unicode table 3-7): no surrogates, no overlong forms, at most U+10FFFF.
///
/// Own code because `String(validating:as:)` allocates, and every text of every received change is checked.
func isWellFormedUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
  let count = bytes.count
  var index = 0
  while index < count {
    if index + 8 <= count, bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0 {
      index += 8
      continue
    }
    if index + 4 <= count, bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self) & 0x8080_8080 == 0 {
      index += 4
      continue
    }
    let first = bytes[index]
    if first < 0x80 {
      index += 1
      continue
    }
    guard let form = MultibyteForm(first), index + form.length <= count, form.second.contains(bytes[index + 1]) else {
      return false
    }
    for place in index + 2..<index + max(2, form.length) where bytes[place] & 0xc0 != 0x80 { return false }
    index += form.length
  }
  return true
}

private struct MultibyteForm {
  let length: Int
  /// What the second byte may be; later ones are always 80…BF.
  let second: ClosedRange<UInt8>

  init?(_ first: UInt8) {
    switch first {
    case 0xc2...0xdf: (length, second) = (2, 0x80...0xbf)
    case 0xe0: (length, second) = (3, 0xa0...0xbf)
    case 0xed: (length, second) = (3, 0x80...0x9f)
    case 0xe1...0xef: (length, second) = (3, 0x80...0xbf)
    case 0xf0: (length, second) = (4, 0x90...0xbf)
    case 0xf1...0xf3: (length, second) = (4, 0x80...0xbf)
    case 0xf4: (length, second) = (4, 0x80...0x8f)
    default: return nil
    }
  }
}
