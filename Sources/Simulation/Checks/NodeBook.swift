import Replication

/// What an onlooker knows to lie in one store, from its commits. Copied with the store.
struct NodeBook {
  struct Partition {
    let name: PartitionName
    /// In the order in which they came.
    private(set) var runs: [ReplicaID: [KnownRun]] = [:]
    /// Numbers of the runs.
    private(set) var held: Set<Int> = []
    /// The highest change of each replica.
    private(set) var reached: [ReplicaID: UInt64] = [:]

    init(name: PartitionName) { self.name = name }

    /// False where it is there already.
    mutating func add(_ run: KnownRun) -> Bool {
      guard held.insert(run.number).inserted else { return false }
      runs[run.replica, default: []].append(run)
      reached[run.replica] = max(reached[run.replica] ?? 0, run.last)
      return true
    }

    /// Is there a stored run that reaches so far?
    func reaches(_ sequence: UInt64, of replica: ReplicaID) -> Bool {
      reached[replica].map { $0 >= sequence } ?? false
    }

    func holds(_ hash: Digest, at dot: Dot) -> Bool {
      runs[dot.replica]?.contains { $0.hash(at: dot.sequence) == hash } ?? false
    }

    func holds(_ tip: TipHash, at sequence: UInt64, of replica: ReplicaID) -> Bool {
      runs[replica]?.contains { $0.hash(at: sequence)?.tip == tip } ?? false
    }

    var observed: [ObservedRun] { runs.sorted { $0.key < $1.key }.flatMap { $0.value.map(\.observed) } }
  }

  var statements: [Digest: Statement] = [:] { didSet { rights = nil } }
  /// How many commits there were, and with which of them each statement came.
  var commits = 0
  var learntAt: [Digest: Int] = [:]
  var partitions: [PartitionID: Partition] = [:]
  /// Payloads that travel apart from their runs.
  var payloads: Set<Digest> = []
  /// The last word of each device about each partition.
  var holdings: [HoldingsPlace: Holdings] = [:]
  /// What follows from the statements, once somebody asked.
  var rights: JudgedRights?

  func reaches(_ sequence: UInt64, of replica: ReplicaID, in partition: PartitionID) -> Bool {
    partitions[partition]?.reaches(sequence, of: replica) ?? false
  }

  func holds(_ hash: Digest, at dot: Dot, in partition: PartitionID) -> Bool {
    partitions[partition]?.holds(hash, at: dot) ?? false
  }
}
