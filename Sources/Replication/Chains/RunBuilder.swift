/// Collects the changes that one group commit closes, and closes them: hashes chained, record signed (rule C1).
package struct RunBuilder: Sendable {
  package let chain: ChainIdentity
  package let first: UInt64
  package let hashBefore: Digest
  package let context: VersionVector
  package let contextDigest: Digest
  private let hash: HashFunction
  private var changes: [Change] = []
  private var hashes: [Digest] = []
  private var payloadByteCount = 0

  /// `context` is the author's accepted vector joined with its previous context, its own chain left out (rule C3).
  package init(
    chain: ChainIdentity, after sequence: UInt64, hashBefore: Digest, context: VersionVector,
    hash: @escaping HashFunction
  ) {
    (self.chain, self.first, self.hashBefore) = (chain, sequence + 1, hashBefore)
    (self.context, self.hash) = (context, hash)
    contextDigest = RunRecord.digest(of: context, hash)
  }

  package var isEmpty: Bool { changes.isEmpty }
  package var nextDot: Dot { Dot(replica: chain.replica, sequence: first + UInt64(changes.count)) }
  package var lastHash: Digest { hashes.last ?? hashBefore }

  /// A run holds 64 changes and 32 KiB; a payload that travels apart stands alone.
  package func hasRoom(for byteCount: Int) -> Bool {
    guard !changes.isEmpty else { return true }
    let standsAlone = changes.count == 1 && payloadByteCount > Run.inlinePayloadByteLimit
    return !standsAlone && changes.count < Run.changeLimit && byteCount <= Run.inlinePayloadByteLimit
      && payloadByteCount + byteCount <= Run.payloadByteLimit
  }

  package mutating func append(
    payload: [UInt8], keyHashes: [KeyHash], timestamp: HybridTimestamp, wall: WallTime,
    codec: PayloadCodec = .plain, extensions: [ChangeExtension] = []
  ) {
    let header = ChangeHeader(
      sequence: nextDot.sequence, timestamp: timestamp, wall: wall, codec: codec,
      payloadByteCount: UInt32(payload.count),
      payloadHash: Digest.of(payload, hash), keyHashes: keyHashes, extensions: extensions)
    hashes.append(
      header.chainHash(chain: chain, previous: lastHash, contextDigest: contextDigest, hash))
    changes.append(Change(header: header, payload: payload[...]))
    payloadByteCount += payload.count
  }

  /// Signs what was collected; there must be at least one change.
  package func close(sign: ([UInt8]) -> Signature) -> Run {
    precondition(!changes.isEmpty, "a run has at least one change")
    let last = first + UInt64(changes.count) - 1
    let message = RunRecord.signedBytes(
      chain: chain, first: first, last: last, hashBefore: hashBefore, contextDigest: contextDigest,
      hashAtLast: lastHash)
    let record = RunRecord(
      chain: chain, first: first, last: last, hashBefore: hashBefore, context: context, contextDigest: contextDigest,
      hashAtLast: lastHash, signature: sign(message))
    return Run(record: record, changes: changes, hashes: hashes)
  }
}
