import Replication
import Wire

/// Reads a model disk's log for sending and for judging forks, as the real node reads its own.
struct LogReader {
  let process: NodeProcess
  private var image: ModelDisk.Image { process.node.disk.image }

  init(_ process: NodeProcess) { self.process = process }

  /// What lies above `have`, over all chains in order of arrival.
  func runs(
    _ partition: PartitionID, lackedBy have: VersionVector, byteLimit: Int
  ) -> (runs: [LoggedRun], hasMore: Bool) {
    guard image.partitions[partition] != nil, let state = process.mesh.partitions[partition] else { return ([], false) }
    var lagging: [(runs: ArraySlice<ModelDisk.StoredRun>, isWhole: Bool)] = []
    for (replica, position) in state.log.clipped.sorted where position.sequence > have.sequence(of: replica) {
      let runs = image.runs(partition, replica, after: have.sequence(of: replica), byteLimit: byteLimit)
      let bytes = runs.reduce(0) { $0 + $1.body.count }
      let isWhole = bytes < byteLimit / 2 || (runs.last?.last ?? 0) >= state.log.received.sequence(of: replica)
      lagging.append((runs[...], isWhole))
    }
    var found: [LoggedRun] = []
    var bytes = 0
    while let next = lagging.indices.min(by: { arrival(lagging[$0].runs) < arrival(lagging[$1].runs) }),
      let run = lagging[next].runs.first
    {
      guard bytes < byteLimit else { return (found, true) }
      lagging[next].runs.removeFirst()
      found.append(logged(run, state))
      bytes += run.body.count
      // What this chain has beyond what was read must not be overtaken by later arrivals of others.
      if lagging[next].runs.isEmpty, !lagging[next].isWhole { return (found, true) }
    }
    return (found, false)
  }

  private func arrival(_ runs: ArraySlice<ModelDisk.StoredRun>) -> Int { runs.first?.arrival ?? .max }

  private func logged(_ run: ModelDisk.StoredRun, _ state: PartitionState) -> LoggedRun {
    LoggedRun(
      replica: run.replica, first: run.first, last: run.last, hashBefore: run.hashBefore,
      hashAtLast: state.log.forkPoints[run.replica] == nil ? nil : run.hashAtLast, context: run.context,
      encoded: run.body)
  }

  /// Stored runs of a chain that reach `first` or above, ascending, of all branches.
  func summaries(_ partition: PartitionID, _ replica: ReplicaID, from first: UInt64) -> [RunSummary] {
    guard let name = process.mesh.partitions[partition]?.name else { return [] }
    return image.runs(partition, replica, after: first - 1).compactMap { run in
      RunSummary(run, partition, name, process.fleet, process.mesh.authority)
    }
  }

  func evidence(_ partition: PartitionID, _ replica: ReplicaID, above: UInt64) -> [LoggedRun] {
    guard let state = process.mesh.partitions[partition] else { return [] }
    return image.runs(partition, replica, after: above).map { logged($0, state) }
  }
}

extension RunSummary {
  /// Nil for what is damaged, or by a replica that no statement declares.
  init?(
    _ run: ModelDisk.StoredRun, _ partition: PartitionID, _ name: PartitionName, _ fleet: FleetID,
    _ authority: Authority
  ) {
    guard
      let decoded = try? RunCodec.decode(run.body, fleet: fleet, partition: partition, hash: FakeCryptography.hash),
      let signer = authority.signer(of: run.replica)
    else { return nil }
    self.init(
      partition: name, replica: run.replica, first: decoded.first, hashBefore: decoded.hashBefore,
      hashes: decoded.hashes, context: run.context, signer: signer, facts: decoded.facts)
  }
}
