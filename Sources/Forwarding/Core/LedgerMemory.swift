/// What a relay remembers beyond its restart: so far of its log had been in that ledger. A ledger that holds less was put back
/// from a copy. That alone cannot be asked of the ledger itself.
package struct LedgerMemory: Equatable, Sendable {
  /// Of the ledger and of each of its copies; another ledger was never filled.
  package let ledger: String
  /// Place in this store's log, on the log's own form.
  package let position: String

  /// Which process wrote down the position of documents that the ledger kept then.
  package let writer: String

  package init(ledger: String, position: String, writer: String) {
    (self.ledger, self.position, self.writer) = (ledger, position, writer)
  }

  package var text: String { "\(ledger) \(position) \(writer)\n" }

  /// Nil where it is no ``text``.
  package init?(text: String) {
    let words = text.split(whereSeparator: \.isWhitespace)
    guard words.count == 3 else { return nil }
    (ledger, position, writer) = (String(words[0]), String(words[1]), String(words[2]))
  }
}
