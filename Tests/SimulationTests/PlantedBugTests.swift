import Testing

@testable import Simulation

@Suite("Planted mistakes are found") struct PlantedBugTests {
  /// Enough of small worlds for each; `Tools/prove` has the longer list, and the larger worlds.
  private static let seeds = UInt64(1)...20

  /// What each needs to show at all, so that a few small worlds do.
  private func faults(for bug: PlantedBug) -> Set<Fault> {
    switch bug {
    case .payloadLost: [.largePayload, .cut]
    case .rebuildSkipsOne: [.clonedDirectory, .rightChanged]
    default: [.crash, .crashAfterCommit, .cut]
    }
  }

  private func run(_ seed: UInt64, _ bug: PlantedBug?, under faults: Set<Fault>) -> SimulationReport {
    var options = SimulationOptions()
    (options.nodes, options.troubledMilliseconds, options.faults) = (2...3, 8_000, faults)
    (options.plantedBug, options.usesDisk) = (bug, false)
    return SimulationRun(seed: seed, options).run()
  }

  @Test("each breaks an invariant within twenty small worlds, which hold without it", arguments: PlantedBug.allCases)
  func found(bug: PlantedBug) throws {
    let faults = faults(for: bug)
    let report = PlantedBugTests.seeds.lazy.map { run($0, bug, under: faults) }.first(where: \.hasFailed)
    let failed = try #require(report, "\(bug) was not noticed")
    let clean = run(failed.seed, nil, under: faults)
    #expect(clean.violations.isEmpty, "seed \(failed.seed) without \(bug): \(clean.violations)")
  }
}
