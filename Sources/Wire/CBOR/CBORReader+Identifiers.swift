import Replication

extension CBORReader {
  /// A byte string of exactly 32 bytes.
  package mutating func readDigest() throws(CBORError) -> Digest { digest(at: try readByteRange(count: 32)) }

  package mutating func readPublicKey() throws(CBORError) -> PublicKey { PublicKey(try readDigest()) }

  package mutating func readSignature() throws(CBORError) -> Signature {
    let range = try readByteRange(count: Signature.byteCount)
    return Signature(
      first: digest(at: range.prefix(Digest.byteCount)), second: digest(at: range.suffix(Digest.byteCount)))
  }

  package mutating func readReplica() throws(CBORError) -> ReplicaID {
    let start = try readByteRange(count: 16).lowerBound
    return ReplicaID(high: wordContent(at: start), low: wordContent(at: start + 8))
  }

  package mutating func readTip() throws(CBORError) -> TipHash {
    let start = try readByteRange(count: 16).lowerBound
    return TipHash(high: wordContent(at: start), low: wordContent(at: start + 8))
  }

  /// The bare 16 bytes; as a document's value a UUID is tagged.
  package mutating func readUUID() throws(CBORError) -> UUIDValue {
    let start = try readByteRange(count: 16).lowerBound
    return UUIDValue(high: wordContent(at: start), low: wordContent(at: start + 8))
  }

  /// A number of a change or statement, or a generation: 1 ≤ n < 2^53, which every language's numbers hold.
  package mutating func readOrdinal() throws(CBORError) -> UInt64 {
    let start = offset
    let value = try readUnsigned()
    guard value > 0, value < CBOR.ordinalLimit else { throw CBORError(.outOfRange, at: start) }
    return value
  }

  mutating func readByteRange(count: Int) throws(CBORError) -> Range<Int> {
    let start = offset
    let range = try readByteRange()
    guard range.count == count else { throw CBORError(.wrongLength, at: start) }
    return range
  }

  func digest(at range: Range<Int>) -> Digest {
    let start = range.lowerBound
    return Digest(
      words: (
        wordContent(at: start), wordContent(at: start + 8), wordContent(at: start + 16), wordContent(at: start + 24)
      ))
  }

  /// Eight bytes of content, big-endian.
  func wordContent(at start: Int) -> UInt64 {
    withContent(start..<start + 8) { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
  }
}

extension CBOR {
  /// Sequences and generations lie below this.
  package static let ordinalLimit: UInt64 = 1 << 53
}
