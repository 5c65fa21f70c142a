import Replication
import Seamesh
import Storage

/// How long a single write takes until another node's readers see it.
struct LatencyBench {
  let sizes: BenchSizes
  let scratch: BenchScratch

  /// p99 may be this much of the disk's own, and this much more: five syncs, and a scheduler that was elsewhere.
  private static let syncFactor = 5.0
  private static let slackMilliseconds = 20.0

  func run(into report: inout BenchReport) throws(Failure) {
    let fleet = try BenchFleet(scratch, name: "writer")
    defer { fleet.stop() }
    let receiver = try fleet.receiver()
    defer { receiver.stop() }
    try receiver.subscribe("bench-live")
    let partition = try partitionName("bench-live")
    var (committed, readable) = ([Double](), [Double]())
    let sync = try probe()
    // The first ones open the stream.
    for number in 0..<(sizes.writes + 20) {
      let (commit, all) = try write(number, partition, fleet, receiver)
      guard number >= 20 else { continue }
      committed.append(commit)
      readable.append(all)
    }
    let (commits, reads) = (Samples(committed), Samples(readable))
    let basis = "from the call of the write; \(reads.count) single writes, one after another"
    let bound = LatencyBench.syncFactor * sync.p99Microseconds / 1_000 + LatencyBench.slackMilliseconds
    report.figures += [
      Figure("fsync-p50", "disk's fsync, p50", sync.medianMicroseconds / 1_000, "ms", basis: "4 KiB appended, synced"),
      Figure("fsync-p99", "disk's fsync, p99", sync.p99Microseconds / 1_000, "ms", basis: "the same"),
      Figure("commit-p50", "write durable here, p50", commits.median, "ms", basis: basis),
      Figure("commit-p99", "write durable here, p99", commits.percentile(99), "ms", basis: basis),
      Figure("readable-p50", "write readable there, p50", reads.median, "ms", basis: "asked over HTTP; " + basis),
      Figure(
        "readable-p99", "write readable there, p99", reads.percentile(99), "ms",
        basis: "bar: 5 times the fsync p99 of this run, and 20 ms", floor: .atMost(bound)),
    ]
  }

  private func probe() throws(Failure) -> SyncProbe {
    do throws(StoreError) {
      return try SyncProbe.measure(directory: scratch.path, count: sizes.writes)
    } catch {
      throw Failure(.failed, "\(error)")
    }
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
    let deadline = monotonicMilliseconds() + BenchFleet.waitMilliseconds
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
