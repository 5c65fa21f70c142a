/// Runs of one partition that cannot be judged yet.
struct WaitingRuns: Sendable {
  /// They wait for headers from the disk; the shell answers at once, so at most a message or two.
  private var parked: [ParkedRuns] = []
  private(set) var awaitedHeaders = 0
  var ahead = RunsAhead()
  /// Chains that were taken apart to judge what waits.
  private var unfolded: Set<ReplicaID> = []
  /// Statements that were learnt are adopted once the headers are here.
  private(set) var awaitsAuthority = false

  var isEmpty: Bool { ahead.isEmpty && parked.isEmpty }
  var parkedCount: Int { parked.count }
  var awaitsHeaders: Bool { awaitedHeaders > 0 }

  // MARK: Headers

  /// Everything later of the partition waits behind what cannot be judged until headers are here.
  mutating func append(_ batch: ParkedRuns) { parked.append(batch) }

  mutating func putBack(_ batch: ParkedRuns, until headers: Int) {
    parked.insert(batch, at: 0)
    awaitedHeaders += headers
  }

  mutating func awaitAuthority(_ headers: Int) {
    awaitsAuthority = true
    awaitedHeaders += headers
  }

  mutating func noteHeaders(of replica: ReplicaID) {
    awaitedHeaders = max(0, awaitedHeaders - 1)
    unfolded.insert(replica)
  }

  /// Once nothing waits for headers any more.
  mutating func takeUnfolded() -> Set<ReplicaID> {
    guard !awaitsHeaders else { return [] }
    defer { unfolded = [] }
    return unfolded
  }

  var unfoldedCount: Int { unfolded.count }

  var isAuthorityDue: Bool { awaitsAuthority && !awaitsHeaders }

  mutating func beginAuthority() { awaitsAuthority = false }

  /// What is judged next. It may ask for headers again: then the rest waits behind it.
  mutating func next() -> ParkedRuns? { awaitsHeaders || parked.isEmpty ? nil : parked.removeFirst() }
}

extension Ledger {
  /// Kept only when its context and what it follows are here: whatever counts was delivered causally.
  func isCausal(_ run: DeliveredRun, _ partition: PartitionID) -> Bool {
    guard let log = partitions[partition]?.log else { return false }
    let incoming = run.incoming
    return log.holds(run.context) && log.holds(before: incoming.first, incoming.hashBefore, of: incoming.replica)
  }

  func postpones(_ partition: PartitionID) -> Bool { partitions.look(at: partition, \.waiting.ahead.isEmpty) == false }

  mutating func dropPostponed(of id: SessionID) {
    for partition in partitions.filter({ !$0.value.waiting.ahead.isEmpty }).map(\.key) {
      partitions[partition]?.waiting.ahead.drop(of: id)
      dropNothing(partition)
    }
  }
}
