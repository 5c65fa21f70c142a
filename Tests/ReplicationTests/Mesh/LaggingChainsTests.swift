import Testing

@testable import Replication

@Suite("Chains that stand still")
struct LaggingChainsTests {
  @Test("chains that stand still are named twice for each time that they are, and forgotten when they are here")
  func lagging() {
    var lagging = LaggingChains()
    let (partition, replica) = (PartitionID(.zero), ReplicaID(high: 1, low: 1))
    let (first, second) = (SessionID(rawValue: 7), SessionID(rawValue: 8))
    func time(_ milliseconds: UInt64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }
    func still(_ now: UInt64, _ received: UInt64) -> [Bool] {
      lagging.takeStill(for: 3_000, time(now)) { _, _ in received }.map(\.isGrafted)
    }
    lagging.note(replica, of: partition, named: 5, received: 1, by: first, time(1_000))
    lagging.note(replica, of: partition, named: 4, received: 1, by: second, time(3_000))
    #expect(still(3_900, 1) == [])
    #expect(still(4_000, 1) == [], "it was just looked at")
    #expect(still(4_700, 2) == [], "it has gone on")
    #expect(still(7_600, 2) == [] && still(8_400, 2) == [false])
    #expect(still(11_300, 2) == [] && still(12_100, 2) == [true])
    #expect(still(20_000, 2) == [], "nobody has named it since")
    lagging.note(replica, of: partition, named: 5, received: 2, by: first, time(20_000))
    #expect(still(21_000, 5) == [] && still(30_000, 2) == [])
    lagging.note(replica, of: partition, named: 5, received: 2, by: first, time(30_000))
    lagging.note(replica, of: partition, named: 5, received: 2, by: second, time(30_000))
    lagging.closed(second)
    let meanwhile = lagging.takeStill(for: 3_000, time(33_000), received: { _, _ in 2 }, isOnItsWay: { _ in true })
    #expect(meanwhile.isEmpty)
    let later = lagging.takeStill(for: 3_000, time(36_000)) { _, _ in 2 }
    #expect(later.map(\.namedBy) == [[first]])
    #expect(still(39_000, 3) == [] && still(42_000, 3) == [false], "it went on, and stands still anew")
  }

  @Test("a chain is named by those alone who have named more of it than is here")
  func lagsBehind() {
    var lagging = LaggingChains()
    let (partition, replica) = (PartitionID(.zero), ReplicaID(high: 1, low: 1))
    let (first, second) = (SessionID(rawValue: 7), SessionID(rawValue: 8))
    var asked: [[SessionID]] = []
    func look(_ now: UInt64, _ received: UInt64) -> [[SessionID]] {
      let still = lagging.takeStill(
        for: 1_000, MonotonicTime(milliseconds: now), received: { _, _ in received },
        isOnItsWay: {
          asked.append($0.namedBy)
          return false
        })
      return still.map(\.namedBy)
    }
    for (session, named) in [(first, 5), (second, 9), (second, 4)] as [(SessionID, UInt64)] {
      lagging.note(
        replica, of: partition, named: named, received: 2, by: session, MonotonicTime(milliseconds: 1_000))
    }
    #expect(look(1_500, 2) == [] && asked == [[first, second]])
    #expect(look(2_000, 5) == [] && look(3_000, 5) == [[second]] && asked.last == [second])
    #expect(look(3_500, 9) == [] && look(9_000, 9) == [])
  }

  @Test("of more chains that stand still than one look takes the rest has its turn with the next")
  func manyStill() {
    var lagging = LaggingChains()
    let partitions = (0..<5).map { PartitionID(Digest(words: ($0, 0, 0, 0))) }
    for partition in partitions {
      for low in 0..<UInt64(LaggingChains.chainLimit) {
        let replica = ReplicaID(high: 1, low: low)
        lagging.note(
          replica, of: partition, named: 5, received: 1, by: SessionID(rawValue: 1), MonotonicTime(milliseconds: 0))
      }
    }
    func look(_ now: UInt64) -> [LaggingChains.Still] {
      lagging.takeStill(for: 1_000, MonotonicTime(milliseconds: now)) { _, _ in 1 }
    }
    let first = look(1_000)
    #expect(first.count == LaggingChains.stillLimit && first.last?.partition == partitions[3])
    let next = look(1_250)
    #expect(next.count == LaggingChains.chainLimit)
    #expect(next.allSatisfy { $0.partition == partitions[4] && !$0.isGrafted })
  }
}
