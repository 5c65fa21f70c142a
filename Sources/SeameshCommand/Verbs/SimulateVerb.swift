import Simulation
import Wire

let simulateVerb = Verb(
  "simulate", "run many nodes in a simulated world of faults, and check the invariants",
  details: ["Everything follows from the seed: a failing one fails again. Nothing of this machine is touched."],
  options: [
    OptionSpecification("seed", .text("N"), "the first seed; otherwise 1"),
    OptionSpecification("count", .text("N"), "how many seeds; otherwise 1"),
    OptionSpecification(
      "store", .choice("KIND", ["disk", "memory"]),
      "the shipped store on a simulated disk, or its stand-in in memory; otherwise each seed draws"),
    OptionSpecification("relays", .none, "let nodes forward to a model of a backend; otherwise each seed draws"),
    OptionSpecification("counts", .none, "show how often each fault and each special case really happened"),
    OptionSpecification("log", .none, "show what happened in a world that broke an invariant"),
  ],
  examples: [.init("seamesh simulate --seed=1 --count=200", "Runs two hundred worlds")]
) { invocation, context throws(Failure) in
  let first = try number(invocation, "seed")
  let count = try number(invocation, "count")
  let (end, overflow) = first.addingReportingOverflow(count)
  guard count > 0, !overflow else { throw .usage("--count takes a number from 1 on") }
  var options = SimulationOptions()
  options.keepsLog = invocation.has("log")
  options.usesDisk = invocation["store"].map { $0 == "disk" }
  if invocation.has("relays") { options.hasRelays = true }
  let summary = Simulator.runMany(first..<end, options)
  for report in summary.failures {
    for line in report.log { context.terminal.print(line) }
    context.terminal.print("\(report.rerunCommand): \(report.violations.map(\.description).joined(separator: "; "))")
  }
  context.terminal.print(
    "\(summary.runs) worlds, \(summary.events) events, \(summary.changes) changes, \(summary.failures.count) failed")
  if invocation.has("counts") { for line in counts(summary) { context.terminal.print("  \(line)") } }
  guard summary.failures.isEmpty else { throw Failure(.failed, "\(summary.failures.count) worlds broke an invariant") }
}

private func counts(_ summary: Simulator.Summary) -> [String] {
  ["judgements \(summary.judgements)", "worlds_run_twice \(summary.repeated)"]
    + Fault.allCases.map { line($0.rawValue, summary.faults[$0]) }
    + Occurrence.allCases.map { line($0.rawValue, summary.occurrences[$0]) }
}

private func line(_ name: String, _ count: Simulator.Count?) -> String {
  "\(name) \(count?.times ?? 0) in \(count?.runs ?? 0) worlds"
}

private func number(_ invocation: Invocation, _ name: String) throws(Failure) -> UInt64 {
  guard let text = invocation[name] else { return 1 }
  guard let number = UInt64(text) else { throw .usage("--\(name) takes a number") }
  return number
}
