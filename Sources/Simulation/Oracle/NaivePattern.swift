import Replication

/// C15, C16: a partition's name, or a prefix of names followed by `*`; compared by bytes.
struct NaivePattern {
  private let begin: [UInt8]
  private let isPrefix: Bool

  init(_ text: Text) {
    let bytes = Array(text.string.utf8)
    isPrefix = bytes.last == UInt8(ascii: "*")
    begin = isPrefix ? Array(bytes.dropLast()) : bytes
  }

  func matches(_ name: Text) -> Bool {
    isPrefix ? name.string.utf8.starts(with: begin) : Array(name.string.utf8) == begin
  }

  /// C15: is every name of `other` a name of this pattern?
  func includes(_ other: NaivePattern) -> Bool {
    if isPrefix { return other.begin.starts(with: begin) }
    return !other.isPrefix && other.begin == begin
  }
}

/// C19: rules apply to `key=value` with exactly one "=", both sides non-empty.
struct NaiveRuleName {
  let key: Text
  let value: Text

  init?(_ partition: Text) {
    let sides = Array(partition.string.utf8).split(separator: UInt8(ascii: "="), omittingEmptySubsequences: false)
    guard sides.count == 2, let key = sides.first, let value = sides.last, !key.isEmpty, !value.isEmpty else {
      return nil
    }
    self.key = Text(String(decoding: key, as: UTF8.self))
    self.value = Text(String(decoding: value, as: UTF8.self))
  }
}
