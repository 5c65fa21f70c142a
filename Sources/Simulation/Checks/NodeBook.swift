import Engine
import Replication
import Wire

/// What an onlooker knows to lie in one store, from its commits. Copied with the store.
struct NodeBook {
  struct Partition {
    let name: PartitionName
    var runs: [ReplicaID: [StoredRun]] = [:]
  }

  struct StoredRun {
    let first: UInt64
    let last: UInt64
    let hashBefore: Digest
    let hashAtLast: Digest
    let context: VersionVector
    let body: [UInt8]
    let observed: ObservedRun
  }

  var statements: [Digest: Statement] = [:]
  var partitions: [PartitionID: Partition] = [:]
  /// Payloads that travel apart from their runs.
  var payloads: Set<Digest> = []

  /// Is there a stored run that reaches so far?
  func reaches(_ sequence: UInt64, of replica: ReplicaID, in partition: PartitionID) -> Bool {
    partitions[partition]?.runs[replica]?.contains { $0.last >= sequence } ?? false
  }

  func holds(_ hash: Digest, at dot: Dot, in partition: PartitionID) -> Bool {
    partitions[partition]?.runs[dot.replica]?.contains { run in
      run.first <= dot.sequence && dot.sequence <= run.last
        && run.observed.changes[Int(dot.sequence - run.first)].hash == hash
    } ?? false
  }

  func observedRuns(in partition: PartitionID) -> [ObservedRun] {
    (partitions[partition]?.runs ?? [:]).sorted { $0.key < $1.key }.flatMap { $0.value.map(\.observed) }
  }
}
