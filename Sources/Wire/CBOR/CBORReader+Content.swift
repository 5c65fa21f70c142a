import Replication

extension CBORReader {
  /// Gives the bytes of a range that this reader returned, without a copy. The one place where bytes are read without
  /// a check of their own: the range is compared with the buffer first, and every access in `body` is by its count.
  @inline(__always)
  func withContent<Result>(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    precondition(bytes.startIndex <= range.lowerBound && range.upperBound <= bytes.endIndex, "range of another buffer")
    return bytes.withUnsafeBytes { all in
      let start = range.lowerBound - bytes.startIndex
      return body(UnsafeRawBufferPointer(rebasing: all[start..<start + range.count]))
    }
  }

  /// Text that ``readTextRange()`` has found to be well formed.
  func text(at range: Range<Int>) -> Text { Text(String(decoding: bytes[range], as: UTF8.self)) }

  /// How the bytes of two ranges compare, shorter first where one begins the other.
  func compare(_ a: Range<Int>, _ b: Range<Int>) -> ByteOrder {
    withContent(a) { left in withContent(b) { right in ByteOrder(left, right) } }
  }
}

/// How one byte string lies to another.
enum ByteOrder: Sendable {
  case before, equal, after

  init(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) {
    for index in 0..<min(a.count, b.count) where a[index] != b[index] {
      self = a[index] < b[index] ? .before : .after
      return
    }
    self = a.count == b.count ? .equal : a.count < b.count ? .before : .after
  }
}
