import Engine
import Forwarding
import Replication
import Seamesh
import Storage
import Wire

/// Fills a node's directory from a ledger.
struct LedgerRestoring {
  struct Outcome: Equatable {
    var changes: Int64 = 0
    /// Partitions of the ledger that this device may not hold.
    var partitionsOfOthers = 0
    /// Runs without a right: nobody would take them from a peer either.
    var runsWithoutRight = 0
    /// Runs that do not hold, or that acceptance did not take, and why the first does not.
    var runsLeftOut = 0
    var firstReason: String?
  }

  let tables: any LedgerTables
  let filling: LedgerFilling
  private let total: Int64
  private var passed: Int64 = 0
  private(set) var outcome = Outcome()
  private let fleet: FleetID

  init(_ directory: String, from tables: any LedgerTables) throws {
    fleet = try LedgerStatements.fleet(of: tables)
    let statements = try LedgerStatements.holding(tables, fleet, ledgerCryptography(fleet))
    (self.tables, total) = (tables, try tables.count(of: .runs))
    filling = try LedgerFilling(directory, fleet: fleet, statements)
  }

  /// - Parameter progress: runs that were looked at, and how many there are.
  mutating func run(progress: (Int64, Int64) -> Void = { _, _ in }) throws -> Outcome {
    var after: [RowValue]?
    while case let rows = try tables.page(of: .partitions, after: after, rows: LedgerPages.rowLimit), !rows.isEmpty {
      for row in rows { try fill(row, progress) }
      after = rows.last?.key
    }
    try filling.finish()
    outcome.runsLeftOut += filling.notTaken
    outcome.runsWithoutRight = filling.withoutRight
    outcome.changes = filling.changes
    return outcome
  }

  private mutating func fill(_ row: LedgerRow, _ progress: (Int64, Int64) -> Void) throws {
    let name: PartitionName
    do throws(LedgerFinding) { name = try LedgerVerifier.name(row, fleet, ledgerCryptography(fleet).hash) } catch {
      return note("\(error)")
    }
    guard filling.mayHold(name) else {
      outcome.partitionsOfOthers += 1
      return
    }
    let partition = name.id(fleet: fleet, hash: ledgerCryptography(fleet).hash)
    var walk = LedgerWalk(tables, partition)
    var reasons: [String] = []
    let unread = try walk.walk(above: filling.received(of: name)) { run, context in
      passed += 1
      progress(passed, total)
      do {
        try filling.take(run.body, context: context, in: name) { payload in
          guard let bytes = try LedgerVerifier.payload(payload, of: partition, in: tables) else {
            throw InspectionError.payloadMissing
          }
          return bytes
        }
      } catch let error as RunError {
        reasons.append("\(error)")
      } catch let error as InspectionError {
        reasons.append("\(error)")
      }
    }
    try filling.commit()
    for reason in reasons + unread.map(\.description) { note(reason) }
  }

  private mutating func note(_ reason: String) {
    outcome.runsLeftOut += 1
    outcome.firstReason = outcome.firstReason ?? reason
  }
}
