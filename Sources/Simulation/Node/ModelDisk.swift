import Replication

/// What stands in for a node's data directory: a database with transactions, of which a crash keeps what was synced, and
/// the small file beside it that notes how far the replica has come.
struct ModelDisk {
  struct StoredRun: Equatable {
    let arrival: Int
    let replica: ReplicaID
    let first: UInt64
    let last: UInt64
    let hashBefore: Digest
    let hashAtLast: Digest
    let context: VersionVector
    let body: ArraySlice<UInt8>
  }

  struct Mark: Equatable {
    var sequence: UInt64
    var hash: Digest
  }

  struct StoredChain: Equatable {
    var received: Mark
    var accepted: Mark
    /// The lost branch must be learned again at start, however short the chosen one is.
    var isForked = false
    /// In order of arrival, of all branches.
    var runs: [StoredRun] = []
  }

  struct StoredPartition: Equatable {
    let name: PartitionName
    var chains: [ReplicaID: StoredChain] = [:]
    var documents: [DocumentKey: DocumentState] = [:]
    var reissues: Set<Reissue> = []
  }

  /// The database.
  struct Image: Equatable {
    var statements: [[UInt8]] = []
    var partitions: [PartitionID: StoredPartition] = [:]
    var subscriptions: Set<Text> = []
    var replica: Incarnation?
    var ownCommits: UInt64 = 0
    var timestamp = HybridTimestamp.zero
    var isRestored = false
    var nextArrival = 1
  }

  struct Incarnation: Equatable {
    let id: ReplicaID
    let nonce: UUIDValue
  }

  /// As the running node sees it.
  var image = Image()
  /// As a crash would leave it.
  private(set) var synced = Image()
  /// Own changes that were committed when the sidecar was written last; nil: it is not there, and vouches for nothing.
  var reached: UInt64?

  mutating func sync() { synced = image }
  mutating func crash() { image = synced }

  /// The copy of another directory.
  mutating func replace(by other: Image) { (image, synced) = (other, other) }
}

extension ModelDisk.Image {
  /// Runs of one chain that hold changes above `sequence`, ascending: at least one where there is one, then while their
  /// bodies stay within `byteLimit`.
  func runs(
    _ partition: PartitionID, _ replica: ReplicaID, after sequence: UInt64, byteLimit: Int = .max
  ) -> [ModelDisk.StoredRun] {
    let above = (partitions[partition]?.chains[replica]?.runs ?? []).filter { $0.last > sequence }
      .sorted { ($0.last, $0.arrival) < ($1.last, $1.arrival) }
    guard byteLimit < .max else { return above }
    var bytes = 0
    var found: [ModelDisk.StoredRun] = []
    for run in above {
      if !found.isEmpty && bytes + run.body.count > byteLimit { break }
      bytes += run.body.count
      found.append(run)
    }
    return found
  }

  mutating func ensurePartition(_ id: PartitionID, _ name: PartitionName) {
    if partitions[id] == nil { partitions[id] = ModelDisk.StoredPartition(name: name) }
  }

  mutating func append(
    _ run: LoggedRun, hashAtLast: Digest, to partition: PartitionID, genesis: Digest
  ) {
    let stored = ModelDisk.StoredRun(
      arrival: nextArrival, replica: run.replica, first: run.first, last: run.last, hashBefore: run.hashBefore,
      hashAtLast: hashAtLast, context: run.context, body: run.encoded)
    nextArrival += 1
    let start = ModelDisk.Mark(sequence: 0, hash: genesis)
    partitions[partition]?.chains[run.replica, default: ModelDisk.StoredChain(received: start, accepted: start)].runs
      .append(stored)
  }
}
