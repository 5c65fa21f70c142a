import Replication

/// What a backend says of its documents besides those.
package struct DocumentNews: Equatable, Sendable {
  /// The position that it keeps of this relay.
  package var position = ""
  /// The last batch with documents that it took of the process that asks.
  package var step: UInt64 = 0
  /// Some of those on which another relay has the word that did not know all that the ledger has, a few at a time by turns.
  package var unsure: [DocumentPlace] = []
  package init() {}

  /// Documents of one answer.
  package static let limit = 256
}

extension LedgerBatch {
  /// Which of a process's batches with documents this one is, and which one the backend took before it. One that was put back
  /// from a copy has another one, and refuses the batch as one that leaves a gap: the position alone does not tell, since it
  /// moves only once nothing is left to send.
  package struct DocumentStep: Equatable, Sendable {
    package let writer: String
    package let number: UInt64
    package let before: UInt64
    package init(writer: String, number: UInt64, before: UInt64) {
      (self.writer, self.number, self.before) = (writer, number, before)
    }
  }
}

/// Counts a process's batches with documents. No number is given twice, also after the backend was put back.
struct DocumentSteps: Equatable, Sendable {
  private var last: UInt64 = 0
  /// The last that the backend has.
  private(set) var kept: UInt64 = 0

  /// As the backend says.
  mutating func begin(at kept: UInt64) { (self.kept, last) = (kept, max(last, kept)) }

  /// Nil where it has no documents.
  mutating func next(for batch: LedgerBatch, by writer: String) -> LedgerBatch.DocumentStep? {
    guard !batch.documents.isEmpty || !batch.ranges.isEmpty || !batch.documentPosition.isEmpty else { return nil }
    last += 1
    return LedgerBatch.DocumentStep(writer: writer, number: last, before: kept)
  }

  mutating func take(_ step: LedgerBatch.DocumentStep?) { kept = step?.number ?? kept }
}
