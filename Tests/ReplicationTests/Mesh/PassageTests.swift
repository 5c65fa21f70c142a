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
}
