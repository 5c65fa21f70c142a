import Replication

extension CBORWriter {
  /// A byte string of 32 bytes.
  package mutating func digest(_ digest: Digest) {
    head(.bytes, UInt64(Digest.byteCount))
    rawDigest(digest)
  }

  package mutating func publicKey(_ key: PublicKey) { digest(key.raw) }

  package mutating func signature(_ signature: Signature) {
    head(.bytes, UInt64(Signature.byteCount))
    rawDigest(signature.first)
    rawDigest(signature.second)
  }

  package mutating func replica(_ id: ReplicaID) { sixteenBytes(id.high, id.low) }
  package mutating func tip(_ tip: TipHash) { sixteenBytes(tip.high, tip.low) }
  /// The bare 16 bytes; as a document's value a UUID is tagged.
  package mutating func uuid(_ id: UUIDValue) { sixteenBytes(id.high, id.low) }

  private mutating func sixteenBytes(_ high: UInt64, _ low: UInt64) {
    head(.bytes, 16)
    bigEndian(high, byteCount: 8)
    bigEndian(low, byteCount: 8)
  }

  private mutating func rawDigest(_ digest: Digest) {
    bigEndian(digest.words.0, byteCount: 8)
    bigEndian(digest.words.1, byteCount: 8)
    bigEndian(digest.words.2, byteCount: 8)
    bigEndian(digest.words.3, byteCount: 8)
  }
}
