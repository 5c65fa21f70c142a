import Testing

@testable import Simulation

@Suite("Planted mistakes are found") struct PlantedBugTests {
  /// Enough of small worlds for each; `Tools/prove` has the longer list, and the larger worlds.
  private static let seeds = UInt64(1)...120

  /// What each needs to show at all, so that a few small worlds do.
  private func faults(for bug: PlantedBug) -> Set<Fault> {
    switch bug {
    case .payloadLost: [.largePayload, .cut]
    case .rebuildSkipsOne: [.clonedDirectory, .rightChanged]
    case .olderWordWins: [.split, .cut, .rightChanged]
    default: [.crash, .crashAfterCommit, .cut]
    }
  }

  private func run(_ seed: UInt64, _ bug: PlantedBug?, under faults: Set<Fault>, isAshore: Bool) -> SimulationReport {
    var options = SimulationOptions()
    (options.nodes, options.troubledMilliseconds, options.faults) = (2...3, 8_000, faults)
    (options.plantedBug, options.usesDisk) = (bug, false)
    if isAshore { (options.hasRelays, options.usesDisk, options.nodes) = (true, nil, 2...4) }
    return SimulationRun(seed: seed, options).run()
  }

  @Test("each breaks an invariant within 120 small worlds, which hold without it", arguments: PlantedBug.allCases)
  func found(bug: PlantedBug) throws {
    let (faults, isAshore) = (faults(for: bug), PlantedBug.ashore.contains(bug))
    let reports = PlantedBugTests.seeds.lazy.map { run($0, bug, under: faults, isAshore: isAshore) }
    let report = reports.first(where: \.hasFailed)
    let failed = try #require(report, "\(bug) was not noticed")
    if isAshore { #expect(failed.violations.first?.rule == "I9") }
    let clean = run(failed.seed, nil, under: faults, isAshore: isAshore)
    #expect(clean.violations.isEmpty, "seed \(failed.seed) without \(bug): \(clean.violations)")
  }
}
