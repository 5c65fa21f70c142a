import Replication
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
    OptionSpecification(
      "harbour", .none, "more nodes on one LAN than all have links with one another; otherwise each seed draws"),
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
  if invocation.has("harbour") { options.nodes = SimulationOptions.harbour }
  let summary = Simulator.runMany(first..<end, options)
  context.isJSON
    ? context.terminal.print(json(summary, withCounts: invocation.has("counts")))
    : show(summary, withCounts: invocation.has("counts"), context.terminal)
  guard summary.failures.isEmpty else { throw Failure(.failed, "\(summary.failures.count) worlds broke an invariant") }
}

private func show(_ summary: Simulator.Summary, withCounts: Bool, _ terminal: Terminal) {
  for report in summary.failures {
    for line in report.log { terminal.print(line) }
    terminal.print("\(report.rerunCommand): \(report.violations.map(\.description).joined(separator: "; "))")
  }
  terminal.print(
    "\(summary.runs) worlds, \(summary.events) events, \(summary.changes) changes, \(summary.failures.count) failed")
  guard withCounts else { return }
  terminal.print("  judgements \(summary.judgements)")
  terminal.print("  worlds_run_twice \(summary.repeated)")
  for (name, count) in happened(summary) {
    terminal.print("  \(name) \(count?.times ?? 0) in \(count?.runs ?? 0) worlds")
  }
}

private func json(_ summary: Simulator.Summary, withCounts: Bool) -> String {
  let failures = summary.failures.map { report in
    object([
      ("command", .string(Text(report.rerunCommand))),
      ("violations", .array(report.violations.map { .string(Text($0.description)) })),
      ("log", .array(report.log.map { .string(Text($0)) })),
    ])
  }
  var members: [(String, Value)] = [
    ("worlds", .int(Int64(summary.runs))), ("events", .int(Int64(summary.events))),
    ("changes", .int(Int64(summary.changes))), ("failures", .array(failures)),
  ]
  if withCounts {
    let counts = happened(summary).map { name, count in
      (name, object([("times", .int(Int64(count?.times ?? 0))), ("worlds", .int(Int64(count?.runs ?? 0)))]))
    }
    members += [
      ("judgements", .int(Int64(summary.judgements))), ("worldsRunTwice", .int(Int64(summary.repeated))),
      ("counts", object(counts)),
    ]
  }
  return ExtendedJSON.text(object(members))
}

private func object(_ members: [(String, Value)]) -> Value {
  var map = ValueMap()
  for (key, value) in members { map[Text(key)] = value }
  return .map(map)
}

/// How often each fault and each special case really happened.
private func happened(_ summary: Simulator.Summary) -> [(name: String, count: Simulator.Count?)] {
  Fault.allCases.map { ($0.rawValue, summary.faults[$0]) }
    + Occurrence.allCases.map { ($0.rawValue, summary.occurrences[$0]) }
}

private func number(_ invocation: Invocation, _ name: String) throws(Failure) -> UInt64 {
  guard let text = invocation[name] else { return 1 }
  guard let number = UInt64(text) else { throw .usage("--\(name) takes a number") }
  return number
}
