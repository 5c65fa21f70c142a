import Identity
import Replication
import Storage
import Wire

/// Reads the run log for sending and for judging forks.
struct LogReader {
  let store: Store
  let fleet: FleetID
  let mesh: Mesh

  /// What lies above `have`, over all chains in order of arrival: one seek per lagging chain, then a merge by arrival.
  func runs(
    _ partition: PartitionID, lackedBy have: VersionVector, byteLimit: Int
  ) throws -> ([LoggedRun], hasMore: Bool) {
    guard let number = try store.partitionNumber(partition), let state = mesh.partitions[partition] else {
      return ([], false)
    }
    let behind = state.log.clipped.sorted.filter { $0.position.sequence > have.sequence(of: $0.replica) }
    let step = max(LogReader.leastStepByteCount, byteLimit / max(behind.count, 1))
    var lagging: [LaggingChain] = []
    for (replica, _) in behind {
      guard let chain = try store.chainNumber(number, replica) else { continue }
      let end = state.log.received.sequence(of: replica)
      lagging.append(
        LaggingChain(
          replica: replica, number: chain, end: end,
          runs: try store.runs(of: chain, after: have.sequence(of: replica), byteLimit: step)[...]))
    }
    var found: [LoggedRun] = []
    var bytes = 0
    while let next = lagging.indices.min(by: { arrival(lagging[$0].runs) < arrival(lagging[$1].runs) }),
      let run = lagging[next].runs.first
    {
      guard bytes < byteLimit else { return (found, true) }
      lagging[next].runs.removeFirst()
      found.append(try logged(run, lagging[next].replica, partition, state))
      bytes += found[found.count - 1].byteCount
      // What this chain has beyond what was read must not be overtaken by later arrivals of others.
      if lagging[next].runs.isEmpty, run.last < lagging[next].end {
        lagging[next].runs = try store.runs(of: lagging[next].number, after: run.last, byteLimit: step)[...]
      }
    }
    return (found, false)
  }

  /// Two full runs: of a hundred chains that lag no more is read at once than can be sent.
  private static let leastStepByteCount = 64 * 1024

  private struct LaggingChain {
    let replica: ReplicaID
    let number: ChainNumber
    let end: UInt64
    /// Read and not yet taken.
    var runs: ArraySlice<Storage.StoredRun>
  }

  private func arrival(_ runs: ArraySlice<Storage.StoredRun>) -> Int64 { runs.first?.arrival ?? .max }

  private func logged(
    _ run: Storage.StoredRun, _ replica: ReplicaID, _ partition: PartitionID, _ state: PartitionState
  ) throws -> LoggedRun {
    // Only forked chains have runs of several branches; decoding tells which.
    let isForked = state.log.forkPoints[replica] != nil
    let hashAtLast = isForked ? try decode(run, partition).hashAtLast : nil
    return LoggedRun(
      replica: replica, first: run.first, last: run.last, hashBefore: try RunCodec.hashBefore(of: run.body[...]),
      hashAtLast: hashAtLast, context: run.context, encoded: run.body[...], apart: try apart(run))
  }

  private func apart(_ run: Storage.StoredRun) throws -> ApartPayload? {
    guard run.first == run.last, let hash = try RunCodec.apartPayload(of: run.body[...]) else { return nil }
    guard let payload = try store.largePayload(hash) else {
      throw StoreError.damaged("a change's payload is not there")
    }
    return ApartPayload(hash: hash, bytes: payload[...])
  }

  private func decode(_ run: Storage.StoredRun, _ partition: PartitionID) throws -> DecodedRun {
    try RunCodec.decode(run.body[...], fleet: fleet, partition: partition, hash: SHA256.hash)
  }

  /// Stored runs of a chain that reach `first` or above, ascending, of all branches.
  func summaries(_ partition: PartitionID, _ replica: ReplicaID, from first: UInt64) throws -> [RunSummary] {
    guard let number = try store.partitionNumber(partition), let chain = try store.chainNumber(number, replica),
      let name = mesh.partitions[partition]?.name
    else { return [] }
    var summaries: [RunSummary] = []
    var last = first - 1
    // In steps: the bodies of a long chain need not be in memory together.
    while case let runs = try store.runs(of: chain, after: last, byteLimit: LogReader.stepByteCount),
      let end = runs.last?.last
    {
      for run in runs { summaries.append(try summary(run, partition, name)) }
      last = end
    }
    return summaries
  }

  private static let stepByteCount = 4 * 1024 * 1024

  func summary(_ run: Storage.StoredRun, _ partition: PartitionID, _ name: PartitionName) throws -> RunSummary {
    let decoded = try decode(run, partition)
    guard let signer = mesh.authority.signer(of: decoded.chain.replica) else {
      throw StoreError.damaged("a stored run by a replica that no statement declares")
    }
    return RunSummary(
      partition: name, replica: decoded.chain.replica, first: decoded.first, hashBefore: decoded.hashBefore,
      hashes: decoded.hashes, context: run.context, signer: signer, facts: decoded.facts(in: name))
  }

  func evidence(_ partition: PartitionID, _ replica: ReplicaID, above: UInt64) throws -> [LoggedRun] {
    guard let number = try store.partitionNumber(partition), let chain = try store.chainNumber(number, replica),
      let state = mesh.partitions[partition]
    else { return [] }
    return try store.runs(of: chain, after: above, byteLimit: .max).map { try logged($0, replica, partition, state) }
  }
}
