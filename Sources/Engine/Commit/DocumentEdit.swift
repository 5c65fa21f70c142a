import Replication

/// A wish for one document: judged against the version that is there, within the transaction that
/// writes it. A value: judged twice it says the same.
package protocol DocumentEdit: Sendable {
  var collection: Text { get }
  var id: Value { get }
  /// What comes of it does not depend on what is there: it can replace a document that does not read.
  var isWhole: Bool { get }
  /// Answers what the document is to be. Throws to refuse, and with it the whole change.
  func outcome(on present: PresentDocument) throws -> DocumentOutcome
}

extension DocumentEdit {
  package var isWhole: Bool { false }
  var key: DocumentKey { DocumentKey(collection: collection, id: id) }
}

package enum DocumentOutcome: Sendable {
  /// The new body; only what differs from the present one is written. `hints` say what arrays and numbers stand for.
  case body(ValueMap, hints: WriteHints)
  case deleted
  /// What somebody decided about conflicts, which close by it (rule M16); nil: a deleted document stays so.
  case decided(ValueMap?, closing: [Conflict])
}

/// One document as it is now.
package struct PresentDocument: Sendable {
  /// Nil where there never was one.
  package let state: DocumentState?
  /// Nil where it is not alive.
  package let body: ValueMap?
  /// There is one that does not read; it will be replaced.
  package let isDamaged: Bool
  private let encoded: [UInt8]
  private let hash: HashFunction

  init(
    state: DocumentState?, body: ValueMap?, isDamaged: Bool = false, encoded: [UInt8], hash: @escaping HashFunction
  ) {
    (self.state, self.body, self.encoded, self.hash) = (state, body, encoded, hash)
    self.isDamaged = isDamaged
  }

  /// Its causal version; empty where there never was one.
  package var etag: String { state == nil ? "" : DocumentETag.of(encoded, hash) }
}

/// A document's causal version: the same on every node with the same accepted changes of it.
package enum DocumentETag {
  /// Says how the rest is made, so that another way can be told from it.
  private static let scheme = "1-"

  /// Half of a hash over what of which changes counts, in the encoding of "Document state" in Docs/PROTOCOL.md, as 32
  /// hex digits behind the scheme. However a store keeps documents, it is made of those bytes.
  package static func of(_ state: [UInt8], _ hash: HashFunction) -> String {
    let words = Digest.of(DomainTag.etag.bytes + state, hash).words
    return scheme + hex(words.0) + hex(words.1)
  }

  private static func hex(_ word: UInt64) -> String {
    let digits = String(word, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}

/// The answer to a change that was asked for.
package struct ChangeReceipt: Sendable, Equatable {
  /// Nil where nothing differed, so that no change was made.
  package let dot: Dot?
  /// ETag of each document after the write, in the order of the edits; nil for a deleted one.
  package let etags: [String?]
  /// Whether each edit made a document that was not there before.
  package let created: [Bool]
}
