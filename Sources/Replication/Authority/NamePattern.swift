/// A partition name, or a prefix of names followed by `*`.
struct NamePattern: Sendable {
  private let prefix: Substring.UTF8View
  private let isPrefix: Bool

  init(_ text: Text) {
    isPrefix = text.utf8.last == UInt8(ascii: "*")
    prefix = text.utf8.dropLast(isPrefix ? 1 : 0)
  }

  func matches(_ name: PartitionName) -> Bool {
    isPrefix ? name.text.utf8.starts(with: prefix) : name.text.utf8.elementsEqual(prefix)
  }

  /// Is every name of `other` a name of this pattern?
  func covers(_ other: NamePattern) -> Bool {
    isPrefix ? other.prefix.starts(with: prefix) : !other.isPrefix && other.prefix.elementsEqual(prefix)
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
  }
}

/// What may be written where the `all-users` rule alone allows it (rule C18).
package enum DocumentRule {
  package static let fields: Set<Text> = ["userName", "displayName", "avatarImage", "lastSeenAt", "presence"]

  /// The user whose own document these writes touch and nothing else; nil where no user could make them.
  package static func owner(of writes: [DocumentWrite]) -> Text? {
    guard case .string(let owner)? = writes.first?.id, writes.allSatisfy({ $0.id == .string(owner) }) else {
      return nil
    }
    let fits = writes.lazy.flatMap(\.operations).allSatisfy {
      guard case .key(let field)? = $0.path.first else { return false }
      return fields.contains(field)
    }
    return fits ? owner : nil
  }
}
