extension Value {
  /// The id whose canonical bytes (M2) these are: a string, an integer, an object id or a UUID. Nil for anything else.
  package init?(canonicalID bytes: [UInt8]) {
    guard let tag = bytes.first else { return nil }
    let content = bytes.dropFirst()
    switch tag {
    case 0x04:
      guard content.count == 8 else { return nil }
      var iterator = content.makeIterator()
      self = .int(Int64(bitPattern: bigEndianWord(&iterator) ^ (1 << 63)))
    case 0x06:
      guard let text = Value.unescaped(content), let string = String(validating: text, as: UTF8.self) else {
        return nil
      }
      self = .string(Text(string))
    case 0x09:
      guard let id = ObjectID(content) else { return nil }
      self = .objectID(id)
    case 0x0a:
      guard let id = UUIDValue(content) else { return nil }
      self = .uuid(id)
    default: return nil
    }
  }

  /// Content in which 00 stands as 00 FF and is closed by a single 00.
  private static func unescaped(_ content: ArraySlice<UInt8>) -> [UInt8]? {
    guard content.last == 0 else { return nil }
    var out: [UInt8] = []
    out.reserveCapacity(content.count)
    var rest = content.dropLast()[...]
    while let byte = rest.popFirst() {
      out.append(byte)
      if byte == 0 { guard rest.popFirst() == 0xff else { return nil } }
    }
    return out
  }
}
