import Replication
import Wire

/// A run that was kept with its context and payload beside it, judged as one that a peer sends.
package struct InspectedRun: Sendable {
  package let run: DecodedRun
  /// Without a signer where the declaration of its replica does not count any more.
  package let delivered: DeliveredRun
  /// As acceptance sees it.
  package let summary: RunSummary
}

/// Why a kept run does not hold, beyond what ``RunError`` knows.
package enum InspectionError: Error, Hashable, Sendable, CustomStringConvertible {
  case undeclared
  case unseenElements
  /// A payload that stands outside of its run is not there.
  case payloadMissing

  package var description: String {
    switch self {
    case .undeclared: "a run by a replica that nobody declared"
    case .unseenElements: "a change that names list elements it had not seen"
    case .payloadMissing: "a change whose payload is not there"
    }
  }
}

extension FrameDecoder {
  /// All that can be told of a run without the runs before it: its one form, its hashes, the signature of the device that
  /// declared its replica, its context, its payload.
  ///
  /// - Parameter apart: answers a payload that stands outside of its run.
  package func inspect(
    _ encoded: [UInt8], context: VersionVector, in name: PartitionName, under authority: Authority,
    apart: (Digest) throws -> [UInt8]
  ) throws -> InspectedRun {
    let partition = name.id(fleet: fleet, hash: hash)
    let run = try RunCodec.decode(encoded[...], fleet: fleet, partition: partition, formats: formats, hash: hash)
    guard RunRecord.digest(of: context, hash) == run.contextDigest else { throw RunError.contextDigest }
    let arrived = try arrived(run, context: .full(context), in: name, under: authority)
    // A narrowing may have voided the declaration since.
    guard let author = arrived.incoming.signer ?? authority.author(of: run.chain.replica) else {
      throw InspectionError.undeclared
    }
    if arrived.incoming.signer == nil { try run.verifySignature(of: author, verify) }
    var incoming = arrived.incoming
    if var content = arrived.open, let awaited = content.awaitedPayload {
      try content.attach(try apart(awaited.hash))
      incoming = incoming.with(content)
    }
    guard incoming.elementDots.allSatisfy({ $0.value <= context.sequence(of: $0.key) }) else {
      throw InspectionError.unseenElements
    }
    let summary = RunSummary(
      partition: name, replica: run.chain.replica, first: run.first, hashBefore: run.hashBefore, hashes: run.hashes,
      context: context, signer: author, facts: incoming.facts)
    return InspectedRun(
      run: run, delivered: DeliveredRun(incoming: incoming, context: context), summary: summary)
  }
}
