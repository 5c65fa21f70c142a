import Replication
import Wire

/// Decodes runs as they lie in the log.
package struct RunReader {
  let fleet: FleetID
  let hash: HashFunction
  let formats: KnownFormats

  package init(fleet: FleetID, hash: @escaping HashFunction) {
    (self.fleet, self.hash, formats) = (fleet, hash, .all)
  }

  init(_ identity: EngineIdentity) {
    (fleet, hash, formats) = (identity.fleet, identity.cryptography.hash, identity.cryptography.formats)
  }

  func decode(_ run: LogRun, in partition: PartitionID) throws(RunError) -> DecodedRun {
    try decode(run.body, in: partition)
  }

  func decode(_ body: [UInt8], in partition: PartitionID) throws(RunError) -> DecodedRun {
    try RunCodec.decode(body[...], fleet: fleet, partition: partition, formats: formats, hash: hash)
  }

  /// Which documents a run writes, one as often as it does. `apart` answers a payload that travelled apart.
  package func documents(
    writtenBy body: [UInt8], in partition: PartitionID, apart: (Digest) throws -> [UInt8]?
  ) throws -> [DocumentKey] {
    try documents(writtenBy: try content(try decode(body, in: partition), apart))
  }

  private func documents(writtenBy content: RunContent) throws -> [DocumentKey] {
    try content.contents.flatMap { change in try change.documents.map { try $0.key(in: change.payload) } }
  }

  /// Which documents a stored run writes, one as often as it does.
  func documents(
    writtenBy run: LogRun, of partition: PartitionID, _ log: any LogReading
  ) throws -> [DocumentKey] {
    try documents(writtenBy: try content(run, in: partition, log))
  }

  /// Which documents a run writes with operations at or below list elements that one of `dots` inserted.
  func documents(
    naming dots: Set<Dot>, in run: LogRun, of partition: PartitionID, _ log: any LogReading
  ) throws -> [DocumentKey] {
    let content = try content(run, in: partition, log)
    let (replica, named) = (content.run.chain.replica, content.elementDots)
    // What a scan noted tells nearly every run apart from those that are to be decoded; of its own chain it notes nothing.
    guard dots.contains(where: { $0.replica == replica || $0.sequence <= named[$0.replica] ?? 0 }) else { return [] }
    return try content.contents.flatMap { change in
      try PayloadDecoder.decodeWrites(change.payload, dot: Dot(replica: replica, sequence: change.header.sequence))
        .filter { $0.names(dots) }.map { DocumentKey(collection: $0.collection, id: $0.id) }
    }
  }

  /// What the run writes; a payload that travelled apart is read from the log and joined to it.
  func content(_ run: LogRun, in partition: PartitionID, _ log: any LogReading) throws -> RunContent {
    let decoded = try decode(run, in: partition)
    return try content(decoded) { hash in
      guard let payload = try log.intactPayload(hash) else {
        throw DamagedPayload(run: DamagedRun(run, of: decoded.chain.replica))
      }
      return payload
    }
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
    // A narrowing may have voided the declaration since: the run counts for nothing then, and nobody asks who signed it.
    let replica = decoded.chain.replica
    let signer = authority.signer(of: replica) ?? authority.author(of: replica) ?? PublicKey(.zero)
    return RunSummary(
      partition: name, replica: replica, first: decoded.first, hashBefore: decoded.hashBefore,
      hashes: decoded.hashes, context: run.context, signer: signer, facts: decoded.facts(in: name, formats))
  }
}

extension DocumentWrite {
  fileprivate func names(_ dots: Set<Dot>) -> Bool {
    operations.lazy.flatMap(\.path).contains { segment in
      if case .element(let element) = segment { dots.contains(element.dot) } else { false }
    }
  }
}
