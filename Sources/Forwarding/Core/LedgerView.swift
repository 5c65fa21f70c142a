import Replication

/// What a ledger holds, as far as this relay knows: read back from it after each connecting, and brought forward by what it
/// took since.
package struct LedgerView: Equatable, Sendable {
  package var statements: Set<Digest> = []
  /// Those that this relay did not hold when everything was read back last.
  package internal(set) var elsewhere: [StatementPlace] = []
  /// How far it held each chain as this store has it, when it was read. Above that runs are sent, though some may be there.
  package var reached: [ChainKey: UInt64] = [:]
  /// The end of the log at that time. What came later is sent, whatever its number: it may be of another branch.
  package var readAt: Int64 = 0
  /// The highest number that it holds of each chain, on whatever branch.
  package var highest: [ChainKey: UInt64] = [:]
  /// How far each chain is marked as counting.
  package var marks: [ChainKey: ChainPosition] = [:]
  /// Marks that it left alone, since another relay may know more: not sent again before something has moved.
  package var left: [ChainKey: ChainPosition] = [:]
  /// Chains of which it refused something: left out until the ledger is read anew.
  package var aside: [ChainKey: RefusedRow] = [:]
  /// Statements that it refused, by their ids: left out until the ledger is read anew.
  package private(set) var refusedStatements: [Digest: RefusedStatement] = [:]
  /// Of this store's log.
  package var amount = LogAmount()

  package init() {}

  /// So many are remembered; the others are left out as well.
  package static let refusedStatementLimit = 1_024

  package var hasRefusals: Bool { !aside.isEmpty || !refusedStatements.isEmpty }

  /// The backend's words of the first of them.
  package var refusal: String? {
    aside.min { $0.key < $1.key }?.value.sentence ?? refusedStatements.min { $0.key < $1.key }?.value.sentence
  }

  mutating func refuse(_ statement: LedgerBatch.Statement, _ sentence: String) {
    guard refusedStatements.count < LedgerView.refusedStatementLimit else { return }
    refusedStatements[statement.id] = RefusedStatement(encoded: statement.encoded, sentence: sentence)
  }

  /// - Parameter outcome: marks that it names stay as they are.
  package mutating func take(_ batch: LedgerBatch, _ outcome: AppendOutcome) {
    for statement in batch.statements { statements.insert(statement.id) }
    for run in batch.runs {
      highest[run.chain] = max(highest[run.chain] ?? 0, run.last)
    }
    let stale = Set(outcome.staleMarks)
    for (index, mark) in batch.marks.enumerated() where !stale.contains(index) {
      (marks[mark.chain], left[mark.chain]) = (mark.position, nil)
    }
    amount += batch.amount
  }

  /// Notes the marks that it left alone though it was told all that this relay knows.
  mutating func leave(_ outcome: AppendOutcome, of batch: LedgerBatch) {
    for index in outcome.staleMarks where batch.marks.indices.contains(index) {
      left[batch.marks[index].chain] = batch.marks[index].position
    }
  }

  /// Takes marks as the ledger has them by now: another relay may have set them since, or a batch whose answer was lost.
  /// Answers what counts of the partitions in which they are not what this relay took them for.
  mutating func correct(_ outcome: ReadBackOutcome) -> [PartitionID: VersionVector] {
    guard !outcome.accepted.isEmpty else { return [:] }
    let differing = outcome.marks.filter { marks[$0.key] != $0.value }
    for (chain, position) in differing { marks[chain] = position }
    let partitions = Set(differing.keys.lazy.map(\.partition))
    return outcome.accepted.filter { partitions.contains($0.key) }
  }

  /// Whether a run of the log is to be sent.
  package func lacks(_ chain: ChainKey, through last: UInt64, arrival: Int64) -> Bool {
    guard aside[chain] == nil else { return false }
    return arrival > readAt || last > reached[chain] ?? 0
  }

  /// Numbers that an earlier view had and this one lacks: the ledger lost them, as one that was put back from a copy has.
  package func lost(since earlier: LedgerView) -> UInt64 {
    earlier.highest.reduce(0) { sum, entry in
      let now = highest[entry.key] ?? 0
      return entry.value > now ? sum + (entry.value - now) : sum
    }
  }
}

/// A statement that a ledger refused.
package struct RefusedStatement: Equatable, Sendable {
  /// As it was signed.
  package let encoded: [UInt8]
  /// The backend's words.
  package let sentence: String

  package init(encoded: [UInt8], sentence: String) { (self.encoded, self.sentence) = (encoded, sentence) }
}

/// What a ledger refused of a chain.
package struct RefusedRow: Equatable, Sendable {
  /// Numbers of the changes of its run; nil: how far the chain counts was refused.
  package let changes: ClosedRange<UInt64>?
  /// The backend's words.
  package let sentence: String

  package init(_ changes: ClosedRange<UInt64>?, _ sentence: String) {
    (self.changes, self.sentence) = (changes, sentence)
  }
}
