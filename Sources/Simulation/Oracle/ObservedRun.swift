import Replication

/// A run as an onlooker saw it stored: what acceptance and merging ask of it, nothing of its bytes.
package struct ObservedRun: Sendable {
  package let replica: ReplicaID
  package let first: UInt64
  package let hashBefore: Digest
  package let context: [ReplicaID: NaivePosition]
  package let changes: [ObservedChange]
  /// False where only its headers are known.
  package let hasContent: Bool

  package init(
    replica: ReplicaID, first: UInt64, hashBefore: Digest, context: [ReplicaID: NaivePosition],
    changes: [ObservedChange], hasContent: Bool = true
  ) {
    (self.replica, self.first, self.hashBefore) = (replica, first, hashBefore)
    (self.context, self.changes, self.hasContent) = (context, changes, hasContent)
  }
}

package struct ObservedChange: Sendable {
  package let hash: Digest
  package let timestamp: UInt64
  /// False where its author says that what this version cannot read matters (C4).
  package let isKnown: Bool
  /// C18: what it writes of the one document that may be a user's own; nil where no user could make the writes.
  package let own: OwnWrites?
  /// C22.
  package let origin: ChangeOrigin?
  package let writes: [DocumentWrite]

  /// C18: writes of one document, named after a user.
  package struct OwnWrites: Sendable, Hashable {
    package let user: Text
    /// Top-level fields beside those that the rule for own documents always allows.
    package let otherFields: Set<Text>

    package init(user: Text, otherFields: Set<Text> = []) { (self.user, self.otherFields) = (user, otherFields) }
  }

  package init(
    hash: Digest, timestamp: UInt64 = 0, isKnown: Bool = true, own: OwnWrites?, origin: ChangeOrigin? = nil,
    writes: [DocumentWrite] = []
  ) {
    (self.hash, self.timestamp, self.isKnown) = (hash, timestamp, isKnown)
    (self.own, self.origin, self.writes) = (own, origin, writes)
  }

  /// C18: the document's id is the user's name, and of its fields only those of the rule are written.
  package static func own(of writes: [DocumentWrite]) -> OwnWrites? {
    let usual: Set<Text> = ["userName", "displayName", "avatarImage", "lastSeenAt", "presence"]
    guard case .string(let user)? = writes.first?.id else { return nil }
    var fields: Set<Text> = []
    for write in writes {
      guard case .string(let id) = write.id, id == user else { return nil }
      for operation in write.operations {
        guard case .key(let field)? = operation.path.first else { return nil }
        fields.insert(field)
      }
    }
    return OwnWrites(user: user, otherFields: fields.subtracting(usual))
  }

  /// C18: does it write this user's own document, and of its fields only these and the usual?
  func isOwn(of user: Text?, beside fields: Set<Text>) -> Bool {
    guard let own, let user else { return false }
    return own.user == user && own.otherFields.isSubset(of: fields)
  }
}
