import Replication
import Storage

/// How far a forwarder has looked at its log.
enum SeenLog: Sendable {
  /// It was held against the ledger when it was so large. `runsAfter`: by order of arrival; nil where partitions go one after the other.
  case whole(LogAmount, runsAfter: Int64?)
  /// All up to there was in the ledger before this start.
  case remembered(LogPosition)

  /// What came since, how large the log is with that, and when the first of it came, in milliseconds since 1970.
  struct Since {
    let amount: LogAmount
    let changes: Int64
    let oldestArrived: Int64?
  }

  /// Nil where it is not known.
  func since(_ store: StoreReader) throws -> Since? {
    let totals = try store.totals()
    func since(_ amount: LogAmount, after arrival: Int64?) throws -> Since {
      let oldest = amount.changes > 0 ? try arrival.flatMap { try store.firstArrived(after: $0) } : nil
      return Since(amount: amount, changes: totals.changes, oldestArrived: oldest)
    }
    switch self {
    case .whole(let held, let arrival):
      return try since(LogAmount(changes: totals.changes, bytes: totals.logBytes).exceeding(held), after: arrival)
    case .remembered(let place):
      guard place.belongs(to: try store.logEnd()) else { return nil }
      let (changes, bytes) = try store.amount(cameAfter: place.arrival)
      return try since(LogAmount(changes: changes, bytes: bytes), after: place.arrival)
    }
  }
}
