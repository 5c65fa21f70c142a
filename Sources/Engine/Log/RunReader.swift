import Replication
import Wire

/// Decodes runs as they lie in the log.
package struct RunReader {
  let fleet: FleetID
  let hash: HashFunction

  package init(fleet: FleetID, hash: @escaping HashFunction) { (self.fleet, self.hash) = (fleet, hash) }

  init(_ identity: EngineIdentity) { (fleet, hash) = (identity.fleet, identity.cryptography.hash) }

  func decode(_ run: LogRun, in partition: PartitionID) throws(RunError) -> DecodedRun {
    try RunCodec.decode(run.body[...], fleet: fleet, partition: partition, hash: hash)
  }

  /// Which documents a run writes, one as often as it does. `apart` answers a payload that travelled apart.
  package func documents(
    writtenBy body: [UInt8], in partition: PartitionID, apart: (Digest) throws -> [UInt8]?
  ) throws -> [DocumentKey] {
    let run = try RunCodec.decode(body[...], fleet: fleet, partition: partition, hash: hash)
    return try content(run, apart).contents.flatMap { change in
      try change.documents.map { try $0.key(in: change.payload) }
    }
  }

  /// What the run writes; a payload that travelled apart is read from the log and joined to it.
  func content(_ run: LogRun, in partition: PartitionID, _ log: any LogReading) throws -> RunContent {
    try content(try decode(run, in: partition), log.largePayload)
  }

  private func content(_ run: DecodedRun, _ apart: (Digest) throws -> [UInt8]?) throws -> RunContent {
    var content = RunContent(run, hash: hash)
    guard let awaited = content.awaitedPayload?.hash else { return content }
    guard let payload = try apart(awaited) else { throw DamagedLog("a change's payload is not there") }
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
