/// What a row's content comes to, kept beside it: XXH64, of which the lower half is kept. It tells a page that the disk gave
/// back otherwise than it was written; against whoever means harm stand hashes and signatures.
struct RowSum: Equatable {
  private(set) var hash: UInt64

  /// As it is kept: an integer of four bytes.
  var value: Int64 { Int64(Int32(truncatingIfNeeded: hash)) }

  init(seed: UInt64 = 0) { hash = seed }

  /// Each part is the seed of the next, so that none can take bytes of another.
  mutating func add(_ bytes: UnsafeRawBufferPointer) { hash = RowSum.sum(bytes, seed: hash) }

  mutating func add(_ number: Int64) {
    hash = RowSum.finished(RowSum.mixed(hash &+ RowSum.fifth, word: UInt64(bitPattern: number)))
  }

  // The primes of the algorithm.
  private static let first: UInt64 = 0x9e37_79b1_85eb_ca87
  private static let second: UInt64 = 0xc2b2_ae3d_27d4_eb4f
  private static let third: UInt64 = 0x1656_67b1_9e37_79f9
  private static let fourth: UInt64 = 0x85eb_ca77_c2b2_ae63
  private static let fifth: UInt64 = 0x27d4_eb2f_1656_67c5

  private static func sum(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
    var offset = 0
    var hash = seed &+ fifth
    if bytes.count >= 32 { (hash, offset) = stripes(bytes, seed: seed) }
    hash &+= UInt64(bytes.count)
    while offset &+ 8 <= bytes.count {
      hash = mixed(hash, word: word(bytes, offset))
      offset &+= 8
    }
    if offset &+ 4 <= bytes.count {
      let half = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
      hash = rotated(hash ^ (UInt64(half) &* first), 23) &* second &+ third
      offset &+= 4
    }
    while offset < bytes.count {
      hash = rotated(hash ^ (UInt64(bytes[offset]) &* fifth), 11) &* first
      offset &+= 1
    }
    return finished(hash)
  }

  /// Four sums side by side over all whole blocks of 32 bytes, and where these end.
  private static func stripes(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> (hash: UInt64, end: Int) {
    var (a, b, c, d) = (seed &+ first &+ second, seed &+ second, seed, seed &- first)
    var offset = 0
    while offset &+ 32 <= bytes.count {
      a = round(a, word(bytes, offset))
      b = round(b, word(bytes, offset &+ 8))
      c = round(c, word(bytes, offset &+ 16))
      d = round(d, word(bytes, offset &+ 24))
      offset &+= 32
    }
    var hash = rotated(a, 1) &+ rotated(b, 7) &+ rotated(c, 12) &+ rotated(d, 18)
    hash = merged(merged(merged(merged(hash, a), b), c), d)
    return (hash, offset)
  }

  @inline(__always) private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  @inline(__always) private static func rotated(_ value: UInt64, _ bits: UInt64) -> UInt64 {
    value &<< bits | value &>> (64 &- bits)
  }

  @inline(__always) private static func round(_ sum: UInt64, _ word: UInt64) -> UInt64 {
    rotated(sum &+ word &* second, 31) &* first
  }

  private static func merged(_ hash: UInt64, _ sum: UInt64) -> UInt64 {
    (hash ^ round(0, sum)) &* first &+ fourth
  }

  @inline(__always) private static func mixed(_ hash: UInt64, word: UInt64) -> UInt64 {
    rotated(hash ^ round(0, word), 27) &* first &+ fourth
  }

  @inline(__always) private static func finished(_ hash: UInt64) -> UInt64 {
    var hash = (hash ^ hash &>> 33) &* second
    hash = (hash ^ hash &>> 29) &* third
    return hash ^ hash &>> 32
  }
}

extension RowSum {
  /// Of a document: where it belongs, and what it holds.
  init(
    ofDocument key: UnsafeRawBufferPointer, in partition: PartitionNumber, _ collection: CollectionNumber,
    isAlive: Bool,
    state: UnsafeRawBufferPointer
  ) {
    self.init(seed: UInt64(bitPattern: partition.rawValue &* 4 &+ collection.rawValue &* 65_599 &+ (isAlive ? 1 : 0)))
    add(key)
    add(state)
  }

  /// Of a run: all of its row, as far as others rely on it.
  init(
    ofRun arrival: Int64, of chain: Int64, _ first: Int64, _ last: Int64, base: Int64?,
    context: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer
  ) {
    self.init(seed: UInt64(bitPattern: arrival))
    for number in [chain, first, last, base ?? -1] { add(number) }
    add(context)
    add(body)
  }

  init(ofPayload bytes: UnsafeRawBufferPointer) {
    self.init()
    add(bytes)
  }
}
