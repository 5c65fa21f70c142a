import Replication

/// A document in its partition.
package struct DocumentPlace: Hashable, Comparable, Sendable {
  package let partition: PartitionID
  package let key: DocumentKey
  package init(partition: PartitionID, key: DocumentKey) { (self.partition, self.key) = (partition, key) }

  package static func < (a: DocumentPlace, b: DocumentPlace) -> Bool {
    a.partition == b.partition ? a.key < b.key : a.partition < b.partition
  }
}

extension LedgerBatch {
  /// A document as this relay's store shows it, merged there.
  package struct Document: Equatable, Sendable {
    package let place: DocumentPlace
    package var generation: UInt64 = 0
    package var isAlive = false
    /// Its merge state as it is stored, with the dots that it stands on and every value exact; empty where no change to it
    /// counts any more.
    package var state: [UInt8] = []
    package var stateDigest = Digest.zero
    /// Extended JSON, each nil where the backend cannot hold it.
    package var id: String?
    package var body: String?
    /// What is not shown and waits for somebody to decide, as a JSON array; nil where there is nothing of the kind.
    package var conflicts: String?
    /// Why a living document has no body: it is a dead letter.
    package var refusal: String?

    package init(_ place: DocumentPlace) { self.place = place }

    package var byteCount: Int {
      state.count + (body?.utf8.count ?? 0) + (conflicts?.utf8.count ?? 0) + place.key.id.count + 64
    }
  }

  /// All that lives between two keys of a partition is in the batch: what else the backend has there is gone.
  package struct DocumentRange: Equatable, Sendable {
    package let partition: PartitionID
    /// Nil: from the first on.
    package let after: DocumentKey?
    /// Nil: through the last.
    package let through: DocumentKey?
    package init(partition: PartitionID, after: DocumentKey?, through: DocumentKey?) {
      (self.partition, self.after, self.through) = (partition, after, through)
    }
  }

  /// How far this relay knows a chain: its word on a document or a mark is newer than another relay's where it knows all that
  /// the ledger has.
  package struct Head: Equatable, Sendable {
    package let chain: ChainKey
    package let highest: UInt64
    package let isForked: Bool
    package init(chain: ChainKey, highest: UInt64, isForked: Bool) {
      (self.chain, self.highest, self.isForked) = (chain, highest, isForked)
    }
  }
}

/// What a backend says of a batch that it took.
package struct AppendOutcome: Equatable, Sendable {
  /// Marks, by their place in the batch, that it left as they are, for the same reason as documents.
  package var staleMarks: [Int] = []
  /// Documents, by their place in the batch, that it left as they are: another relay wrote them, and the ledger has something
  /// that this relay does not know yet.
  package var staleDocuments: [Int] = []
  /// Ranges in which there are such documents.
  package var staleRanges: [Int] = []
  package init() {}
}

/// Where writing documents is to go on.
package struct DocumentStart: Equatable, Sendable {
  /// As this relay noted it last; empty: never.
  package var position = ""
  /// The last batch that it took of the process that asks.
  package var step: UInt64 = 0
  package var ledger = LedgerSums()
  package var deadLetters: [DeadLetter] = []
  /// Those of them that are to be tried again now; nil: all.
  package var dueDeadLetters: [DeadLetter]?
  /// There are no more of them than these.
  package var hasAllDeadLetters = true
  package init() {}
}

/// A living document that the backend has without its body.
package struct DeadLetter: Equatable, Sendable {
  package let place: DocumentPlace
  /// The partition's name, where the backend knows it.
  package let partition: String?
  package let reason: String
  package init(place: DocumentPlace, partition: String?, reason: String) {
    (self.place, self.partition, self.reason) = (place, partition, reason)
  }
}
