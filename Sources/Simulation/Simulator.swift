import Replication

/// One run of the simulated world: everything that happens in it follows from the seed.
package struct SimulationRun: Sendable {
  package let seed: UInt64
  package let options: SimulationOptions

  package init(seed: UInt64, _ options: SimulationOptions = SimulationOptions()) {
    (self.seed, self.options) = (seed, options)
  }

  /// With every look at what must hold within (``Invariant``).
  package func run() -> SimulationReport {
    Invariant.lookAtAll()
    let broken = BrokenInvariants()
    let witness = InvariantWitness { broken.note($0) }
    return Invariant.$witness.withValue(witness) { World(seed: seed, options, broken).run() }
  }
}

/// Many runs, and what they came to together.
package enum Simulator {
  package struct Summary: Sendable {
    package fileprivate(set) var runs = 0
    package fileprivate(set) var events = 0
    package fileprivate(set) var changes = 0
    package fileprivate(set) var judgements = 0
    package fileprivate(set) var virtualMilliseconds: UInt64 = 0
    package fileprivate(set) var slowestConvergence: (seed: UInt64, milliseconds: UInt64) = (0, 0)
    package fileprivate(set) var faults: [Fault: Count] = [:]
    package fileprivate(set) var occurrences: [Occurrence: Count] = [:]
    package fileprivate(set) var failures: [SimulationReport] = []
    /// Seeds that were run twice.
    package fileprivate(set) var repeated = 0
  }

  package struct Count: Sendable {
    package fileprivate(set) var times = 0
    /// Runs in which it happened at all.
    package fileprivate(set) var runs = 0

    fileprivate mutating func add(_ times: Int) {
      self.times += times
      if times > 0 { runs += 1 }
    }
  }

  /// One seed in so many runs twice and must leave the same trace.
  static let repeatInterval = 100

  package static func runMany(
    _ seeds: some Sequence<UInt64>, _ options: SimulationOptions = SimulationOptions(),
    each: (SimulationReport) -> Void = { _ in }
  ) -> Summary {
    var summary = Summary()
    for seed in seeds {
      var report = SimulationRun(seed: seed, options).run()
      if summary.runs.isMultiple(of: repeatInterval) {
        summary.repeated += 1
        let again = SimulationRun(seed: seed, options).run().traceHash
        if again != report.traceHash {
          report.violations.append(
            SimulationReport.Violation(rule: "determinism", time: 0, what: "the same seed left another trace"))
        }
      }
      summary.add(report)
      each(report)
    }
    return summary
  }
}

extension Simulator.Summary {
  fileprivate mutating func add(_ report: SimulationReport) {
    runs += 1
    events += report.events
    changes += report.changes
    judgements += report.judgements
    virtualMilliseconds += report.virtualMilliseconds
    if report.convergenceMilliseconds > slowestConvergence.milliseconds {
      slowestConvergence = (report.seed, report.convergenceMilliseconds)
    }
    for (fault, times) in report.faults { faults[fault, default: Simulator.Count()].add(times) }
    for (occurrence, times) in report.occurrences { occurrences[occurrence, default: Simulator.Count()].add(times) }
    if report.hasFailed { failures.append(report) }
  }
}
