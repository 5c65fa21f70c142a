import Replication
import TestSupport

/// Values of every kind, with the keys, texts and numbers that break writers and readers.
struct RandomValues {
  var random: SplitMix64

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  private static let keys: [Text] = [
    "a", "b", "name", "_id", "", "é", "e\u{301}", "with space", "longer than eight", "longer than eighty", "$oid",
    "$date", "$set", "$literal", "$ref", "$code", "$blob", "quote\"", "line\n", "\u{7f}", "\u{85}", "🐟",
  ]
  private static let texts: [Text] = ["", "x", "Ω\0\u{1}", "\"\\/", "\u{2028}\u{9f}\u{c2}", "🐟é", "$oid", "1e5"]
  private static let numbers: [Double] = [
    0, -0.0, 3, 0.1, 1e16, 1e-7, .leastNonzeroMagnitude, .greatestFiniteMagnitude, -1.5, 123456789012345680, 1 / 3,
  ]

  mutating func value(depth: Int = 0) -> Value {
    switch Int.random(in: 0..<(depth < 5 ? 15 : 11), using: &random) {
    case 0: .null
    case 1: .bool(Bool.random(using: &random))
    case 2: .int(Int64(bitPattern: random.next()) >> Int64.random(in: 0..<64, using: &random))
    case 3: .double(RandomValues.numbers.randomElement(using: &random) ?? 0)
    case 4: .double(finiteDouble())
    case 5: .string(RandomValues.texts.randomElement(using: &random) ?? "")
    case 6: .bytes((0..<Int.random(in: 0..<8, using: &random)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    case 7: .date(Int64(bitPattern: random.next()) >> Int64.random(in: 0..<40, using: &random))
    case 8: .objectID(ObjectID(high: random.next(), low: UInt32(truncatingIfNeeded: random.next())))
    case 9: .uuid(UUIDValue(high: random.next(), low: random.next()))
    case 10: Bool.random(using: &random) ? .blob(of: 5, type: "text/\"plain\"") : .blob(of: 300_000, listHash: .zero)
    case 11, 12: .array((0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth: depth + 1) })
    default: .map(map(depth: depth + 1))
    }
  }

  mutating func map(depth: Int) -> ValueMap {
    var map = ValueMap()
    for _ in 0..<Int.random(in: 0..<6, using: &random) {
      map[RandomValues.keys.randomElement(using: &random) ?? ""] = value(depth: depth)
    }
    return map
  }

  private mutating func finiteDouble() -> Double {
    while true {
      let value = Double(bitPattern: random.next())
      if value.isFinite { return value }
    }
  }
}
