import Replication

package struct ConflictQuery: Sendable, Equatable {
  /// Where the page before ended; nil: from the first document.
  package var after: String?
  /// One document may bring more.
  package var limit: Int
  package init(after: String? = nil, limit: Int = ConflictQuery.standardLimit) {
    (self.after, self.limit) = (after, limit)
  }

  package static let standardLimit = 100
  package static let greatestLimit = 1_000
}

package struct ConflictPage: Sendable, Equatable {
  package var conflicts: [ConflictStatus] = []
  /// From where to go on; nil: everything was looked at.
  package var next: String?
  /// Documents that were looked at.
  package var examined = 0
  /// Conflicts of these documents that are not told: they come once others of the same document are decided.
  package var untold = 0
  package init() {}
}

/// A place of a document where more than what is shown was written, by people who had not seen one another's.
package struct ConflictStatus: Sendable, Equatable {
  /// Names it in this version of the document, and in no other.
  package var id = ""
  package var collection = ""
  package var document = Value.null
  /// The document is deleted, and something was written that who deleted it had not seen.
  package var isDeleted = false
  /// Keys with dots between, `[]` for an element of a list, `{}` for a member of a set; empty: the whole document.
  package var place = ""
  /// Nil where nothing is shown there.
  package var shown: Value?
  /// Who last wrote what is shown there; nil where the document's state does not say, as of a deletion.
  package var shownBy: Writer?
  package var values: [Candidate] = []
  package init() {}

  package struct Writer: Sendable, Equatable {
    package var replica = ""
    package var sequence: UInt64 = 0
    /// Where that is known here.
    package var device = ""
    package var label = ""
    package var user = ""
    /// By its author's clock, in milliseconds since 1970.
    package var writtenMilliseconds: Int64 = 0
    package init() {}
  }

  /// Something that was written there or below and is not shown.
  package struct Candidate: Sendable, Equatable {
    package var path = ""
    /// `set`, `remove`, `increment` or `add`.
    package var kind = ""
    /// Absent for `remove`.
    package var value: Value?
    package var writer = Writer()
    package init() {}
  }
}

package enum ConflictChoice: Sendable, Equatable {
  /// What is shown.
  case keep
  /// Values of the conflict, by their places in it from 1 on; where they exclude one another the last stands.
  case take([Int])
  /// Another value, at the conflict's place.
  case value(Value)
}
