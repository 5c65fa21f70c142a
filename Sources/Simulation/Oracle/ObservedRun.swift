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
  /// C18: the user whose own document, and nothing else, it writes.
  package let owner: Text?
  /// C22.
  package let origin: ChangeOrigin?
  package let writes: [DocumentWrite]

  package init(
    hash: Digest, timestamp: UInt64 = 0, isKnown: Bool = true, owner: Text?, origin: ChangeOrigin? = nil,
    writes: [DocumentWrite] = []
  ) {
    (self.hash, self.timestamp, self.isKnown) = (hash, timestamp, isKnown)
    (self.owner, self.origin, self.writes) = (owner, origin, writes)
  }

  /// C18: the one user whom writes under the `all-users` rule alone may be by: the document's id is his name, and of its
  /// fields only these are written.
  package static func owner(of writes: [DocumentWrite]) -> Text? {
    let fields: [Text] = ["userName", "displayName", "avatarImage", "lastSeenAt", "presence"]
    guard case .string(let owner)? = writes.first?.id else { return nil }
    for write in writes {
      guard case .string(let id) = write.id, id == owner else { return nil }
      for operation in write.operations {
        guard case .key(let field)? = operation.path.first, fields.contains(field) else { return nil }
      }
    }
    return owner
  }
}
