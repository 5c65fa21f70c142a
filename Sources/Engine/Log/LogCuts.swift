import Replication

/// Chains that end, for whoever reads the log in order of arrival, before a run that does not read.
struct LogCuts {
  /// How far each reads.
  private var ends: [ReplicaID: UInt64] = [:]

  func isCut(_ replica: ReplicaID) -> Bool { ends[replica] != nil }

  mutating func cut(_ replica: ReplicaID, above end: UInt64) { ends[replica] = min(ends[replica] ?? end, end) }

  /// Whether the run goes out. One that follows on, or has seen, what does not is the end of its own chain.
  mutating func admits(_ run: LogRun, of replica: ReplicaID) -> Bool {
    guard !ends.isEmpty else { return true }
    let isWhole = ends.allSatisfy { $0.key == replica || run.context.sequence(of: $0.key) <= $0.value }
    guard isWhole, ends[replica].map({ run.last <= $0 }) ?? true else {
      ends[replica] = min(ends[replica] ?? run.first - 1, run.first - 1)
      return false
    }
    return true
  }
}
