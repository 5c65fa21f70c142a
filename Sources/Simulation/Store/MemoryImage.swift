import Engine
import Replication
import Storage

/// Whose word it is, about what.
struct MemoryHoldingsPlace: Hashable, Comparable {
  let partition: PartitionID
  let subject: Holdings.Subject

  static func < (a: MemoryHoldingsPlace, b: MemoryHoldingsPlace) -> Bool {
    (a.partition, a.subject) < (b.partition, b.subject)
  }
}

/// All that a ``MemoryStore`` keeps, as one value: a backup, a machine's clone or the state before a transaction is a copy.
///
/// A copy costs nothing until one of the two is written to; then the tables that are touched part.
package struct MemoryImage {
  /// A copy of the store has the same one.
  package let storeID: UUIDValue
  /// Settable, since a copy that is put back is marked from outside (``OwnFacts/isRestored``).
  package var own = OwnFacts()
  /// Over all partitions.
  private(set) var totals = MemoryTotals()
  /// Of the run that came last; 0: none has come.
  var lastArrival: Int64 = 0
  var lastRow: Int64 = 0

  /// In order of arrival.
  var statements: [[UInt8]] = []
  var statementIDs: Set<Digest> = []
  var subscriptions: Set<Text> = []
  var invitations: [UInt64: Invitation] = [:]
  var holdings: [MemoryHoldingsPlace: KeptHoldings] = [:]
  package internal(set) var contacts: [DeviceID: MemoryContact] = [:]

  /// In the order in which they were met; nil: taken away. A place is never given to another partition.
  var partitions: [MemoryPartition?] = []
  var partitionNumbers: [PartitionID: Int] = [:]
  /// Of all partitions, in the order in which they were met.
  var chains: [MemoryChain] = []

  /// What has come of payloads that travel apart from their runs.
  var staged: [StagedKey: (share: StagedShare, bytes: [UInt8])] = [:]
  var largePayloads: [Digest: [UInt8]] = [:]

  package init(storeID: UUIDValue) { self.storeID = storeID }

  /// In the partition and in all together.
  mutating func count(_ change: MemoryTotals, in partition: Int) {
    totals += change
    partitions[partition]?.totals += change
  }

  /// What does not grow with the image: put back as a whole where a transaction fails.
  struct Scalars {
    let own: OwnFacts
    let totals: MemoryTotals
    let lastArrival: Int64
    let lastRow: Int64
  }

  var scalars: Scalars {
    get {
      Scalars(own: own, totals: totals, lastArrival: lastArrival, lastRow: lastRow)
    }
    set {
      (own, totals, lastArrival) = (newValue.own, newValue.totals, newValue.lastArrival)
      lastRow = newValue.lastRow
    }
  }

  func chain(_ chain: ChainIdentity) -> Int? {
    partitionNumbers[chain.partition].flatMap { partitions[$0]?.chains[chain.replica] }
  }

  /// All documents of a partition, alive and deleted, for whoever checks a node from outside.
  package func documents(of partition: PartitionID) -> [DocumentKey: LogDocument] {
    guard let number = partitionNumbers[partition], let found = partitions[number] else { return [:] }
    return found.documents.mapValues(\.record)
  }
}

struct MemoryTotals {
  var documents: Int64 = 0
  var changes: Int64 = 0
  var logBytes: Int64 = 0

  static func += (a: inout MemoryTotals, b: MemoryTotals) {
    a.documents += b.documents
    a.changes += b.changes
    a.logBytes += b.logBytes
  }

  var record: LogTotals { LogTotals(documents: documents, changes: changes, logBytes: logBytes) }
}

struct MemoryPartition {
  let id: PartitionID
  /// Nil until the name has been learnt.
  var name: PartitionName?
  var totals = MemoryTotals()
  /// Index into ``MemoryImage/chains``.
  var chains: [ReplicaID: Int] = [:]
  var documents: [DocumentKey: MemoryDocument] = [:]
  /// By the chain hash of the change that issues again.
  var reissues: [Digest: Reissue] = [:]

  var isEmpty: Bool { chains.isEmpty && documents.isEmpty && reissues.isEmpty }
}

struct MemoryChain {
  let partition: PartitionID
  let replica: ReplicaID
  var marks: ChainMarks
  /// Of all branches, ascending by their last change, then by arrival.
  var runs: [MemoryRun] = []

  /// Index of the first run that holds changes above `sequence`.
  func firstRun(above sequence: UInt64) -> Int {
    var (low, high) = (0, runs.count)
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].record.last > sequence { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

/// When a device was met last, and over which addresses.
package struct MemoryContact: Hashable, Sendable {
  package var lastContact: Int64
  /// Time of last use by address; at most ``StoredPeer/addressLimit``.
  package var addresses: [Text: Int64] = [:]
}
