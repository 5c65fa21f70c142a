extension Value {
  /// The bytes of rule M2: equal values, and only they, have equal bytes; byte order is the order within one type.
  package var canonicalBytes: [UInt8] {
    var out: [UInt8] = []
    appendCanonicalBytes(to: &out)
    return out
  }

  package func appendCanonicalBytes(to out: inout [UInt8]) {
    switch self {
    case .null: out.append(0x01)
    case .bool(false): out.append(0x02)
    case .bool(true): out.append(0x03)
    case .int(let value):
      out.append(0x04)
      appendCanonical(value, to: &out)
    case .double(let value):
      out.append(0x05)
      let bits = value.bitPattern
      appendBigEndian(bits >> 63 == 1 ? ~bits : bits ^ (1 << 63), to: &out)
    case .string(let text): text.appendCanonicalBytes(to: &out)
    case .bytes(let bytes):
      out.append(0x07)
      appendCanonical(bytes, to: &out)
    case .date(let milliseconds):
      out.append(0x08)
      appendCanonical(milliseconds, to: &out)
    case .objectID(let id):
      out.append(0x09)
      id.append(to: &out)
    case .uuid(let id):
      out.append(0x0a)
      id.append(to: &out)
    case .array(let items):
      out.append(0x0b)
      for item in items { item.appendCanonicalBytes(to: &out) }
      out.append(0)
    case .map(let map):
      out.append(0x0c)
      for entry in map.entries {
        entry.key.appendCanonicalBytes(to: &out)
        entry.value.appendCanonicalBytes(to: &out)
      }
      out.append(0)
    case .blob(let blob):
      // Not the list hash: whoever writes a wrong one must not make another value of the same content.
      out.append(0x0d)
      blob.hash.append(to: &out)
      appendCanonical(blob.size, to: &out)
      appendCanonical(blob.type.utf8, to: &out)
    }
  }
}

extension Text {
  /// As a value.
  package func appendCanonicalBytes(to out: inout [UInt8]) {
    out.append(0x06)
    withBytes { bytes in
      // Nearly always: all at once, which is much faster.
      guard bytes.contains(0) else {
        out.append(contentsOf: bytes)
        return out.append(0)
      }
      appendCanonical(bytes, to: &out)
    }
  }
}

/// Eight bytes, big-endian, with the sign bit flipped, so that negative numbers come first.
func appendCanonical(_ value: Int64, to out: inout [UInt8]) {
  appendBigEndian(UInt64(bitPattern: value) ^ (1 << 63), to: &out)
}

/// Content with 00 written as 00 FF, closed by 00: a prefix sorts before what it begins.
func appendCanonical(_ content: some Sequence<UInt8>, to out: inout [UInt8]) {
  for byte in content {
    out.append(byte)
    if byte == 0 { out.append(0xff) }
  }
  out.append(0)
}
