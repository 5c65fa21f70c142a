import Glibc

enum BenchPart: String, CaseIterable {
  case storage
  case catchUp = "catch-up"
  case latency
  case load
  case wire
  case reconnect
  case find
  /// All of the following. They take longer than all others together: measured where they are asked for.
  case scale
  case scalePartitions = "scale-partitions"
  case scaleReplicas = "scale-replicas"
  case scaleDocuments = "scale-documents"
  case scaleChains = "scale-chains"

  private var isOfScale: Bool {
    switch self {
    case .scale, .scalePartitions, .scaleReplicas, .scaleDocuments, .scaleChains: true
    default: false
    }
  }

  static func wanted(_ names: [String]) -> [BenchPart] {
    let named = names.compactMap(BenchPart.init)
    return allCases.filter { part in
      named.contains(part) || part.isOfScale && named.contains(.scale) || named.isEmpty && !part.isOfScale
    }
  }
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
      "only", .choice("PART", BenchPart.allCases.map(\.rawValue)), "measure this part alone", repeats: true),
    OptionSpecification(
      "documents", .text("N"),
      "how many documents storage, catch-up and load take; 200000 without it, 20000 with --quick. Bars are for 200000"
    ),
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
  var sizes = invocation.has("quick") ? BenchSizes.quick : BenchSizes.full
  if let count = try invocation.count("documents") { try sizes.take(documents: count) }
  let parent = invocation["scratch"].map(absolutePath) ?? environment()["TMPDIR"] ?? "/var/tmp"
  let scratch = try BenchScratch(in: parent)
  defer { scratch.remove() }
  let report = BenchReport(machine: Machine(measuring: scratch.path)) { line in
    if !context.isJSON { context.terminal.print(line) }
  }
  let run = BenchRun(sizes: sizes, scratch: scratch, terminal: context.terminal, report: report)
  for part in BenchPart.wanted(invocation.all("only")) {
    switch part {
    case .storage: try StorageBench(run: run).measure()
    case .catchUp: try CatchUpBench(run: run).measure()
    case .latency: try LatencyBench(run: run).measure()
    case .load: try LoadBench(run: run).measure()
    case .wire: try WireBench(run: run).measure()
    case .reconnect: try ReconnectBench(run: run).measure()
    case .find: try FindBench(run: run).measure()
    case .scale: break
    case .scalePartitions: try ManyPartitionsBench(run: run).measure()
    case .scaleReplicas: try ManyReplicasBench(run: run).measure()
    case .scaleDocuments: try ManyDocumentsBench(run: run).measure()
    case .scaleChains: try ChainCostsBench(run: run).measure()
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
