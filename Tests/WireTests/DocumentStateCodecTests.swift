import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Stored document state")
struct DocumentStateCodecTests {
  @Test("groups are read back in the order of their changes", arguments: 0..<30 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let groups = generator.groups(count: generator.below(6))
    let encoded = DocumentStateCodec.encode(generation: 7, groups: groups)
    let decoded = try DocumentStateCodec.decode(encoded[...])
    #expect(decoded.generation == 7)
    let ordered = groups.sorted { ($0.dot, $0.generation) < ($1.dot, $1.generation) }
    #expect(decoded.groups.map(\.dot) == ordered.map(\.dot))
    for (group, original) in zip(decoded.groups, ordered) {
      #expect(group.timestamp == original.timestamp && group.generation == original.generation)
      #expect(Set(group.operations) == Set(original.operations))
    }
    #expect(DocumentStateCodec.encode(generation: 7, groups: decoded.groups) == encoded)
  }

  @Test("the state of a created document is made of the payload's own bytes", arguments: 0..<20 as Range<UInt64>)
  func created(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let dot = Dot(replica: generator.replica(), sequence: 12)
    let write = DocumentWrite(
      collection: "c", id: .int(1), kind: .create, generation: 1, operations: generator.operations(dot: dot, count: 6))
    let payload = PayloadEncoder.encode([write], dot: dot)
    var scanner = PayloadScanner()
    let view = try scanner.scan(payload[...], dot: dot).documents[0]
    let timestamp = HybridTimestamp(milliseconds: 99, counter: 1)
    var writer = CBORWriter()
    writer.createdState(
      dot: dot, timestamp: timestamp, generation: view.generation, operations: payload[view.operations])
    let state = writer.bytes
    let group = OperationGroup(dot: dot, timestamp: timestamp, generation: 1, operations: write.operations)
    #expect(state == DocumentStateCodec.encode(generation: 1, groups: [group]))
    #expect(Set(try DocumentStateCodec.decode(state[...]).groups[0].operations) == Set(write.operations))
  }

  @Test(
    "a state cut off at any byte, or with groups out of order, is refused; damage never traps",
    arguments: 0..<6 as Range<UInt64>)
  func damage(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    let groups = generator.groups(count: 3)
    let mutations = Mutations(original: DocumentStateCodec.encode(generation: 3, groups: groups))
    for part in mutations.truncations {
      #expect(kindOfFailure { try DocumentStateCodec.decode(part) } == .truncated)
    }
    for _ in 0..<500 { _ = try? DocumentStateCodec.decode(mutations.random(&generator)[...]) }
    let twice = OperationGroup(dot: groups[0].dot, timestamp: .zero, generation: groups[0].generation, operations: [])
    let doubled = DocumentStateCodec.encode(generation: 3, groups: [groups[0], twice])
    #expect(kindOfFailure { try DocumentStateCodec.decode(doubled[...]) } == .keyOrder)
  }
}

extension SplitMix64 {
  fileprivate mutating func groups(count: Int) -> [OperationGroup] {
    (0..<count).map { index in
      let dot = Dot(replica: replica(), sequence: 1 + UInt64(index))
      return OperationGroup(
        dot: dot, timestamp: HybridTimestamp(rawValue: next()), generation: 1 + UInt64(below(4)),
        operations: operations(dot: dot, count: below(5)))
    }
  }
}
