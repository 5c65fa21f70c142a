import Testing

@testable import Simulation

@Suite("Many nodes in a simulated world") struct SeedTests {
  /// Small worlds: larger ones for longer are what `seamesh simulate` is for.
  private func options(usesDisk: Bool?) -> SimulationOptions {
    var options = SimulationOptions()
    (options.nodes, options.troubledMilliseconds, options.usesDisk) = (2...4, 8_000, usesDisk)
    return options
  }

  @Test("seeds of faults break no invariant, on the shipped store and on its stand-in", arguments: [true, false])
  func seeds(usesDisk: Bool) {
    for seed in UInt64(1)...12 {
      let report = SimulationRun(seed: seed, options(usesDisk: usesDisk)).run()
      #expect(report.violations.isEmpty, "seed \(seed), disk \(usesDisk): \(report.violations)")
      #expect(report.judgements > 0 && report.intents > 0, "seed \(seed) was not judged")
    }
  }

  @Test("a member that claims more of its peers' own chains again and again has no replica id renewed")
  func boasts() {
    var options = options(usesDisk: false)
    (options.nodes, options.faults) = (3...4, [.liar])
    var boasts = 0
    for seed in UInt64(1)...10 {
      let report = SimulationRun(seed: seed, options).run()
      #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
      boasts += report.occurrences[.boast, default: 0]
    }
    #expect(boasts > 20)
  }

  @Test("one member who begins partitions without end takes what one may, and honest work goes on everywhere")
  func floods() {
    var options = options(usesDisk: false)
    (options.nodes, options.isFlooded, options.troubledMilliseconds) = (3...4, true, 20_000)
    var leftOut = 0
    for seed in UInt64(1)...12 {
      let report = SimulationRun(seed: seed, options).run()
      #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
      leftOut += report.occurrences[.leftOut, default: 0]
    }
    #expect(leftOut > 100)
  }

  @Test(
    "worlds in which an invariant was once broken",
    arguments: [
      33, 159, 432, 562, 620, 748, 905, 926, 2308, 2917, 3013, 3161, 3691, 3857, 4029, 4862, 5021, 6226, 7903, 8275,
      9639, 9655, 12330, 13880, 15774, 16176, 18594, 18847, 3823, 8062, 8777, 5226, 13827, 176, 1166, 5456, 6810, 6935,
      11733, 9150, 19340, 20042, 2078, 3193, 3331, 11457, 17003, 18364, 20031, 25457, 29121, 34114, 38109,
    ] as [UInt64])
  func brokenOnce(seed: UInt64) {
    let report = SimulationRun(seed: seed, SimulationOptions()).run()
    #expect(report.violations.isEmpty, "\(report.violations)")
  }

  @Test("worlds in which an invariant was once broken, all with relays", arguments: [30155] as [UInt64])
  func brokenOnceWithRelays(seed: UInt64) {
    var options = SimulationOptions()
    options.hasRelays = true
    let report = SimulationRun(seed: seed, options).run()
    #expect(report.violations.isEmpty, "\(report.violations)")
  }

  @Test("one seed leaves one trace", arguments: [3, 77] as [UInt64])
  func deterministic(seed: UInt64) {
    let first = SimulationRun(seed: seed, options(usesDisk: nil)).run()
    #expect(first.traceHash == SimulationRun(seed: seed, options(usesDisk: nil)).run().traceHash)
    #expect(first.events > 0)
  }
}
