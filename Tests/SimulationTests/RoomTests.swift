import Replication
import Testing

@testable import Simulation

/// Rooms in worlds with faults: who is invited hears all of it, and who is not hears nothing.
@Suite("Rooms in simulated worlds") struct RoomTests {
  @Test("all who may carry a room agree on it in the end, and nobody else hears of it")
  func agree() {
    var occurrences: [Occurrence: Int] = [:]
    for seed in UInt64(1)...40 {
      var options = SimulationOptions()
      (options.nodes, options.troubledMilliseconds, options.hasRooms) = (3...5, 10_000, true)
      let report = SimulationRun(seed: seed, options).run()
      #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
      occurrences.merge(report.occurrences, uniquingKeysWith: +)
    }
    #expect(occurrences[.roomMade, default: 0] > 20 && occurrences[.saidInRoom, default: 0] > 100)
  }
}
