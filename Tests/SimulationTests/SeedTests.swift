import Testing

@testable import Simulation

@Suite("Many nodes in a simulated world") struct SeedTests {
  /// A random half of all faults.
  private func options(_ seed: UInt64) -> SimulationOptions {
    var random = SimulationRandom(seed: seed)
    var options = SimulationOptions()
    options.faults = Set(Fault.allCases.filter { _ in random.next() % 2 == 0 })
    // Small worlds: larger ones for longer are what `seamesh simulate` is for.
    (options.nodes, options.troubledMilliseconds) = (2...4, 12_000)
    return options
  }

  @Test("200 seeds of faults, cloned and rolled back devices among them, break no invariant; every fault happened")
  func twoHundredSeeds() {
    var faults: [Fault: Int] = [:]
    var occurrences: [Occurrence: Int] = [:]
    for seed in UInt64(1)...200 {
      let report = SimulationRun(seed: seed, options(seed)).run()
      #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
      faults.merge(report.faults, uniquingKeysWith: +)
      occurrences.merge(report.occurrences, uniquingKeysWith: +)
    }
    for fault in Fault.allCases { #expect(faults[fault, default: 0] > 0, "\(fault) never happened") }
    for occurrence in Occurrence.allCases {
      #expect(occurrences[occurrence, default: 0] > 0, "\(occurrence) never happened")
    }
  }

  /// Seeds that broke an invariant once, with the faults that they draw themselves.
  @Test(
    "a seed that failed once stays good",
    arguments: [52, 129, 166, 171, 186, 191, 203, 338, 394] as [UInt64])
  func regression(seed: UInt64) {
    let report = SimulationRun(seed: seed).run()
    #expect(report.violations.isEmpty, "\(report.rerunCommand): \(report.violations)")
  }

  /// The same, where devices are cloned and rolled back all the time.
  @Test(
    "a seed of forks that failed once stays good",
    arguments: [39, 63, 88, 132, 247, 433, 471, 1_466] as [UInt64])
  func forkRegression(seed: UInt64) {
    var options = SimulationOptions()
    options.faults = [.clonedDirectory, .rolledBack, .cut, .crash]
    let report = SimulationRun(seed: seed, options).run()
    #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
  }

  /// The same, with everything that may go wrong with disks and networks beside it.
  @Test("a seed of forks and trouble that failed once stays good", arguments: [208, 1_022] as [UInt64])
  func troubledForkRegression(seed: UInt64) {
    var options = SimulationOptions()
    options.faults = Set(Fault.allCases).subtracting([.clockJump, .duplicateDial])
    let report = SimulationRun(seed: seed, options).run()
    #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
  }

  @Test("one seed leaves one trace", arguments: [3, 77] as [UInt64])
  func deterministic(seed: UInt64) {
    #expect(SimulationRun(seed: seed).run().traceHash == SimulationRun(seed: seed).run().traceHash)
  }

  @Test("a planted mistake is found within a few seeds", arguments: PlantedBug.allCases)
  func planted(bug: PlantedBug) {
    let found = (UInt64(1)...20).contains { seed in
      var options = options(seed)
      options.faults?.formUnion([.crash, .crashAfterCommit, .diskFull, .restoredCopy, .clonedDirectory])
      options.plantedBug = bug
      return SimulationRun(seed: seed, options).run().hasFailed
    }
    #expect(found)
  }
}
