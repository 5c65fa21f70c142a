import Replication
import TestSupport

@testable import Wire

extension SplitMix64 {
  mutating func text(maximum: Int = 12) -> Text {
    let alphabet: [Character] = ["a", "b", "z", "0", " ", "é", "e\u{301}", "日", "🚢", "\u{0}"]
    return Text(String((0..<below(maximum + 1)).map { _ in alphabet[below(alphabet.count)] }))
  }

  mutating func int() -> Int64 {
    let word = Int64(bitPattern: next())
    return [word, word >> 40, word >> 56, 0, .min, .max, -24, -25, 23, 24][below(10)]
  }

  mutating func double() -> Double {
    let candidates: [Double] = [
      0, -0.0, 1, -1.5, 65504, 65505, 5.960464477539063e-8, 1.1, 3.4028234663852886e38, .leastNonzeroMagnitude,
      .greatestFiniteMagnitude, Double(Float(bitPattern: UInt32(truncatingIfNeeded: next() & 0x7f7f_ffff))),
    ]
    let random = Double(bitPattern: next())
    return chance(30) && random.isFinite ? random : candidates[below(candidates.count)]
  }

  mutating func scalar() -> Value {
    switch below(11) {
    case 0: .null
    case 1: .bool(chance(50))
    case 2, 3: .int(int())
    case 4: .double(double())
    case 5: .string(text())
    case 6: .bytes(bytes(below(40)))
    case 7: .date(int())
    case 8: .objectID(objectID())
    case 9: .uuid(uuid())
    default: blob()
    }
  }

  mutating func blob() -> Value {
    let sizes = [0, 5, BlobReference.pieceByteCount, BlobReference.pieceByteCount + 1, BlobReference.sizeLimit]
    let size = sizes[below(sizes.count)]
    return .blob(of: size, digest(), type: text(), listHash: size > BlobReference.pieceByteCount ? digest() : nil)
  }

  mutating func value(depth: Int = 3) -> Value {
    guard depth > 0, chance(35) else { return scalar() }
    if chance(50) { return .array((0..<below(4)).map { _ in value(depth: depth - 1) }) }
    return .map(
      ValueMap(unique: uniqued((0..<below(5)).map { _ in .init(key: text(), value: value(depth: depth - 1)) })))
  }

  private func uniqued(_ entries: [ValueMap.Entry]) -> [ValueMap.Entry] {
    var seen: Set<Text> = []
    return entries.filter { seen.insert($0.key).inserted }
  }

  mutating func digest() -> Digest { Digest(words: (next(), next(), next(), next())) }
  mutating func replica() -> ReplicaID { ReplicaID(high: next(), low: next()) }
  mutating func uuid() -> UUIDValue { UUIDValue(high: next(), low: next()) }
  mutating func objectID() -> ObjectID { ObjectID(high: next(), low: UInt32(truncatingIfNeeded: next())) }
  mutating func signature() -> Signature { Signature(bytes(64)) ?? zeroSignature }

  mutating func vector(count: Int) -> VersionVector {
    var vector = VersionVector()
    for _ in 0..<count {
      vector[replica()] = ChainPosition(
        sequence: 1 + next() >> UInt64(11 + below(52)), tip: TipHash(high: next(), low: next()))
    }
    return vector
  }
}

extension Value {
  static func blob(
    of size: Int64, _ hash: Digest = .zero, type: Text = "a/b", listHash: Digest? = nil
  ) -> Value {
    guard let blob = BlobReference(hash: hash, size: size, type: type, listHash: listHash) else {
      preconditionFailure("a reference within its limits")
    }
    return .blob(blob)
  }
}

extension ValueMap {
  init(unique: [Entry]) { self.init(ascending: unique.sorted { $0.key < $1.key }) }
}

let zeroSignature = Signature(first: .zero, second: .zero)

extension Signature {
  init(first: Digest, second: Digest) {
    guard let signature = Signature(first.bytes + second.bytes) else { preconditionFailure("64 bytes") }
    self = signature
  }
}
