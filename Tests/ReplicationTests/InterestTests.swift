import Replication
import Testing

@Suite struct InterestTests {
  @Test("an interest that a peer adds to again and again keeps its limits, and what it had")
  func bounded() {
    var interest = Interest(prefixes: ["room="])
    for round in 0..<30 as Range<UInt64> {
      let partitions = (0..<10_000 as Range<UInt64>).map { PartitionID(Digest(words: (round, $0, 0, 0))) }
      interest = interest.adding(
        Interest(partitions: Set(partitions), prefixes: Set((0..<100).map { Text("\(round)-\($0)") })))
    }
    #expect(interest.partitions.count == Interest.partitionLimit)
    #expect(interest.partitions.allSatisfy { $0.digest.words.0 < 10 })
    #expect(interest.prefixes.count == Interest.prefixLimit && interest.prefixes.contains("room="))
  }
}
