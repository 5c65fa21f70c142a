import Replication
import Seamesh

/// How long a single write takes until another node's readers see it.
struct LatencyBench {
  let run: BenchRun

  /// p99 may be this much of the disk's own, and this much more: five syncs, and a scheduler that was elsewhere.
  private static let syncFactor = 5.0
  private static let slackMilliseconds = 20.0
  /// The first writes make the partition, open the stream and fill caches.
  private static let warmUpWrites = 20
  /// The disk is asked between the writes, so that both are measured in the same minute.
  private static let writesPerProbe = 50

  func measure() throws(Failure) {
    let fleet = try BenchFleet(run, name: "writer")
    defer { fleet.stop() }
    let receiver = try fleet.receiver()
    defer { receiver.stop() }
    try receiver.subscribe("bench-live")
    let partition = try partitionName("bench-live")
    let progress = ProgressBar("writing and reading", on: run.terminal)
    var (synced, committed, readable) = ([Double](), [Double](), [Double]())
    let total = run.sizes.writes + LatencyBench.warmUpWrites
    for number in 0..<total {
      let (commit, all) = try write(number, partition, fleet, receiver)
      guard number >= LatencyBench.warmUpWrites else { continue }
      committed.append(commit)
      readable.append(all)
      if number % LatencyBench.writesPerProbe == 0 { synced += try probe(LatencyBench.writesPerProbe) }
      progress.update(done: Int64(number), total: Int64(total), unit: "writes")
    }
    progress.finish()
    show(Samples(synced), Samples(committed), Samples(readable))
  }

  private func show(_ syncs: Samples, _ commits: Samples, _ reads: Samples) {
    let disk = "4 KiB appended and synced, between the writes; \(syncs.count) times"
    let basis = "from the call of the write; \(reads.count) single writes, one after another"
    let there = "in another process, over TLS on loopback, asked over HTTP; " + basis
    let bound = LatencyBench.syncFactor * syncs.percentile(99) + LatencyBench.slackMilliseconds
    run.report.add(
      Figure("fsync-p50", "disk's fsync, p50", syncs.median, "ms", basis: disk),
      Figure("fsync-p99", "disk's fsync, p99", syncs.percentile(99), "ms", basis: disk),
      Figure(
        "commit-p50", "write durable here, p50", commits.median, "ms",
        basis: basis + "; bar: twice the fsync p50 of this run", floor: .atMost(2 * syncs.median)),
      Figure("commit-p99", "write durable here, p99", commits.percentile(99), "ms", basis: basis),
      Figure("readable-p50", "write readable there, p50", reads.median, "ms", basis: there),
      Figure(
        "readable-p99", "write readable there, p99", reads.percentile(99), "ms",
        basis: "the same; bar: 5 times the fsync p99 of this run, and 20 ms", floor: .atMost(bound)))
  }

  /// Milliseconds each.
  private func probe(_ count: Int) throws(Failure) -> [Double] {
    try SyncProbe.microseconds(directory: run.scratch.path, count: count).map { $0 / 1_000 }
  }

  /// Milliseconds until it was durable here, and until it was read there.
  private func write(
    _ number: Int, _ partition: PartitionName, _ fleet: BenchFleet, _ receiver: ChildNode
  ) throws(Failure) -> (Double, Double) {
    var body = ValueMap()
    body["number"] = .int(Int64(number))
    let request = DocumentRequest(
      collection: BenchFleet.collection, id: .int(Int64(number)), action: .insert(body: body))
    let target = NodePath.document(
      "bench-live", BenchFleet.collection.string, id: "{\"$numberLong\":\"\(number)\"}")
    let start = ContinuousClock.now
    _ = try local { () throws(NodeError) in try fleet.node.write(partition, [request]) }
    let commit = (ContinuousClock.now - start).asMilliseconds
    let deadline = monotonicMilliseconds() + run.sizes.waitMilliseconds
    while try !receiver.has(target) {
      guard monotonicMilliseconds() < deadline else { throw Failure(.failed, "a write did not arrive") }
    }
    return (commit, (ContinuousClock.now - start).asMilliseconds)
  }
}

extension ChildNode {
  /// Whether there is a document at `target`.
  fileprivate func has(_ target: String) throws(Failure) -> Bool {
    do throws(Failure) {
      _ = try client.ask(.init(target: target))
      return true
    } catch {
      guard error.status == .notFound else { throw error }
      return false
    }
  }
}
