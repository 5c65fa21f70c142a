import Replication

/// A run as it was received: well formed, its hashes computed; its context and signature not yet looked at.
package struct DecodedRun: Sendable {
  /// What this node makes of one change's payload.
  package enum Content: Sendable {
    case documents(PayloadScan)
    /// A plain payload that is still to come; ``RunCodec/scanApart(_:of:at:partition:hash:)`` judges it.
    case apart
    /// A codec or critical extension of a later version: received and passed on, not accepted (rule C4).
    case held
    /// The change is its header alone; only in ``RunForm/withHeadersOnly``.
    case absent
  }

  package let chain: ChainIdentity
  package let first: UInt64
  package let hashBefore: Digest
  package let contextDigest: Digest
  package let signature: Signature
  /// At least one. Payloads are slices of ``encoded``; that of a change apart, or absent, is empty.
  package let changes: [Change]
  /// The chain hash after each change.
  package let hashes: [Digest]
  /// One per change.
  package let contents: [Content]
  /// The run's bytes as they arrived: stored and passed on as these.
  package let encoded: ArraySlice<UInt8>

  package var last: UInt64 { first + UInt64(changes.count - 1) }
  package var hashAtLast: Digest { hashes.last ?? hashBefore }

  /// The bytes that the author signed.
  package var signatureMessage: [UInt8] {
    RunRecord.signedBytes(
      chain: chain, first: first, last: last, hashBefore: hashBefore, contextDigest: contextDigest,
      hashAtLast: hashAtLast)
  }

  /// - Throws: ``RunError/signature``.
  package func verifySignature(
    of author: PublicKey, _ verify: (Signature, [UInt8], PublicKey) -> Bool
  ) throws(RunError) {
    guard verify(signature, signatureMessage, author) else { throw .signature }
  }

  /// The run with its context, which came beside it and must have the digest that the run names.
  package func run(context: VersionVector, _ hash: HashFunction) throws(RunError) -> Run {
    guard context[chain.replica] == nil, RunRecord.digest(of: context, hash) == contextDigest else {
      throw .contextDigest
    }
    let record = RunRecord(
      chain: chain, first: first, last: last, hashBefore: hashBefore, context: context, contextDigest: contextDigest,
      hashAtLast: hashAtLast, signature: signature)
    return Run(record: record, changes: changes, hashes: hashes)
  }
}
