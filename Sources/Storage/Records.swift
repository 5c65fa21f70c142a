import Replication

/// The store's short number for a partition. Meaningless outside this store.
package struct PartitionNumber: Hashable, Sendable {
  package let rawValue: Int64
  package init(rawValue: Int64) { self.rawValue = rawValue }
}

/// The store's short number for a chain, with its partition.
package struct ChainNumber: Hashable, Sendable {
  package let rawValue: Int64
  package let partition: PartitionNumber
  package init(rawValue: Int64, partition: PartitionNumber) { (self.rawValue, self.partition) = (rawValue, partition) }
}

/// The store's short number for the name of a collection.
package struct CollectionNumber: Hashable, Sendable {
  package let rawValue: Int64
  package init(rawValue: Int64) { self.rawValue = rawValue }
}

package struct StoredPartition: Hashable, Sendable {
  package let number: PartitionNumber
  package let id: PartitionID
  /// Nil until the name has been learnt.
  package let name: PartitionName?
  package let counters: Counters
}

/// Kept with every write, so that showing them needs no scan.
package struct Counters: Hashable, Sendable {
  /// Alive.
  package var documents: Int64 = 0
  /// Received, accepted or held.
  package var changes: Int64 = 0
  package var logBytes: Int64 = 0

  package init(documents: Int64 = 0, changes: Int64 = 0, logBytes: Int64 = 0) {
    (self.documents, self.changes, self.logBytes) = (documents, changes, logBytes)
  }

  static func += (a: inout Counters, b: Counters) {
    a.documents += b.documents
    a.changes += b.changes
    a.logBytes += b.logBytes
  }
}

/// How far a chain goes: the number of its last change and the whole chain hash there (number 0: `hash(0)`).
package struct ChainMark: Hashable, Sendable {
  package let sequence: UInt64
  package let hash: Digest
  package init(sequence: UInt64, hash: Digest) { (self.sequence, self.hash) = (sequence, hash) }

  package var position: ChainPosition { ChainPosition(sequence: sequence, tip: hash.tip) }
}

package struct StoredChain: Hashable, Sendable {
  package let number: ChainNumber
  package let replica: ReplicaID
  package let received: ChainMark
  /// So far the chain counts for certain. More may count that is judged anew at each start.
  package let accepted: ChainMark
  /// Set where the chain is forked.
  package let holdReason: String?
}

package struct StoredRun: Hashable, Sendable {
  /// Place in the order of arrival, over all partitions.
  package let arrival: Int64
  package let chain: ChainNumber
  package let first: UInt64
  package let last: UInt64
  package let context: VersionVector
  /// As it came, without the context.
  package let body: [UInt8]
  /// Rows of early stores have none.
  package let hasSum: Bool
}

package struct StoredStatement: Hashable, Sendable {
  package let arrival: Int64
  /// Milliseconds since 1970, UTC, by this node's clock; nil where nobody told.
  package let arrived: Int64?
  package let id: Digest
  package let encoded: [UInt8]
}

package struct StoredPeer: Hashable, Sendable {
  package let device: DeviceID
  /// Milliseconds since 1970, UTC.
  package let lastContact: Int64
  /// Latest first, at most ``addressLimit``.
  package let addresses: [Address]

  package struct Address: Hashable, Sendable {
    package let text: String
    package let lastUsed: Int64
  }

  /// Older addresses of one peer than these are forgotten.
  package static let addressLimit = 4
}

/// A document as it lies in the store.
package struct DocumentRow: Hashable, Sendable {
  let row: Int64
  /// Canonical bytes of the id.
  package let key: [UInt8]
  package let isAlive: Bool
  package let state: [UInt8]
  /// It is as it was written, as far as its sum tells.
  package var isIntact = true
}

/// What belongs to the store as a whole. Beside these the last rebuild of each partition (``LogPosition``).
package enum MetaKey: String, CaseIterable, Sendable {
  case storeID = "store-id"
  case fleet
  case device
  /// Own commits so far: the number that the sidecar's mark is held against.
  case ownCommits = "own-commits"
  case replica
  case replicaNonce = "replica-nonce"
  /// What the build understood that judged what is stored.
  case understanding
  /// There while damage of the log is known, until all of it was read over and is whole.
  case logDamaged = "log-damaged"
  /// Raw value of the highest hybrid timestamp given out or adopted.
  case timestamp
  /// There while this file is a restored copy under which nothing has been written: a new replica id is due.
  case restored
  /// Counts ``Store/makeDurable()``.
  case syncs
  /// Counts ``Store/noteStart()``.
  case starts
  /// Drawn for each copy of the store, as a backup is one (``LogPosition``); absent in the first.
  case copy
  /// Counts what moves documents without a run (``LogPosition``).
  case rebuilds
  /// No statement has this arrival, or one before it, that comes from now on.
  case statementsReached = "statements-reached"
}
