import Testing

@testable import Simulation

/// Two admins who do not hear of each other: both end, lower and raise, often the same.
@Suite("Two admins in simulated worlds") struct AdminTests {
  @Test("all agree in the end on what two admins said at once")
  func agree() {
    var atOnce = 0
    for seed in UInt64(1)...15 {
      var options = SimulationOptions()
      (options.nodes, options.troubledMilliseconds) = (3...5, 30_000)
      options.faults = [.rightChanged, .cut]
      let report = SimulationRun(seed: seed, options).run()
      #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
      atOnce += report.occurrences[.adminsAtOnce, default: 0]
    }
    #expect(atOnce > 5, "\(atOnce)")
  }
}
