/// What keeps a run from being judged for good.
enum Lacked: Hashable, Sendable {
  /// So much of a chain is not here.
  case dot(Dot)
  /// The change that the run follows, on a branch of its own chain that is not here.
  case change(of: ReplicaID)

  var replica: ReplicaID {
    switch self {
    case .dot(let dot): dot.replica
    case .change(let replica): replica
    }
  }
}

/// Runs of one partition that came ahead of what they stand on.
///
/// Each is found by the chain of which it lacks something: what comes in costs nothing for what waits for another chain, and
/// a run is judged again once nothing that memory tells of keeps it from being taken.
struct RunsAhead: Sendable {
  private struct Entry: Sendable {
    /// Arrivals are numbered: what is released together is judged in the order in which it came.
    let number: UInt64
    var lacked: Lacked
    let run: DeliveredRun
    let parked: ParkedRuns
  }

  private var waiting: [ReplicaID: [Entry]] = [:]
  /// Those that wait for nothing any more, to be judged in this order.
  private var released: ArraySlice<ParkedRuns> = []
  private var next: UInt64 = 0
  private(set) var count = 0

  /// What is beyond is shown again.
  static let limit = 1_024

  var isEmpty: Bool { count == 0 }
  var all: [ParkedRuns] { waiting.values.flatMap { $0.map(\.parked) } + released }

  /// How far chains came ahead.
  var reached: [ReplicaID: UInt64] {
    waiting.values.joined().reduce(into: [:]) { reached, entry in
      reached[entry.run.incoming.replica] = max(reached[entry.run.incoming.replica] ?? 0, entry.run.last)
    }
  }

  /// Answers whether there is room for it.
  mutating func add(_ run: DeliveredRun, of session: SessionID, lacking lacked: Lacked) -> Bool {
    guard count < RunsAhead.limit else { return false }
    let parked = ParkedRuns(session: session, runs: [.resolved(run)], stream: nil)
    put(Entry(number: next, lacked: lacked, run: run, parked: parked))
    (next, count) = (next + 1, count + 1)
    return true
  }

  private mutating func put(_ entry: Entry) { waiting[entry.lacked.replica, default: []].append(entry) }

  /// Something of these chains came: what waited for it alone is judged next.
  mutating func release(behind chains: Set<ReplicaID>, _ log: PartitionLog) {
    var ready: [Entry] = []
    for var entry in chains.flatMap({ waiting.removeValue(forKey: $0) ?? [] }) {
      guard let lacked = entry.lacked.rest(of: entry.run, log) else {
        ready.append(entry)
        continue
      }
      entry.lacked = lacked
      put(entry)
    }
    free(ready)
  }

  /// What they wait for may have changed altogether.
  mutating func releaseAll() {
    defer { waiting = [:] }
    free(waiting.values.flatMap { $0 })
  }

  private mutating func free(_ entries: [Entry]) {
    released += entries.sorted { $0.number < $1.number }.map(\.parked)
  }

  mutating func takeReleased() -> ParkedRuns? {
    guard let run = released.popFirst() else { return nil }
    count -= 1
    return run
  }

  /// What led to it is not to be expected any more; another session shows it again.
  mutating func drop(of session: SessionID) {
    for (chain, entries) in waiting {
      let kept = entries.filter { $0.parked.session != session }
      waiting[chain] = kept.isEmpty ? nil : kept
    }
    released.removeAll { $0.session == session }
    count = waiting.values.reduce(released.count) { $0 + $1.count }
  }
}

extension Lacked {
  /// What the run lacks now; nil where it is to be judged. So is what goes on from another branch than the one that came: it
  /// shows a fork.
  fileprivate func rest(of run: DeliveredRun, _ log: PartitionLog) -> Lacked? {
    if case .dot(let dot) = self, !log.holds(dot) { return self }
    let lacked = log.lacked(by: run)
    if case .change = lacked, lacked != self { return nil }
    return lacked
  }
}

extension PartitionLog {
  /// Nil where all is here.
  func lacked(by run: DeliveredRun) -> Lacked? {
    let incoming = run.incoming
    let followsHere = holds(before: incoming.first, incoming.hashBefore, of: incoming.replica)
    if !followsHere, received.sequence(of: incoming.replica) < incoming.first - 1 {
      return .dot(Dot(replica: incoming.replica, sequence: incoming.first - 1))
    }
    return firstLacked(of: run.context).map { .dot($0) } ?? (followsHere ? nil : .change(of: incoming.replica))
  }
}
