import Testing

@testable import Replication

@Suite("What one run holds")
struct RunBuilderTests {
  private func builder(_ byteCounts: [Int]) -> RunBuilder {
    let hash: HashFunction = { Digest(words: (UInt64($0.count), 0, 0, 0)) }
    let chain = ChainIdentity(
      fleet: FleetID(.zero), partition: PartitionID(.zero), replica: ReplicaID(high: 1, low: 1))
    var builder = RunBuilder(chain: chain, after: 0, hashBefore: .zero, context: VersionVector(), hash: hash)
    for count in byteCounts {
      builder.append(
        payload: [UInt8](repeating: 1, count: count), keyHashes: [], timestamp: .zero, wall: WallTime(milliseconds: 0))
    }
    return builder
  }

  @Test("an empty run has room for anything")
  func empty() {
    #expect(builder([]).hasRoom(for: Run.changePayloadByteLimit))
  }

  @Test("a run has room up to its bytes, and not for one more")
  func bytes() {
    let builder = builder([15_000, 15_000])
    let rest = Run.payloadByteLimit - 30_000
    #expect(builder.hasRoom(for: rest) && !builder.hasRoom(for: rest + 1))
  }

  @Test("a run has room up to its number of changes")
  func changes() {
    #expect(builder(Array(repeating: 1, count: Run.changeLimit - 1)).hasRoom(for: 1))
    #expect(!builder(Array(repeating: 1, count: Run.changeLimit)).hasRoom(for: 1))
  }

  @Test("a payload that travels apart stands alone, whether it comes first or later")
  func apart() {
    let limit = Run.inlinePayloadByteLimit
    #expect(builder([1]).hasRoom(for: limit) && !builder([1]).hasRoom(for: limit + 1))
    #expect(builder([limit]).hasRoom(for: 1) && !builder([limit + 1]).hasRoom(for: 1))
  }
}
