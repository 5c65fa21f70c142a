/// UTF-8 text compared byte by byte.
///
/// Swift's `String` compares by canonical equivalence, so that two different spellings of "é" are equal there. Keys and
/// ids of documents must not be merged that way: every node, in any language, compares the bytes.
package struct Text: Hashable, Comparable, Sendable, ExpressibleByStringLiteral {
  package let string: String

  package init(_ string: String) { self.string = string }
  package init(stringLiteral value: String) { self.string = value }

  package var utf8: String.UTF8View { string.utf8 }
  package var bytes: [UInt8] { Array(string.utf8) }

  package static func == (a: Text, b: Text) -> Bool {
    a.withBytes { a in b.withBytes { b in a.elementsEqual(b) } }
  }

  package static func < (a: Text, b: Text) -> Bool { a.string.utf8.lexicographicallyPrecedes(b.string.utf8) }

  package func hash(into hasher: inout Hasher) {
    withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xff as UInt8)
  }

  /// All at once, which is much faster than one after the other.
  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    var string = string
    return string.withUTF8(body)
  }
}
