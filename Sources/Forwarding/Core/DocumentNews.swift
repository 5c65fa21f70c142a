import Replication

/// What a ledger that was put back from a copy has otherwise.
package struct LedgerSums: Equatable, Sendable {
  /// ``StatementSum`` of those that it has.
  package var statements: Int64 = 0
  /// What the numbers of the last batches of all processes come to: it grows with each batch.
  package var batches: UInt64 = 0
  package init() {}
}

/// What a backend says of its documents besides those.
package struct DocumentNews: Equatable, Sendable {
  /// The position that it keeps of this relay.
  package var position = ""
  /// The last batch that it took of the process that asks.
  package var step: UInt64 = 0
  package var ledger = LedgerSums()
  /// Some of those on which a relay has the word that did not know all that the ledger has, perhaps this one: a few at a time, by
  /// turns.
  package var unsure: [DocumentPlace] = []
  package init() {}

  var batchesOfOthers: UInt64 { ledger.batches - min(ledger.batches, step) }

  /// Documents of one answer.
  package static let limit = 256
}

extension LedgerBatch {
  /// Which of a process's batches this one is, and which one the backend took before it. One that was put back from a copy has
  /// another one, and refuses the batch as one that leaves a gap: a position of documents alone does not tell, since it moves
  /// only once nothing is left to send, and the ends of chains say nothing of statements and other branches.
  package struct Step: Equatable, Sendable {
    package let writer: String
    package let number: UInt64
    package let before: UInt64
    package init(writer: String, number: UInt64, before: UInt64) {
      (self.writer, self.number, self.before) = (writer, number, before)
    }
  }
}

/// Counts a process's batches. No number is given twice, also after the backend was put back.
struct BatchSteps: Equatable, Sendable {
  private var last: UInt64 = 0
  /// The last that the backend has.
  private(set) var kept: UInt64 = 0

  /// As the backend says.
  mutating func begin(at kept: UInt64) { (self.kept, last) = (kept, max(last, kept)) }

  mutating func next(by writer: String) -> LedgerBatch.Step {
    last += 1
    return LedgerBatch.Step(writer: writer, number: last, before: kept)
  }

  mutating func take(_ step: LedgerBatch.Step?) { kept = step?.number ?? kept }
}
