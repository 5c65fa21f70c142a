import Kernel
import Dispatch
import Glibc
import Replication
import SampleData
import Synchronization

/// How long somebody who uses a node waits for it while two peers hand over all that they hold.
struct LoadBench {
  let run: BenchRun

  private static let partitions = ["load-a", "load-b"]
  /// What the bar allows of the disk's own p99, and beside it: a small batch of a peer's changes goes first.
  private static let syncFactor = 20.0
  private static let slackMilliseconds = 30.0
  private static let statusMilliseconds = 50.0
  /// Between two questions, so that asking is no load of its own.
  private static let pauseMicroseconds: UInt32 = 5_000

  func measure() throws(Failure) {
    let fleet = try BenchFleet(run, name: "load")
    defer { fleet.stop() }
    for partition in LoadBench.partitions {
      try fleet.fill(try partitionName(partition), .random, count: run.sizes.documents)
    }
    let second = try fleet.receiver()
    defer { second.stop() }
    try second.subscribe(LoadBench.partitions[1])
    try fleet.waitUntil("a second node has a part of it") { () throws(Failure) in
      try second.documentCount() == run.sizes.documents
    }
    let loaded = try fleet.receiver(alsoFrom: second.listen)
    defer { loaded.stop() }
    try fleet.waitUntil("the node is connected to both") { () throws(Failure) in try loaded.connectedCount() == 2 }
    show(try load(loaded))
  }

  private struct Waits: Sendable {
    var writes: [Double] = []
    var statuses: [Double] = []
    var syncs: [Double] = []
    var elapsed = Duration.zero
  }

  /// Milliseconds of each write, each status and each sync of the disk until everything is here.
  private func load(_ node: ChildNode) throws(Failure) -> Waits {
    let start = ContinuousClock.now
    let watch = LoadWatch(until: Int64(LoadBench.partitions.count * run.sizes.documents), run.sizes)
    watch.ask(node.directory)
    watch.probe(run.scratch.path)
    try node.subscribe("load-*")
    var waits = Waits()
    while !watch.isOver {
      let before = ContinuousClock.now
      try node.write(waits.writes.count)
      waits.writes.append((ContinuousClock.now - before).asMilliseconds)
      usleep(LoadBench.pauseMicroseconds)
    }
    waits.elapsed = ContinuousClock.now - start
    (waits.statuses, waits.syncs) = try watch.finish()
    return waits
  }

  private func show(_ waits: Waits) {
    let (writes, statuses, syncs) = (Samples(waits.writes), Samples(waits.statuses), Samples(waits.syncs))
    let basis = "over HTTP, one after another, while two peers hand over \(run.sizes.documents) changes each"
    let bound = LoadBench.syncFactor * syncs.percentile(99) + LoadBench.slackMilliseconds
    run.report.add(
      Figure(
        "load-fsync-p99", "disk's fsync under load, p99", syncs.percentile(99), "ms",
        basis: "4 KiB appended and synced meanwhile; \(syncs.count) times"),
      Figure(
        "load-rate", "changes taken in meanwhile",
        Double(LoadBench.partitions.count * run.sizes.documents) / waits.elapsed.asSeconds, "changes/s",
        basis: "from two peers, with random ids"),
      Figure(
        "load-write-p50", "write under load, p50", writes.median, "ms", basis: "\(basis); \(writes.count) writes"),
      Figure(
        "load-write-p99", "write under load, p99", writes.percentile(99), "ms",
        basis: "the same; at most \(Figure.text(writes.best)); bar: 20 times the fsync p99 of this run, and 30 ms",
        floor: .atMost(bound)),
      Figure(
        "load-status-p99", "status under load, p99", statuses.percentile(99), "ms",
        basis:
          "\(basis); \(statuses.count) times, p50 \(Figure.text(statuses.median)), at most \(Figure.text(statuses.best))",
        floor: .atMost(LoadBench.statusMilliseconds)))
  }
}

/// Asks a node for its status, and the disk for a sync, again and again on threads of their own.
private final class LoadWatch: Sendable {
  private struct State {
    var statuses: [Double] = []
    var syncs: [Double] = []
    var failure: Failure?
    var isOver = false
    var running = 0
  }

  private let state = Mutex(State())
  private let ended = DispatchSemaphore(value: 0)
  private let expected: Int64
  private let patience: Int64

  private static let pauseMicroseconds: UInt32 = 20_000

  /// - Parameter expected: documents with which all is here.
  init(until expected: Int64, _ sizes: BenchSizes) { (self.expected, patience) = (expected, sizes.waitMilliseconds) }

  var isOver: Bool { state.withLock { $0.isOver } }

  func ask(_ directory: String) {
    let deadline = monotonicMilliseconds() + patience
    begin { [self] () throws(Failure) in
      let client = try NodeClient(directory: directory)
      while !isOver {
        let start = ContinuousClock.now
        let documents = try client.ask(.init(target: "/v1/status")).json().number("documents")
        let wait = (ContinuousClock.now - start).asMilliseconds
        state.withLock {
          $0.statuses.append(wait)
          $0.isOver = documents >= expected
        }
        guard monotonicMilliseconds() < deadline else { throw Failure(.failed, "what peers hand over did not come in") }
        usleep(LoadWatch.pauseMicroseconds)
      }
    }
  }

  func probe(_ path: String) {
    begin { [self] () throws(Failure) in
      while !isOver {
        guard let wait = try? SyncProbe.microseconds(directory: path, count: 1).first else {
          throw Failure(.failed, "the disk could not be asked")
        }
        state.withLock { $0.syncs.append(wait / 1_000) }
        usleep(LoadWatch.pauseMicroseconds)
      }
    }
  }

  private func begin(_ body: @escaping @Sendable () throws(Failure) -> Void) {
    state.withLock { $0.running += 1 }
    @Sendable func run() {
      do throws(Failure) { try body() } catch { state.withLock { ($0.failure, $0.isOver) = (error, true) } }
      ended.signal()
    }
    // Half of what is to be measured would be missing: the measurement ends with the error.
    do throws(SystemError) { try DedicatedThread.start("seamesh bench") { run() } } catch {
      state.withLock { ($0.failure, $0.isOver) = (Failure(.failed, "\(error)"), true) }
      ended.signal()
    }
  }

  /// Milliseconds of each answer and of each sync.
  func finish() throws(Failure) -> ([Double], [Double]) {
    for _ in 0..<state.withLock(\.running) { ended.wait() }
    let end = state.withLock { $0 }
    if let failure = end.failure { throw failure }
    return (end.statuses, end.syncs)
  }
}

extension ChildNode {
  fileprivate func connectedCount() throws(Failure) -> Int {
    try client.ask(.init(target: "/v1/peers")).json().list("peers").count { $0.text("state") == "connected" }
  }

  fileprivate func write(_ number: Int) throws(Failure) {
    let target = NodePath.document("bench-live", BenchFleet.collection.string, id: "\"\(number)\"")
    _ = try client.ask(.init(method: "PUT", target: target, body: Array("{\"number\": \(number)}".utf8)))
  }
}
