import Testing

@testable import Simulation

@Suite("Many nodes in a simulated world") struct SeedTests {
  /// What makes one replica's history differ between nodes: its seeds are run by `seamesh simulate`, not yet here.
  static let forking: Set<Fault> = [.clonedDirectory, .rolledBack]

  /// A random half of the other faults.
  private func options(_ seed: UInt64) -> SimulationOptions {
    var random = SimulationRandom(seed: seed)
    var options = SimulationOptions()
    options.faults = Set(Fault.allCases.filter { !SeedTests.forking.contains($0) && random.next() % 2 == 0 })
    return options
  }

  @Test("200 seeds of faults break no invariant, and every fault really happened")
  func twoHundredSeeds() {
    var faults: [Fault: Int] = [:]
    for seed in UInt64(1)...200 {
      let report = SimulationRun(seed: seed, options(seed)).run()
      #expect(report.violations.isEmpty, "\(report.rerunCommand): \(report.violations)")
      faults.merge(report.faults, uniquingKeysWith: +)
    }
    for fault in Fault.allCases where !SeedTests.forking.contains(fault) {
      #expect(faults[fault, default: 0] > 0, "\(fault) never happened")
    }
  }

  @Test("one seed leaves one trace", arguments: [3, 77] as [UInt64])
  func deterministic(seed: UInt64) {
    #expect(SimulationRun(seed: seed).run().traceHash == SimulationRun(seed: seed).run().traceHash)
  }

  @Test(
    "a planted mistake is found within a few seeds",
    arguments: [PlantedBug.acknowledgeBeforeCommit, .forgetToSync, .forgetRun, .ignoreDeletes])
  func planted(bug: PlantedBug) {
    let found = (UInt64(1)...60).contains { seed in
      var options = options(seed)
      options.faults?.formUnion([.crash, .crashAfterCommit, .diskFull])
      options.plantedBug = bug
      return SimulationRun(seed: seed, options).run().hasFailed
    }
    #expect(found)
  }
}
