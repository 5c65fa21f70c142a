/// One change with its payload as it arrived: hashed, stored and sent on as these bytes, never encoded again.
package struct Change: Hashable, Sendable {
  package let header: ChangeHeader
  /// Empty while a payload above ``Run/inlinePayloadByteLimit`` is still under way in pieces.
  package let payload: ArraySlice<UInt8>

  package init(header: ChangeHeader, payload: ArraySlice<UInt8>) { (self.header, self.payload) = (header, payload) }
}

/// The changes of one chain that one group commit closed (rule C1): the unit of context, signature, storage and sending.
/// Closed and signed in the transaction that commits it, before any byte leaves the node, and never cut anew.
package struct Run: Sendable {
  package let record: RunRecord
  /// Sequences `record.first … record.last`, at least one, at most ``changeLimit``.
  package let changes: [Change]
  /// The chain hash after each change; the last is `record.hashAtLast`.
  package let hashes: [Digest]

  package static let changeLimit = 64
  /// Payload bytes of one run; one larger change may stand alone.
  package static let payloadByteLimit = 32 * 1024
  /// Larger payloads travel apart, by hash, in pieces that survive a cut.
  package static let inlinePayloadByteLimit = 16 * 1024
  /// Largest payload of one change: 4 MiB less 64 KiB.
  package static let changePayloadByteLimit = 4 * 1024 * 1024 - 64 * 1024
  /// Operations of one change.
  package static let operationLimit = 10_000
  /// Documents of one change.
  package static let documentLimit = 1_000

  package init(record: RunRecord, changes: [Change], hashes: [Digest]) {
    (self.record, self.changes, self.hashes) = (record, changes, hashes)
  }
}

/// What the author signs of a run. Whatever acceptance or merge reads is in a chain hash as well.
package struct RunRecord: Hashable, Sendable {
  package let chain: ChainIdentity
  package let first: UInt64
  package let last: UInt64
  package let hashBefore: Digest
  /// The author's accepted vector with tip hashes when the run was closed, its own chain left out (rule C3).
  package let context: VersionVector
  package let contextDigest: Digest
  package let hashAtLast: Digest
  package let signature: Signature

  package static let version: UInt8 = 1

  package init(
    chain: ChainIdentity, first: UInt64, last: UInt64, hashBefore: Digest, context: VersionVector,
    contextDigest: Digest, hashAtLast: Digest, signature: Signature
  ) {
    (self.chain, self.first, self.last, self.hashBefore) = (chain, first, last, hashBefore)
    (self.context, self.contextDigest) = (context, contextDigest)
    (self.hashAtLast, self.signature) = (hashAtLast, signature)
  }

  package static func digest(of context: VersionVector, _ hash: HashFunction) -> Digest {
    context.digest(.context, hash)
  }

  /// The bytes that are signed: a fixed layout of 209 bytes. A run has no options: nothing but the changes' hashes could
  /// hold two nodes to the same ones.
  package var signedBytes: [UInt8] {
    RunRecord.signedBytes(
      chain: chain, first: first, last: last, hashBefore: hashBefore, contextDigest: contextDigest,
      hashAtLast: hashAtLast)
  }

  package static func signedBytes(
    chain: ChainIdentity, first: UInt64, last: UInt64, hashBefore: Digest, contextDigest: Digest,
    hashAtLast: Digest
  ) -> [UInt8] {
    var out = DomainTag.run.bytes
    out.reserveCapacity(256)
    out.append(version)
    chain.append(to: &out)
    appendBigEndian(first, to: &out)
    appendBigEndian(last, to: &out)
    hashBefore.append(to: &out)
    contextDigest.append(to: &out)
    hashAtLast.append(to: &out)
    return out
  }
}
