import Replication
import SampleData
import Seamesh

/// How long a question takes on a large collection, asked of the node in this process.
struct FindBench {
  let run: BenchRun

  /// What a screen shows at once.
  private static let pageSize = 50

  func measure() throws(Failure) {
    let fleet = try BenchFleet(run, name: "library")
    defer { fleet.stop() }
    let partition = try partitionName("bench-find")
    let count = run.sizes.findDocuments
    try fleet.fill(partition, .random, count: count)
    let documents = "collection of \(Figure.text(Double(count))) documents"
    let page = FindRequest(limit: FindBench.pageSize)
    let pages = try times { () throws(NodeError) in
      try fleet.node.find(partition, BenchFleet.collection, page).count == FindBench.pageSize
    }
    var written = BenchFleet.documents(.random)
    guard let id = written.next()?.id else { return }
    let one = FindRequest(filter: ValueMap(ascending: [.init(key: "_id", value: id)]))
    let named = try times { () throws(NodeError) in
      try fleet.node.find(partition, BenchFleet.collection, one).count == 1
    }
    run.report.add(
      Figure(
        "find-first-page", "find, first \(FindBench.pageSize) of all", pages.percentile(100), "ms",
        basis: "\(documents), no filter, no sort; slowest of \(pages.count), the first one too", floor: .atMost(50)),
      Figure(
        "find-id", "find by _id", named.percentile(100), "ms", basis: "\(documents); slowest of \(named.count)",
        floor: .atMost(50)),
      try scan(fleet, partition, count))
  }

  /// A filter that nothing matches: every document is looked at.
  private func scan(_ fleet: BenchFleet, _ partition: PartitionName, _ count: Int) throws(Failure) -> Figure {
    let nothing = FindRequest(filter: ValueMap(ascending: [.init(key: "absent", value: .int(1))]))
    let start = ContinuousClock.now
    guard try local({ () throws(NodeError) in try fleet.node.find(partition, BenchFleet.collection, nothing) }).isEmpty
    else { throw Failure(.failed, "a filter found what is not there") }
    let seconds = (ContinuousClock.now - start).asSeconds
    return Figure(
      "find-scan", "find, every document looked at", Double(count) / seconds, "documents/s",
      basis: "one pass of \(Figure.text(seconds)) s")
  }

  /// Milliseconds each; `ask` answers whether it got what it asked for.
  private func times(_ ask: () throws(NodeError) -> Bool) throws(Failure) -> Samples {
    var milliseconds: [Double] = []
    for _ in 0..<run.sizes.finds {
      let start = ContinuousClock.now
      guard try local(ask) else { throw Failure(.failed, "a question was not answered as it should be") }
      milliseconds.append((ContinuousClock.now - start).asMilliseconds)
    }
    return Samples(milliseconds)
  }
}
