import TestSupport
import Testing

@testable import Replication
@testable import Simulation

@Suite("What may pass of what is wanted") struct NarrowedInterestTests {
  @Test("narrowed, a wish speaks of exactly the partitions that are wanted and may pass")
  func narrowing() throws {
    var random = SimulationRandom(seed: 5)
    let fleet = Fleet(&random, .open)
    let names = try ["a=1", "a=12", "a=2", "ab=1", "b=1", "b=2"].map { try PartitionName(Text($0)) }
    let prefixes: [Text] = ["", "a", "a=", "a=1", "b=", "c"]
    var differing = 0
    for _ in 0..<2_000 {
      var wanted = Interest()
      for name in names where random.chance(30) { wanted.partitions.insert(fleet.partition(name)) }
      for prefix in prefixes where random.chance(15) { wanted.prefixes.insert(prefix) }
      var patterns: [Passage.Pattern] = []
      for name in names where random.chance(20) { patterns.append(.partition(name, fleet.partition(name))) }
      for prefix in prefixes where random.chance(15) { patterns.append(.prefix(prefix)) }
      let passage = Passage(patterns)
      let narrowed = passage.narrowing(wanted) { id in names.first { fleet.partition($0) == id } }
      for name in names {
        let id = fleet.partition(name)
        let passes = patterns.contains { pattern in
          switch pattern {
          case .partition(let other, _): other == name
          case .prefix(let prefix): name.text.string.hasPrefix(prefix.string)
          }
        }
        #expect(narrowed.wants(id, name: name) == (wanted.wants(id, name: name) && passes))
        #expect((passage.rank(id, name) != nil) == passes)
        if wanted.wants(id, name: name) != narrowed.wants(id, name: name) { differing += 1 }
      }
      #expect(Passage.everything.narrowing(wanted) { _ in nil } == wanted)
      #expect(Passage.authority.narrowing(wanted) { _ in nil } == Interest())
    }
    #expect(differing > 100)
  }

  @Test("what cannot be sent yet on a link with an order is read once, and not again for that")
  func unsendable() throws {
    let bench = try MeshBench([0, 1])
    let node = bench.nodes[0]
    try node.write(1)
    node.holdsLoads = true
    let id = bench.connect(0, 1, Passage([.prefix("agency"), .prefix("")], isThin: true))
    bench.run()
    #expect(node.loadLimits == [MeshConfiguration.thinLoadByteLimit])
    // As where all that was read stands on something that the peer has to get first.
    for (runs, hasMore) in [([], false), ([], true)] as [([LoggedRun], Bool)] {
      let count = node.loadLimits.count
      node.deliver(.loaded(id, bench.partition, runs, hasMore: hasMore))
      #expect(node.loadLimits.count == count + (hasMore ? 1 : 0))
      if !hasMore { bench.pass(31_000) }
    }
  }
}
