import Replication
import Wire

/// Decodes runs as they lie in the log.
struct RunReader {
  let fleet: FleetID
  let hash: HashFunction

  init(_ identity: EngineIdentity) { (fleet, hash) = (identity.fleet, identity.cryptography.hash) }

  func decode(_ run: LogRun, in partition: PartitionID) throws(RunError) -> DecodedRun {
    try RunCodec.decode(run.body[...], fleet: fleet, partition: partition, hash: hash)
  }

  /// What the run writes; a payload that travelled apart is read from the log and joined to it.
  func content(_ run: LogRun, in partition: PartitionID, _ log: any LogReading) throws -> RunContent {
    var content = RunContent(try decode(run, in: partition), hash: hash)
    guard let awaited = content.awaitedPayload?.hash else { return content }
    guard let payload = try log.largePayload(awaited) else { throw DamagedLog("a change's payload is not there") }
    try content.attach(payload)
    return content
  }

  func summary(
    _ run: LogRun, _ partition: PartitionID, _ name: PartitionName, _ authority: Authority
  ) throws -> RunSummary {
    let decoded = try decode(run, in: partition)
    guard let signer = authority.signer(of: decoded.chain.replica) else {
      throw DamagedLog("a stored run by a replica that no statement declares")
    }
    return RunSummary(
      partition: name, replica: decoded.chain.replica, first: decoded.first, hashBefore: decoded.hashBefore,
      hashes: decoded.hashes, context: run.context, signer: signer, facts: decoded.facts(in: name))
  }
}
