/// What may be written where the `all-users` rule alone allows it (rule C18).
package enum DocumentRule {
  /// Fields that every such rule allows; its own come beside them.
  package static let fields: Set<Text> = ["userName", "displayName", "avatarImage", "lastSeenAt", "presence"]

  /// The one document that these writes touch, where it may be a user's own; nil where no user could make them.
  package static func ownDocument(of writes: [DocumentWrite]) -> OwnDocument? {
    guard case .string(let user)? = writes.first?.id, writes.allSatisfy({ $0.id == .string(user) }) else {
      return nil
    }
    var others: Set<Text> = []
    for operation in writes.lazy.flatMap(\.operations) {
      guard case .key(let field)? = operation.path.first else { return nil }
      if !fields.contains(field) { others.insert(field) }
    }
    return OwnDocument(user: user, otherFields: others)
  }
}

/// A document that is named after a user, and what a change writes of it.
package struct OwnDocument: Hashable, Sendable {
  package let user: Text
  /// Top-level fields beside ``DocumentRule/fields``.
  package let otherFields: Set<Text>

  package init(user: Text, otherFields: Set<Text> = []) { (self.user, self.otherFields) = (user, otherFields) }
}
