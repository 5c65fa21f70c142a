import Replication

/// Flat documents of eight fields with 25 bytes each, 200 bytes of values: what figures of other stores are given for.
package struct BenchmarkDocuments: Sequence, Sendable {
  package enum IDOrder: String, Sendable, CaseIterable {
    /// As ids are that begin with the time.
    case ascending
    case random
  }

  package static let fieldCount = 8
  package static let fieldByteCount = 25
  private static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_".utf8)
  private static let keys: [Text] = (0..<fieldCount).map { Text("field\($0)") }

  /// 2020-09-13T12:26:40Z.
  private static let firstSecond: UInt64 = 1_600_000_000

  package let seed: UInt64
  package let order: IDOrder

  package init(seed: UInt64, order: IDOrder) { (self.seed, self.order) = (seed, order) }

  package func makeIterator() -> Iterator { Iterator(random: SampleRandom(seed: seed), order: order) }

  package struct Iterator: IteratorProtocol, Sendable {
    fileprivate var random: SampleRandom
    fileprivate let order: IDOrder
    private var number: UInt64 = 0

    fileprivate init(random: SampleRandom, order: IDOrder) { (self.random, self.order) = (random, order) }

    package mutating func next() -> (id: Value, body: ValueMap)? {
      number += 1
      let id =
        switch order {
        case .ascending:
          ObjectID(high: BenchmarkDocuments.firstSecond << 32 + number, low: UInt32(truncatingIfNeeded: random.next()))
        case .random: ObjectID(high: random.next(), low: UInt32(truncatingIfNeeded: random.next()))
        }
      let entries = BenchmarkDocuments.keys.map { ValueMap.Entry(key: $0, value: .string(field())) }
      return (.objectID(id), ValueMap(ascending: entries))
    }

    /// Letters with 6 bits of chance each.
    private mutating func field() -> Text {
      var bytes: [UInt8] = []
      bytes.reserveCapacity(BenchmarkDocuments.fieldByteCount)
      var (word, bits) = (random.next(), 60)
      for _ in 0..<BenchmarkDocuments.fieldByteCount {
        if bits == 0 { (word, bits) = (random.next(), 60) }
        bytes.append(BenchmarkDocuments.alphabet[Int(word & 63)])
        (word, bits) = (word >> 6, bits - 6)
      }
      return Text(String(decoding: bytes, as: UTF8.self))
    }
  }
}
