import Glibc

private enum Part: String, CaseIterable {
  case storage
  case catchUp = "catch-up"
  case latency
  case load
  case wire
  case reconnect
  case find
}

let benchVerb = Verb(
  "bench", "measure this build on this machine",
  details: [
    "Runs nodes on loopback, in processes of their own, and prints each figure as soon as it is known, with what it is "
      + "divided by and the bar that it is held against. Other work on the machine spoils the figures."
  ],
  options: [
    OptionSpecification("quick", .none, "smaller sizes: a look, not a figure to quote"),
    OptionSpecification(
      "only", .choice("PART", Part.allCases.map(\.rawValue)), "measure this part alone", repeats: true),
    OptionSpecification("results", .file("FILE"), "write the figures as JSON to FILE too"),
    OptionSpecification(
      "scratch", .directory("DIR"), "on which disk to measure; otherwise TMPDIR, otherwise /var/tmp"),
  ],
  examples: [
    .init("seamesh bench", "Measures everything, in three to five minutes"),
    .init(
      "seamesh bench --quick --only=catch-up --results=bench.json", "Takes a look at catch-up and keeps the figures"),
  ]
) { invocation, context throws(Failure) in
  let sizes = invocation.has("quick") ? BenchSizes.quick : BenchSizes.full
  let wanted = Set(invocation.all("only"))
  let parent = invocation["scratch"].map(absolutePath) ?? environment()["TMPDIR"] ?? "/var/tmp"
  let scratch = try BenchScratch(in: parent)
  defer { scratch.remove() }
  let report = BenchReport(machine: Machine(measuring: scratch.path)) { line in
    if !context.isJSON { context.terminal.print(line) }
  }
  let run = BenchRun(sizes: sizes, scratch: scratch, terminal: context.terminal, report: report)
  for part in Part.allCases where wanted.isEmpty || wanted.contains(part.rawValue) {
    switch part {
    case .storage: try StorageBench(run: run).measure()
    case .catchUp: try CatchUpBench(run: run).measure()
    case .latency: try LatencyBench(run: run).measure()
    case .load: try LoadBench(run: run).measure()
    case .wire: try WireBench(run: run).measure()
    case .reconnect: try ReconnectBench(run: run).measure()
    case .find: try FindBench(run: run).measure()
    }
  }
  report.finish(isQuick: invocation.has("quick"))
  if let path = invocation["results"] { try writeResults(report, to: path) }
  if context.isJSON { context.terminal.print(report.json) }
}

private func writeResults(_ report: BenchReport, to path: String) throws(Failure) {
  guard let file = fopen(path, "w"), fputs(report.json + "\n", file) >= 0, fclose(file) == 0 else {
    throw Failure(.failed, "\(path) cannot be written: \(String(cString: strerror(errno)))")
  }
}
