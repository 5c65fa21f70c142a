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
    case .causesHidden: [.restoredCopy, .split, .slowNetwork]
    default: [.crash, .crashAfterCommit, .cut]
    }
  }

  private func firstFailure(of bug: PlantedBug?, under faults: Set<Fault>) -> SimulationReport? {
    var options = SimulationOptions()
    (options.nodes, options.troubledMilliseconds, options.faults) = (2...3, 8_000, faults)
    (options.plantedBug, options.usesDisk) = (bug, false)
    return PlantedBugTests.seeds.lazy.map { SimulationRun(seed: $0, options).run() }.first(where: \.hasFailed)
  }

  @Test("each mistake breaks an invariant within twenty small worlds", arguments: PlantedBug.allCases)
  func found(bug: PlantedBug) {
    #expect(firstFailure(of: bug, under: faults(for: bug)) != nil, "\(bug) was not noticed")
  }

  @Test("the same worlds without a mistake break none")
  func clean() {
    for faults in Set(PlantedBug.allCases.map { faults(for: $0) }) {
      let report = firstFailure(of: nil, under: faults)
      #expect(report == nil, "\(faults.map(\.rawValue).sorted()): \(report?.violations ?? [])")
    }
  }
}
