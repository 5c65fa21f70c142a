/// The 32 bytes of a SHA-256 value, kept as four big-endian words: compared, hashed and copied without allocation.
package struct Digest: Hashable, Comparable, Sendable {
  package let words: (UInt64, UInt64, UInt64, UInt64)

  package static let byteCount = 32
  package static let zero = Digest(words: (0, 0, 0, 0))

  package init(words: (UInt64, UInt64, UInt64, UInt64)) { self.words = words }

  /// Nil unless there are exactly 32 bytes.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == Digest.byteCount else { return nil }
    var iterator = bytes.makeIterator()
    self.words = (
      bigEndianWord(&iterator), bigEndianWord(&iterator), bigEndianWord(&iterator), bigEndianWord(&iterator)
    )
  }

  /// The same where the bytes lie in memory: without a call for each of them.
  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Digest.byteCount else { return nil }
    words = (
      bigEndianWord(bytes, at: 0), bigEndianWord(bytes, at: 8), bigEndianWord(bytes, at: 16),
      bigEndianWord(bytes, at: 24)
    )
  }

  package var bytes: [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(Digest.byteCount)
    append(to: &out)
    return out
  }

  package func append(to out: inout [UInt8]) {
    let words = (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian)
    withUnsafeBytes(of: words) { out.append(contentsOf: $0) }
  }

  /// The first 16 bytes: what a version vector carries of a chain hash.
  package var tip: TipHash { TipHash(high: words.0, low: words.1) }

  package static func == (a: Digest, b: Digest) -> Bool { a.words == b.words }
  package static func < (a: Digest, b: Digest) -> Bool { a.words < b.words }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
  }
}

/// 16 bytes as two big-endian words; the common body of the short ids, which stay distinct types.
package protocol SixteenBytes: Hashable, Comparable, Sendable {
  var high: UInt64 { get }
  var low: UInt64 { get }
  init(high: UInt64, low: UInt64)
}

extension SixteenBytes {
  package static var byteCount: Int { 16 }
  package static var zero: Self { Self(high: 0, low: 0) }

  /// Nil unless there are exactly 16 bytes.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    var iterator = bytes.makeIterator()
    self.init(high: bigEndianWord(&iterator), low: bigEndianWord(&iterator))
  }

  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 16 else { return nil }
    self.init(high: bigEndianWord(bytes, at: 0), low: bigEndianWord(bytes, at: 8))
  }

  package var bytes: [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(16)
    append(to: &out)
    return out
  }

  package func append(to out: inout [UInt8]) {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { out.append(contentsOf: $0) }
  }

  package static func < (a: Self, b: Self) -> Bool { (a.high, a.low) < (b.high, b.low) }
}

/// First 16 bytes of a chain hash: the form in which version vectors name a tip.
package struct TipHash: SixteenBytes {
  package let high: UInt64
  package let low: UInt64
  package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// One incarnation of one device's store: H(domain, device id, nonce), first 16 bytes (rule C2).
package struct ReplicaID: SixteenBytes {
  package let high: UInt64
  package let low: UInt64
  package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// First 16 bytes of H(domain, partition id, collection, canonical document id): stands for a document in change headers.
package struct KeyHash: SixteenBytes {
  package let high: UInt64
  package let low: UInt64
  package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

func bigEndianWord(_ iterator: inout some IteratorProtocol<UInt8>) -> UInt64 {
  var word: UInt64 = 0
  for _ in 0..<8 { word = word << 8 | UInt64(iterator.next() ?? 0) }
  return word
}

package func appendBigEndian(_ value: some FixedWidthInteger & UnsignedInteger, to out: inout [UInt8]) {
  withUnsafeBytes(of: value.bigEndian) { out.append(contentsOf: $0) }
}

private func bigEndianWord(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
  UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
}
