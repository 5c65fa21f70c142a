import Replication

/// Rules M2 and M3, written a second time: the bytes by which the oracle compares values, ids and paths.
enum OracleBytes {
  /// M2: equal values, and only they, have equal bytes.
  static func of(_ value: Value) -> [UInt8] {
    switch value {
    case .null: [0x01]
    case .bool(let flag): [flag ? 0x03 : 0x02]
    case .int(let number): [0x04] + signed(number)
    case .double(let number): [0x05] + ordered(number)
    case .string(let text): [0x06] + closed(Array(text.string.utf8))
    case .bytes(let bytes): [0x07] + closed(bytes)
    case .date(let milliseconds): [0x08] + signed(milliseconds)
    case .objectID(let id): [0x09] + bigEndian(id.high) + bigEndian(UInt64(id.low)).suffix(4)
    case .uuid(let id): [0x0a] + bigEndian(id.high) + bigEndian(id.low)
    case .array(let items): [0x0b] + items.flatMap(of) + [0]
    case .map(let map): [0x0c] + members(map) + [0]
    case .blob(let blob): [0x0d] + digest(blob.hash) + signed(blob.size) + closed(Array(blob.type.string.utf8))
    }
  }

  /// M2, last sentence, and M3: a segment says what kind it is and closes itself, so that one path begins another exactly
  /// where its bytes do.
  static func of(_ segment: PathSegment) -> [UInt8] {
    switch segment {
    case .key(let name): [0x06] + closed(Array(name.string.utf8))
    case .element(let place):
      [0x0e] + closed(place.position + replica(place.dot.replica) + bigEndian(place.dot.sequence) + [0x80])
    case .member(let value): [0x0f] + value
    }
  }

  static func replica(_ id: ReplicaID) -> [UInt8] { bigEndian(id.high) + bigEndian(id.low) }

  static func digest(_ hash: Digest) -> [UInt8] {
    bigEndian(hash.words.0) + bigEndian(hash.words.1) + bigEndian(hash.words.2) + bigEndian(hash.words.3)
  }

  static func areInOrder(_ a: [UInt8], _ b: [UInt8]) -> Bool { a.lexicographicallyPrecedes(b) }

  /// Keys in byte order, each as a string, with its value behind it.
  private static func members(_ map: ValueMap) -> [UInt8] {
    let members = map.entries.map { (key: [0x06] + closed(Array($0.key.string.utf8)), value: of($0.value)) }
    return members.sorted { areInOrder($0.key, $1.key) }.flatMap { $0.key + $0.value }
  }

  static func bigEndian(_ word: UInt64) -> [UInt8] { withUnsafeBytes(of: word.bigEndian) { Array($0) } }

  /// The sign bit flipped, so that negative numbers come first.
  private static func signed(_ number: Int64) -> [UInt8] { bigEndian(UInt64(bitPattern: number) ^ (1 << 63)) }

  /// All bits flipped if negative, else the sign bit.
  private static func ordered(_ number: Double) -> [UInt8] {
    bigEndian(number.sign == .minus ? ~number.bitPattern : number.bitPattern ^ (1 << 63))
  }

  /// 00 becomes 00 FF, and 00 closes.
  private static func closed(_ content: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(content.count + 1)
    for byte in content {
      bytes.append(byte)
      if byte == 0 { bytes.append(0xff) }
    }
    bytes.append(0)
    return bytes
  }
}

/// A path with its bytes.
struct OraclePath: Hashable {
  let segments: [PathSegment]
  /// Each segment's bytes, and all of them one after another.
  let steps: [[UInt8]]
  private let bytes: [UInt8]

  init(_ segments: [PathSegment]) {
    self.segments = segments
    steps = segments.map { OracleBytes.of($0) }
    bytes = Array(steps.joined())
  }

  static func == (a: OraclePath, b: OraclePath) -> Bool { a.bytes == b.bytes }
  func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

  static func areInOrder(_ a: OraclePath, _ b: OraclePath) -> Bool { OracleBytes.areInOrder(a.bytes, b.bytes) }

  /// Does `other` stand strictly below?
  func begins(_ other: OraclePath) -> Bool { bytes.count < other.bytes.count && other.bytes.starts(with: bytes) }
}
