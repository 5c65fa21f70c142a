import Replication

/// C16: a partition's name, or a prefix of names followed by `*`; compared by bytes.
struct NaivePattern {
  private let letters: [UInt8]
  private let start: [UInt8]
  private let isPrefix: Bool

  init(_ text: Text) {
    letters = Array(text.string.utf8)
    isPrefix = letters.last == UInt8(ascii: "*")
    start = isPrefix ? Array(letters.dropLast()) : letters
  }

  /// C12: without regard to reserved keys.
  func matchesPlainly(_ name: Text) -> Bool {
    let name = Array(name.string.utf8)
    return isPrefix ? name.starts(with: start) : name == start
  }

  /// C16: a name with a reserved key is reached only by a pattern that begins with its `key=`.
  func matches(_ name: Text) -> Bool {
    letters.starts(with: NaivePattern.reserved(name)) && matchesPlainly(name)
  }

  /// C15: is every name of the other pattern, or that one name, a name of this pattern?
  func includes(_ other: Text) -> Bool {
    let narrower = NaivePattern(other)
    return matches(Text(String(decoding: narrower.start, as: UTF8.self))) && (isPrefix || !narrower.isPrefix)
  }

  /// `key=` where the name's key is reserved by the format, else nothing.
  private static func reserved(_ name: Text) -> [UInt8] {
    let name = Array(name.string.utf8)
    guard let end = name.firstIndex(of: UInt8(ascii: "=")) else { return [] }
    let key = Array(name[..<end])
    let isReserved =
      key.first == UInt8(ascii: "_") || ["user", "all-users", "conversation"].contains { Array($0.utf8) == key }
    return isReserved ? key + [UInt8(ascii: "=")] : []
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
