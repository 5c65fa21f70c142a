import Testing

@testable import Replication

@Suite("List positions")
struct PositionTests {
  enum Pattern: String, CaseIterable {
    case append, prepend, afterTheFirst, beforeTheLast, anywhere

    /// Bytes that the longest of 5,000 positions may have.
    var byteLimit: Int {
      switch self {
      case .append, .prepend: 6
      case .afterTheFirst, .beforeTheLast: 8
      case .anywhere: 40
      }
    }

    func index(in count: Int, _ random: inout MergeRandom) -> Int {
      switch self {
      case .append: count
      case .prepend: 0
      case .afterTheFirst: min(1, count)
      case .beforeTheLast: max(0, count - 1)
      case .anywhere: random.below(count + 1)
      }
    }
  }

  @Test("5,000 inserts keep their order and stay short", arguments: Pattern.allCases)
  func insertsKeepTheirOrderAndStayShort(pattern: Pattern) {
    var (random, keys, longest) = (MergeRandom(seed: 7), [[UInt8]](), 0)
    for number in 0..<5000 {
      let index = pattern.index(in: keys.count, &random)
      let (low, high) = (index > 0 ? keys[index - 1] : nil, index < keys.count ? keys[index] : nil)
      let position = Positions.place(between: low, and: high, random: &random)
      let replica = ReplicaID(high: UInt64(number % 2), low: 0)
      let key = ListElement(position: position, dot: Dot(replica: replica, sequence: UInt64(number + 1))).key
      #expect(low?.lexicographicallyPrecedes(key) ?? true)
      #expect(high.map { key.lexicographicallyPrecedes($0) } ?? true)
      keys.insert(key, at: index)
      longest = max(longest, position.count)
    }
    #expect(longest <= pattern.byteLimit)
  }

  @Test("between any two keys, equal positions too, there is room for a run in order")
  func thereIsRoomBetweenAnyTwoKeys() {
    var random = MergeRandom(seed: 8)
    func element(_ random: inout MergeRandom) -> ListElement {
      let position = (0..<1 + random.below(3)).map { _ in UInt8(random.pick([0, 1, 255])) }
      let replica = ReplicaID(high: UInt64(random.below(2)), low: 0)
      return ListElement(position: position, dot: Dot(replica: replica, sequence: 1 + UInt64(random.below(2))))
    }
    for _ in 0..<10_000 {
      let keys = [element(&random).key, element(&random).key].sorted { $0.lexicographicallyPrecedes($1) }
      guard keys[0] != keys[1] else { continue }
      let count = random.pick([1, 2, 5])
      let places = Positions.places(between: keys[0], and: keys[1], count: count, random: &random)
      let dot = Dot(replica: ReplicaID(high: .max, low: 0), sequence: .max)
      let all = [keys[0]] + places.map { ListElement(position: $0, dot: dot).key } + [keys[1]]
      #expect(zip(all, all.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
      // Whatever follows the new position, it stays between them.
      #expect(places.allSatisfy { keys[0].lexicographicallyPrecedes($0) && !keys[1].starts(with: $0) })
    }
  }

  @Test("paths are ordered as their canonical bytes are")
  func pathsAreOrderedAsTheirBytes() {
    var random = MergeRandom(seed: 9)
    func segment(_ random: inout MergeRandom) -> PathSegment {
      let bytes = (0..<random.below(3)).map { _ in UInt8(random.pick([0, 1, 0x61])) }
      switch random.below(3) {
      case 0: return .key(Text(String(decoding: bytes, as: UTF8.self)))
      case 1:
        let dot = Dot(
          replica: ReplicaID(high: UInt64(random.below(2)) << 56, low: 0), sequence: UInt64(random.below(2)))
        return .element(ListElement(position: bytes, dot: dot))
      default: return .member(Value.bytes(bytes).canonicalBytes)
      }
    }
    func bytes(_ path: [PathSegment]) -> [UInt8] {
      path.flatMap { segment -> [UInt8] in
        switch segment {
        case .key(let key): Value.string(key).canonicalBytes
        case .element(let element): [0x0e] + Value.bytes(element.key).canonicalBytes.dropFirst()
        case .member(let member): [0x0f] + member
        }
      }
    }
    for _ in 0..<20_000 {
      let a = (0..<1 + random.below(2)).map { _ in segment(&random) }
      let b = (0..<1 + random.below(2)).map { _ in segment(&random) }
      let expected: PathOrder =
        bytes(a) == bytes(b) ? .same : bytes(a).lexicographicallyPrecedes(bytes(b)) ? .before : .after
      #expect(a.order(b) == expected, "\(a) \(b)")
      #expect(a.isAbove(b) == (a.count < b.count && Array(b.prefix(a.count)) == a))
    }
  }
}
