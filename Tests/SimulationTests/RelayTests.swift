import Replication
import Testing

@testable import Simulation

/// Nodes of worlds with faults that forward to a model of a backend.
@Suite("Relays in simulated worlds") struct RelayTests {
  private func options() -> SimulationOptions {
    var options = SimulationOptions()
    (options.nodes, options.troubledMilliseconds, options.hasRelays) = (2...4, 10_000, true)
    return options
  }

  @Test("whatever is lost, away or put back, the backend comes to have what its relays hold, once, and edits come home")
  func worlds() {
    var occurrences: [Occurrence: Int] = [:]
    for seed in UInt64(1)...24 {
      let report = SimulationRun(seed: seed, options()).run()
      #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
      occurrences.merge(report.occurrences, uniquingKeysWith: +)
    }
    let wanted: [Occurrence] = [
      .forwarded, .callLost, .calledLate, .answerLost, .forwardedAgain, .backendAway, .ledgerRestored, .ledgerLacked,
      .leftToOther, .deadLetter, .officeWritten, .officeRefused, .saidBackend, .relayCloned, .copyRefused,
    ]
    for occurrence in wanted { #expect(occurrences[occurrence, default: 0] > 0, "\(occurrence) hardly happened") }
  }

  @Test("a world with relays leaves one trace", arguments: [1, 5] as [UInt64])
  func deterministic(seed: UInt64) {
    let first = SimulationRun(seed: seed, options()).run()
    #expect(first.occurrences[.forwarded, default: 0] > 0)
    #expect(first.traceHash == SimulationRun(seed: seed, options()).run().traceHash)
  }
}
