import Replication

/// What somebody at the backend wants a document to be, and the version that he had read.
package struct OfficeEdit: Equatable, Sendable {
  /// Made at the backend; it travels with the change as its cause.
  package let id: UUIDValue
  package let partition: String
  package let collection: String
  /// Extended JSON.
  package let documentID: String
  /// The merge state of the version that was read, as it is stored; nil where there was no document.
  package let read: [UInt8]?
  /// Extended JSON; nil where the document is to be deleted.
  package let body: String?
  /// For whom: a name that the office knows.
  package let user: String
  /// When it was asked for, by the backend's clock, in milliseconds since 1970.
  package let madeMilliseconds: Int64

  package init(
    id: UUIDValue, partition: String, collection: String, documentID: String, read: [UInt8]?, body: String?,
    user: String, madeMilliseconds: Int64
  ) {
    (self.id, self.partition, self.collection, self.documentID) = (id, partition, collection, documentID)
    (self.read, self.body, self.user, self.madeMilliseconds) = (read, body, user, madeMilliseconds)
  }
}

/// What became of an edit at the node.
package enum EditOutcome: Equatable, Sendable {
  /// A change has it; the ledger will tell.
  case written
  /// The document is as it is to be.
  case unchanged
  /// It will never be done, with the reason.
  case refused(String)
  /// It cannot be done here now, with the reason; another relay may.
  case left(String)
}

/// What a ledger says, at one moment of it, of claims that a relay has.
package struct ClaimAnswer: Equatable, Sendable {
  /// It goes as far in each chain as was asked.
  package let hasChains: Bool
  /// Claimed by that relay, not settled, and without a change.
  package let standing: Set<UUIDValue>
  package init(hasChains: Bool, standing: Set<UUIDValue>) { (self.hasChains, self.standing) = (hasChains, standing) }
}

/// Edits at a backend. Calls are as those of ``Backend``, on its thread.
package protocol EditStore: AnyObject, Sendable {
  /// Takes edits that nobody has, that this relay had already, or whose relay has been silent for long: in the order in which
  /// they were made. Whatever the ledger has a change of is not among them.
  ///
  /// - Parameter patterns: partitions that they are of, or beginnings of their names with `*` behind; nil: all.
  func claimEdits(most: Int, of patterns: [Text]?) throws(BackendProblem) -> [OfficeEdit]
  /// Which of these edits are still this relay's to do, and whether the ledger has these chains up to these numbers: both of the
  /// same moment, whatever becomes of the ledger before or behind it.
  func confirm(_ edits: [UUIDValue], reaching chains: [ChainReach]) throws(BackendProblem) -> ClaimAnswer
  /// What became of those that no change will tell of.
  func settle(_ outcomes: [(edit: UUIDValue, outcome: EditOutcome)]) throws(BackendProblem)
}

/// Writes edits into the mesh, as changes of the device that it belongs to.
package protocol EditWriter: AnyObject, Sendable {
  func write(_ edit: OfficeEdit) -> EditOutcome
}

extension UUIDValue {
  /// As a change names it as its cause (`Docs/PROTOCOL.md`, "Extensions").
  package var asCause: ChangeExtension {
    ChangeExtension(type: ChangeExtension.Registered.cause, content: [1] + bytes)
  }

  /// Nil where the cause is of another kind.
  package init?(cause: ChangeExtension) {
    guard cause.type == ChangeExtension.Registered.cause, cause.content.first == 1 else { return nil }
    self.init(cause.content.dropFirst())
  }
}
