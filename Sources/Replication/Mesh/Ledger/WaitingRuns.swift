/// Runs of one partition that cannot be judged yet.
struct WaitingRuns: Sendable {
  /// They wait for headers from the disk; the shell answers at once, so at most a message or two.
  private var parked: [ParkedRuns] = []
  private(set) var awaitedHeaders = 0
  /// Runs that show a fork and came ahead of what they had seen.
  private(set) var postponed: [ParkedRuns] = []
  /// Statements that were learnt are adopted once the headers are here.
  private(set) var awaitsAuthority = false

  /// Of those that came ahead: what is beyond is shown again.
  static let postponedLimit = 1_024

  var isEmpty: Bool { postponed.isEmpty && parked.isEmpty }
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

  mutating func noteHeaders() { awaitedHeaders = max(0, awaitedHeaders - 1) }

  /// Asked again, the disk would answer the same: what waits for it is given up.
  mutating func giveUp() { (parked, awaitsAuthority) = ([], false) }

  var isAuthorityDue: Bool { awaitsAuthority && !awaitsHeaders }

  mutating func beginAuthority() { awaitsAuthority = false }

  /// What is judged next. It may ask for headers again: then the rest waits behind it.
  mutating func next() -> ParkedRuns? { awaitsHeaders || parked.isEmpty ? nil : parked.removeFirst() }

  // MARK: What came ahead

  /// Answers whether there is room for it.
  mutating func postpone(_ run: ParkedRuns) -> Bool {
    guard postponed.count < WaitingRuns.postponedLimit else { return false }
    postponed.append(run)
    return true
  }

  mutating func takePostponed() -> [ParkedRuns] {
    defer { postponed = [] }
    return postponed
  }

  /// What led to it is not to be expected any more; another session shows it again.
  mutating func dropPostponed(of session: SessionID) { postponed.removeAll { $0.session == session } }
}

extension Ledger {
  /// Kept only when its context and what it follows are here: whatever counts was delivered causally.
  func isCausal(_ run: DeliveredRun, _ partition: PartitionID) -> Bool {
    guard let log = partitions[partition]?.log else { return false }
    let incoming = run.incoming
    return log.holds(run.context) && log.holds(before: incoming.first, incoming.hashBefore, of: incoming.replica)
  }

  func postpones(_ partition: PartitionID) -> Bool { partitions[partition]?.waiting.postponed.isEmpty == false }

  mutating func dropPostponed(of id: SessionID) {
    for partition in partitions.filter({ !$0.value.waiting.postponed.isEmpty }).map(\.key) {
      partitions[partition]?.waiting.dropPostponed(of: id)
      dropNothing(partition)
    }
  }
}
