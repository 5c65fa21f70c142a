/// Why bytes are not the deterministic CBOR that was expected, and where.
package struct CBORError: Error, Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    case truncated = "ends too early"
    case trailingBytes = "bytes after the end"
    case notShortest = "not in shortest form"
    case indefiniteLength = "indefinite length"
    case keyOrder = "map keys do not ascend"
    case invalidUTF8 = "text is not UTF-8"
    case unexpectedType = "another type was expected"
    case outOfRange = "number out of range"
    case wrongLength = "wrong length"
    case tooLong = "longer than allowed"
    case tooDeep = "nested too deeply"
    case notFinite = "not a finite number"
    case unsupported = "simple value without meaning here"
    case unknownTag = "unknown tag"
    case reservedTag = "reserved tag"
  }

  package let kind: Kind
  /// Index in the buffer that was read.
  package let offset: Int

  package init(_ kind: Kind, at offset: Int) { (self.kind, self.offset) = (kind, offset) }
}
