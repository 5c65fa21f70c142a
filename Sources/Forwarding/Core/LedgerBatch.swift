import Replication

/// Rows that enter the ledger together, or not at all. Whatever of it is there already stays as it is.
package struct LedgerBatch: Equatable, Sendable {
  package struct Statement: Equatable, Sendable {
    package let id: Digest
    /// As it was signed.
    package let encoded: [UInt8]
    package init(id: Digest, encoded: [UInt8]) { (self.id, self.encoded) = (id, encoded) }
  }

  package struct Run: Equatable, Sendable {
    package let chain: ChainKey
    package let first: UInt64
    package let last: UInt64
    package let hashBefore: Digest
    /// Chain hash at its last change.
    package let hash: Digest
    /// On the wire's form: whole, or as it differs from the context of the run before it in its chain.
    package let context: [UInt8]
    /// As the log has it.
    package let body: [UInt8]
    package let changes: [Change]

    package init(
      chain: ChainKey, first: UInt64, last: UInt64, hashBefore: Digest, hash: Digest, context: [UInt8], body: [UInt8],
      changes: [Change]
    ) {
      (self.chain, self.first, self.last) = (chain, first, last)
      (self.hashBefore, self.hash) = (hashBefore, hash)
      (self.context, self.body, self.changes) = (context, body, changes)
    }
  }

  package struct Change: Equatable, Sendable {
    package let hash: Digest
    package let timestamp: HybridTimestamp
    package let wallMilliseconds: Int64
    package let payloadByteCount: UInt32
    /// The edit of the office that it came from.
    package let edit: UUIDValue?

    package init(
      hash: Digest, timestamp: HybridTimestamp, wallMilliseconds: Int64, payloadByteCount: UInt32,
      edit: UUIDValue? = nil
    ) {
      (self.hash, self.timestamp) = (hash, timestamp)
      (self.wallMilliseconds, self.payloadByteCount, self.edit) = (wallMilliseconds, payloadByteCount, edit)
    }
  }

  /// A payload too large for its run.
  package struct Payload: Equatable, Sendable {
    package let partition: PartitionID
    package let hash: Digest
    package let bytes: [UInt8]
    package init(partition: PartitionID, hash: Digest, bytes: [UInt8]) {
      (self.partition, self.hash, self.bytes) = (partition, hash, bytes)
    }
  }

  /// How far a chain counts; sequence 0: not at all.
  package struct Mark: Equatable, Sendable {
    package let chain: ChainKey
    package let position: ChainPosition
    package init(chain: ChainKey, position: ChainPosition) { (self.chain, self.position) = (chain, position) }
  }

  package var partitions: [PartitionID: PartitionName] = [:]
  package var statements: [Statement] = []
  package var payloads: [Payload] = []
  package var runs: [Run] = []
  package var marks: [Mark] = []
  package var documents: [Document] = []
  package var ranges: [DocumentRange] = []
  /// Of the partitions whose documents are in it, or whose marks at the end of the log.
  package var heads: [Head] = []
  /// ``StatementSum`` of those that the ledger has with this batch and this relay knows (``StatementKnowledge``). Nothing is said of
  /// them where the batch has no word that may stand against another relay's.
  package var knownStatements: Int64 = 0
  /// Documents are sent up to there; empty where some are still to come.
  package var documentPosition = ""
  /// What the backend keeps of that, as far as this relay knows: where it keeps another one it was put back from a copy, and
  /// refuses the batch as one that leaves a gap.
  package var documentPositionBefore = ""
  package var step: Step?

  package init() {}

  package var isEmpty: Bool { hasNoLedgerRows && documents.isEmpty && ranges.isEmpty }

  /// But for marks.
  package var hasNoRows: Bool { statements.isEmpty && runs.isEmpty && documents.isEmpty && ranges.isEmpty }
  package var hasNoLedgerRows: Bool { statements.isEmpty && runs.isEmpty && marks.isEmpty }

  /// What a backend could refuse by itself: marks beside runs go with those, and ranges with documents.
  package var itemCount: Int {
    let rows = statements.count + runs.count + (documents.isEmpty ? ranges.count : documents.count)
    return rows == 0 ? marks.count : rows
  }

  /// Of which it has a word that may stand against another relay's.
  package var judgedPartitions: [PartitionID] {
    Set(marks.map(\.chain.partition)).union(documentPartitions).sorted()
  }

  package var documentPartitions: [PartitionID] {
    Set(documents.map(\.place.partition)).union(ranges.map(\.partition)).sorted()
  }

  package var amount: LogAmount {
    runs.reduce(into: LogAmount()) { sum, run in
      sum += LogAmount(changes: Int64(run.changes.count), bytes: Int64(run.body.count))
    }
  }
}
