import Replication
import Storage

/// How much of its log a forwarder has held against the ledger. What came since may be waiting.
struct SeenLog: Equatable, Sendable {
  let amount: LogAmount
  /// The runs up to there are in it, by order of arrival; nil where partitions go one after the other.
  let runsAfter: Int64?

  init(_ amount: LogAmount, runsAfter: Int64?) { (self.amount, self.runsAfter) = (amount, runsAfter) }

  /// What was in the ledger before this start, by the place that was written down. Looks at each run behind it. Nil where the
  /// place is not one of this log.
  init?(remembered place: LogPosition, _ store: StoreReader) throws {
    guard place.belongs(to: try store.logEnd()) else { return nil }
    let (totals, since) = try (store.totals(), store.amount(cameAfter: place.arrival))
    let held = LogAmount(changes: totals.changes, bytes: totals.logBytes)
    self.init(held.exceeding(LogAmount(changes: since.changes, bytes: since.bytes)), runsAfter: place.arrival)
  }
}
