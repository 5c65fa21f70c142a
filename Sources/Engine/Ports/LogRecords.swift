import Replication

/// One incarnation of this device's store, under which it writes (rule C2).
package struct Incarnation: Hashable, Sendable {
  package let id: ReplicaID
  package let nonce: UUIDValue
  package init(id: ReplicaID, nonce: UUIDValue) { (self.id, self.nonce) = (id, nonce) }
}

/// One that was left for the right of another membership alone, and may be gone on under again.
package struct RestingReplica: Hashable, Sendable {
  package let incarnation: Incarnation
  /// Of where its chains ended when it was left: who holds more of one, or another end, does not go on under it.
  package let ends: Digest
  package init(incarnation: Incarnation, ends: Digest) { (self.incarnation, self.ends) = (incarnation, ends) }
}

/// Facts that the store notes about this node's own writing.
package struct OwnFacts: Hashable, Sendable {
  package var replica: Incarnation?
  /// Own changes so far, over all partitions and replicas.
  package var commits: UInt64 = 0
  /// The highest timestamp that was given out or adopted.
  package var timestamp = HybridTimestamp.zero
  /// The store is a copy that was put back, and nothing was written since.
  package var isRestored = false
  /// What the build understood that judged what is stored (``KnownFormats/understanding``); nil in a new store.
  package var understanding: [UInt8]?
  /// Damage of the log was known, and not all of it was read over and found whole since.
  package var isLogDamaged = false
  package init() {}
}

package struct LogPartition: Hashable, Sendable {
  package let id: PartitionID
  package let name: PartitionName
  package let totals: LogTotals
  package init(id: PartitionID, name: PartitionName, totals: LogTotals) {
    (self.id, self.name, self.totals) = (id, name, totals)
  }
}

/// Sums that are kept with every write, so that showing them needs no scan.
package struct LogTotals: Hashable, Sendable {
  /// Documents that are alive.
  package let documents: Int64
  /// Changes in the log, whether they count or are held.
  package let changes: Int64
  package let logBytes: Int64
  package init(documents: Int64, changes: Int64, logBytes: Int64) {
    (self.documents, self.changes, self.logBytes) = (documents, changes, logBytes)
  }
}

/// How far a chain goes: the number of its last change and the whole chain hash there (number 0: the genesis hash).
package struct ChainMark: Hashable, Sendable {
  package let sequence: UInt64
  package let hash: Digest
  package init(sequence: UInt64, hash: Digest) { (self.sequence, self.hash) = (sequence, hash) }
  package var position: ChainPosition { ChainPosition(sequence: sequence, tip: hash.tip) }
}

/// How far a chain is stored, and how far it counts without a doubt.
package struct ChainMarks: Hashable, Sendable {
  package let received: ChainMark
  /// The mark below which nothing is forked or held; what is above it in the log is learned anew at start.
  package let accepted: ChainMark
  /// True where a branch lost: it must be learned again at start, however short the chosen one is.
  package let isForked: Bool

  package init(received: ChainMark, accepted: ChainMark, isForked: Bool) {
    (self.received, self.accepted, self.isForked) = (received, accepted, isForked)
  }
}

package struct LogChain: Hashable, Sendable {
  package let partition: PartitionID
  package let replica: ReplicaID
  package let marks: ChainMarks
  package init(partition: PartitionID, replica: ReplicaID, marks: ChainMarks) {
    (self.partition, self.replica, self.marks) = (partition, replica, marks)
  }
}

/// A run as it lies in the log.
package struct LogRun: Hashable, Sendable {
  /// Place in the order of arrival, over all partitions.
  package let arrival: Int64
  package let first: UInt64
  package let last: UInt64
  package let context: VersionVector
  /// The run's bytes as they came, without the context.
  package let body: [UInt8]
  /// Its row has a sum, and was held against it: rows of early stores have none.
  package let hasSum: Bool
  package init(
    arrival: Int64, first: UInt64, last: UInt64, context: VersionVector, body: [UInt8], hasSum: Bool = true
  ) {
    (self.arrival, self.first, self.last, self.context, self.body) = (arrival, first, last, context, body)
    self.hasSum = hasSum
  }
}

/// A run of the log that is not as it was written.
package struct DamagedRun: Hashable, Sendable, CustomStringConvertible {
  package let replica: ReplicaID
  package let first: UInt64
  package let last: UInt64
  package let arrival: Int64

  package init(replica: ReplicaID, first: UInt64, last: UInt64, arrival: Int64) {
    (self.replica, self.first, self.last, self.arrival) = (replica, first, last, arrival)
  }

  init(_ run: LogRun, of replica: ReplicaID) {
    self.init(replica: replica, first: run.first, last: run.last, arrival: run.arrival)
  }

  package var description: String {
    "run \(arrival), with changes \(first) to \(last) of its chain, is not as it was written"
  }
}

/// A run to be put at the end of the log.
package struct AppendedRun: Sendable {
  package let first: UInt64
  package let last: UInt64
  package let context: VersionVector
  package let body: ArraySlice<UInt8>
  /// When it came, by this node's clock, in milliseconds since 1970; 0 where that is not known.
  package let arrived: Int64
  package init(
    first: UInt64, last: UInt64, context: VersionVector, body: ArraySlice<UInt8>, arrived: Int64 = 0
  ) {
    (self.first, self.last, self.context, self.body) = (first, last, context, body)
    self.arrived = arrived
  }
}

/// A document as it lies in the store: the surviving entries, encoded.
package struct LogDocument: Hashable, Sendable {
  /// The store's own name of the row; nil for one that is to be made.
  package let row: Int64?
  package let isAlive: Bool
  package let state: [UInt8]
  /// False: the store knows that it is not as it was written.
  package let isIntact: Bool
  package init(row: Int64? = nil, isAlive: Bool, state: [UInt8], isIntact: Bool = true) {
    (self.row, self.isAlive, self.state, self.isIntact) = (row, isAlive, state, isIntact)
  }
}

/// The documents of one accepted run, to be folded in.
package struct AcceptedRun: Sendable {
  package let partition: PartitionID
  package let replica: ReplicaID
  package let context: VersionVector
  package let sight: Sight
  package let documents: RunDocuments
  /// Its place in the log, where it has come there in this transaction.
  package let arrival: Int64?

  package init(
    partition: PartitionID, replica: ReplicaID, context: VersionVector, sight: Sight = .plain,
    documents: RunDocuments, arrival: Int64? = nil
  ) {
    (self.partition, self.replica, self.context) = (partition, replica, context)
    (self.sight, self.documents, self.arrival) = (sight, documents, arrival)
  }
}

/// How documents of one partition are built anew.
package struct Rebuilding {
  package let partition: PartitionID
  package let fleet: FleetID
  package let hash: HashFunction
  package let formats: KnownFormats
  /// How far each chain counts after the move that makes the rebuild necessary.
  package let accepted: VersionVector
  /// Answers what a change sees, from its header, its chain hash and its run's context; nil where the change has no
  /// effect (rule C22).
  package let context: (ReplicaID, ChangeHeader, Digest, VersionVector) -> WriteContext?

  package init(
    partition: PartitionID, fleet: FleetID, hash: @escaping HashFunction, formats: KnownFormats = .all,
    accepted: VersionVector,
    context: @escaping (ReplicaID, ChangeHeader, Digest, VersionVector) -> WriteContext?
  ) {
    (self.partition, self.fleet, self.hash, self.formats) = (partition, fleet, hash, formats)
    (self.accepted, self.context) = (accepted, context)
  }
}

/// Documents whose state a commit changed, many in little memory: nobody may ask for them.
package struct ChangedDocuments: Sendable {
  package struct Place: Hashable, Sendable {
    package let partition: PartitionID
    package let collection: Text
    package init(partition: PartitionID, collection: Text) {
      (self.partition, self.collection) = (partition, collection)
    }
  }

  private let keys: [UInt8]
  private let places: [Place]
  private let items: [(place: Int, key: Range<Int>)]
  /// Documents that were to change and whose rows do not read: they are as they were.
  package var damaged: [PartitionID: Set<DocumentKey>] = [:]

  /// `items`: indices of places, and ranges of `keys`, where canonical ids lie one after the other.
  package init(keys: [UInt8] = [], places: [Place] = [], items: [(place: Int, key: Range<Int>)] = []) {
    (self.keys, self.places, self.items) = (keys, places, items)
  }

  package init(_ documents: [DocumentKey], in partition: PartitionID) {
    var (keys, places): ([UInt8], [Place]) = ([], [])
    var items: [(place: Int, key: Range<Int>)] = []
    for document in documents {
      if places.last?.collection != document.collection {
        places.append(Place(partition: partition, collection: document.collection))
      }
      items.append((places.count - 1, keys.count..<keys.count + document.id.count))
      keys += document.id
    }
    self.init(keys: keys, places: places, items: items)
  }

  package var count: Int { items.count }
  package var keyByteCount: Int { keys.count }

  package func isAbout(_ place: Place) -> Bool { places.contains(place) }

  /// Canonical ids by place.
  package func forEach(_ body: (Place, ArraySlice<UInt8>) -> Void) {
    for item in items { body(places[item.place], keys[item.key]) }
  }
}
