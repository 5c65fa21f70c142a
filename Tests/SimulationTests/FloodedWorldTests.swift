import Replication
import Testing

@testable import Simulation

/// One member whose key signs without end: statements, replica ids, and chains under all of them.
@Suite("Floods in simulated worlds") struct FloodedWorldTests {
  @Test("of what one member signs nodes keep what one may, and honest work goes on everywhere")
  func bounded() {
    var occurrences: [Occurrence: Int] = [:]
    for seed in UInt64(1)...15 {
      var options = SimulationOptions()
      (options.nodes, options.troubledMilliseconds, options.floods) = (3...5, 25_000, true)
      options.faults = [.cut, .split, .crash, .crashInCommit]
      let report = SimulationRun(seed: seed, options).run()
      #expect(report.violations.isEmpty, "seed \(seed): \(report.violations)")
      #expect(report.judgements > 0 && report.changes > 0)
      occurrences.merge(report.occurrences, uniquingKeysWith: +)
    }
    #expect(occurrences[.signedBeyond, default: 0] > 500, "\(occurrences)")
    // Earlier statements pushed out later ones, and chains were left out.
    #expect(occurrences[.displaced, default: 0] > 100 && occurrences[.leftOut, default: 0] > 100, "\(occurrences)")
  }

  @Test("some worlds have a flood, by their seed alone, and none in which somebody lies or few are")
  func drawn() {
    let plans = (UInt64(1)...400).map { seed in
      var random = SimulationRandom(seed: seed)
      return Plan(SimulationOptions(), seed: seed, &random)
    }
    let flooded = plans.filter { $0.flood != nil }
    #expect((10...40).contains(flooded.count), "\(flooded.count)")
    #expect(flooded.allSatisfy { $0.nodeCount > 2 && !$0.faults.contains(.liar) })
    #expect(flooded.allSatisfy { $0.statementLimit < Allowance.statementLimit })
    #expect(plans.allSatisfy { $0.flood != nil || $0.statementLimit == Allowance.statementLimit })
  }
}
