import Glibc
import Replication
import SampleData
import Seamesh

/// How fast a node that has nothing takes in what one other replica wrote, and what that costs it.
struct CatchUpBench {
  let run: BenchRun
  private var sizes: BenchSizes { run.sizes }

  struct Round {
    let rate: Double
    let peakBytes: Int64
  }

  func measure() throws(Failure) {
    let raw = try run.rawInsert()
    let fleet = try BenchFleet(run, name: "sender")
    defer { fleet.stop() }
    for order in BenchmarkDocuments.IDOrder.allCases { try measure(order, fleet, raw: raw) }
    try StartUpBench(run: run, fleet: fleet).measure()
  }

  private func measure(_ order: BenchmarkDocuments.IDOrder, _ fleet: BenchFleet, raw: Double) throws(Failure) {
    let name = CatchUpBench.partition(order)
    let start = ContinuousClock.now
    try fleet.fill(try partitionName(name), order, count: sizes.documents)
    let filling = (ContinuousClock.now - start).asSeconds
    var rounds: [Round] = []
    for _ in 0..<sizes.catchUpRounds { rounds.append(try fleet.catchUp(name, count: sizes.documents)) }
    let rate = Samples(rounds.map(\.rate)).median
    let raw = max(raw, try run.rawInsertNow())
    let floor = order == .ascending ? 0.45 : 0.33
    let filled = Double(sizes.documents) / filling
    let documents = Figure.text(Double(sizes.documents))
    let each = rounds.map { Figure.text($0.rate) }.joined(separator: "; ")
    run.report.add(
      Figure(
        "own-writes-\(order)", "own writes, \(order) ids", filled, "changes/s",
        basis: "in bulks of 1,000, each bulk durable"),
      Figure(
        "own-writes-share-\(order)", "own writes, \(order) ids, share", filled / raw, "of plain insert",
        basis: "divided as the catch-up is", floor: .atLeast(0.08)),
      Figure(
        "catch-up-\(order)", "catch-up, \(order) ids", rate, "changes/s",
        basis: "\(documents) changes by one replica to as many documents, durable; median of \(each)"),
      Figure(
        "catch-up-share-\(order)", "catch-up, \(order) ids, share", rate / raw, "of plain insert",
        basis: "divided by the better plain SQLite insert before and after, \(Figure.text(raw)) rows/s",
        floor: .atLeast(floor)),
      Figure(
        "catch-up-memory-\(order)", "receiver's peak memory, \(order) ids",
        Double(rounds.map(\.peakBytes).max() ?? 0) / 1_048_576, "MiB",
        basis: "resident, after start and catch-up of \(documents) documents; most of \(rounds.count)",
        floor: .atMost(256)))
  }

  static func partition(_ order: BenchmarkDocuments.IDOrder) -> String { "bench-\(order.rawValue)" }
}
