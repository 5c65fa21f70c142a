/// A partition name, or a prefix of names followed by `*`.
struct NamePattern: Sendable {
  private let prefix: Substring.UTF8View
  private let isPrefix: Bool

  init(_ text: Text) {
    isPrefix = text.utf8.last == UInt8(ascii: "*")
    prefix = Substring(text.string).utf8.dropLast(isPrefix ? 1 : 0)
  }

  /// Plainly: a pattern's letters alone decide.
  func begins(_ name: Text) -> Bool { begins(name.utf8) }

  /// A name with a reserved key is reached only by a pattern that begins with that key and its "=" (rule C16): if it hung
  /// on a rule that is there, the rule would narrow, and who cannot read it would accept more.
  func matches(_ name: PartitionName) -> Bool { matches(Substring(name.text.string).utf8) }

  /// Is every name of `other` a name of this pattern?
  func covers(_ other: NamePattern) -> Bool { matches(other.prefix) && (isPrefix || !other.isPrefix) }

  private func begins<Name: Collection<UInt8>>(_ name: Name) -> Bool {
    isPrefix ? name.starts(with: prefix) : name.elementsEqual(prefix)
  }

  private func matches(_ name: Substring.UTF8View) -> Bool {
    guard begins(name) else { return false }
    guard let key = ReservedKey.prefix(of: name) else { return true }
    return prefix.starts(with: key)
  }
}

/// Keys of partition names that `*` and shorter prefixes do not reach: those of rules with a meaning of their own, and
/// every key that begins with `_`, which later rules will want (rule C16).
enum ReservedKey {
  private static let names = [Statement.Rule.Key.user, Statement.Rule.Key.allUsers, Statement.Rule.Key.conversation]

  /// `key=`, where the name begins with a reserved key.
  static func prefix(of name: Substring.UTF8View) -> Substring.UTF8View? {
    guard let equals = name.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    let key = name[..<equals]
    guard key.first == UInt8(ascii: "_") || names.contains(where: { key.elementsEqual($0.utf8) }) else { return nil }
    return name[...equals]
  }
}

extension PartitionName {
  /// Key and value of `key=value` with exactly one "=" and nothing empty; nil: no rule applies to the name (rule C19).
  package var keyValue: (key: Text, value: Text)? {
    let parts = text.utf8.split(separator: UInt8(ascii: "="), omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
    return (Text(String(Substring(parts[0]))), Text(String(Substring(parts[1]))))
  }
}

extension Statement.Rule {
  /// Keys of partition names for which rules have a meaning (rules C18, C19).
  package enum Key {
    /// Members whose profile has this agency write.
    package static let agency: Text = "agency"
    /// The user of this name writes.
    package static let user: Text = "user"
    /// All read; each user writes a few fields of one document, his own.
    package static let allUsers: Text = "all-users"
    /// A room: who is invited writes (rules C24, C25).
    package static let conversation: Text = "conversation"
  }
}

extension PartitionName {
  /// The room that this statement creates.
  package static func room(createdBy id: Digest) -> Text {
    let digits = Array("0123456789abcdef".utf8)
    let hexadecimal = id.bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return Text(Statement.Rule.Key.conversation.string + "=" + String(decoding: hexadecimal, as: UTF8.self))
  }

  /// The room whose statements have this scope; nil where the scope is no room's.
  package init?(roomOf scope: Text) {
    let (key, digits) = (Array(Statement.Rule.Key.conversation.utf8) + [UInt8(ascii: "=")], 2 * Digest.byteCount)
    guard scope.utf8.count == key.count + digits, scope.utf8.starts(with: key),
      scope.utf8.dropFirst(key.count).allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }),
      let name = try? PartitionName(scope)
    else { return nil }
    self = name
  }
}
