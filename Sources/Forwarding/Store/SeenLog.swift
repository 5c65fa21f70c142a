import Storage

/// How far a forwarder has looked at its log.
struct SeenLog: Sendable {
  let held: LogAmount
  /// By order of arrival; nil where partitions go one after the other.
  let runsAfter: Int64?

  /// What came since, and when the first of it came, in milliseconds since 1970.
  func since(_ store: StoreReader) throws -> (amount: LogAmount, oldestArrived: Int64?) {
    let totals = try store.totals()
    let amount = LogAmount(changes: totals.changes, bytes: totals.logBytes).exceeding(held)
    guard amount.changes > 0, let runsAfter else { return (amount, nil) }
    let first = try store.runs(cameAfter: runsAfter, within: ArrivalLimits(bytes: 1, changes: 1)) { _, _, _, _ in true }
    return (amount, first.runs.first?.arrived)
  }
}
