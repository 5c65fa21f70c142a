import Forwarding
import Replication

/// What the office wants changed, and what became of it.
struct ModelOffice {
  struct Row {
    let edit: OfficeEdit
    var relay: DeviceID?
    var claimedAt: UInt64?
    var isSettled = false
    var refusal: String?
    var waitsFor: String?
  }

  /// In the order in which it was said.
  private(set) var rows: [Row] = []
  /// Edits that changes of the ledger name as their cause.
  private(set) var changed: Set<UUIDValue> = []

  /// A relay that was silent for so long has lost its claim.
  static let claimMilliseconds: UInt64 = 600_000

  mutating func add(_ edit: OfficeEdit) { rows.append(Row(edit: edit)) }

  mutating func note(_ batch: LedgerBatch) {
    let causes = Set(batch.runs.flatMap { $0.changes.compactMap(\.edit) })
    guard !causes.isEmpty else { return }
    changed.formUnion(causes)
    for index in rows.indices where causes.contains(rows[index].edit.id) { rows[index].isSettled = true }
  }

  mutating func claim(most: Int, by relay: DeviceID, at now: UInt64) -> [OfficeEdit] {
    func isFree(_ row: Row) -> Bool {
      guard !row.isSettled, !changed.contains(row.edit.id) else { return false }
      guard let holder = row.relay, let claimedAt = row.claimedAt else { return true }
      return holder == relay || now > claimedAt + ModelOffice.claimMilliseconds
    }
    // What nobody has had comes first; of the rest what has waited longest.
    let due = rows.indices.filter { isFree(rows[$0]) }.sorted { a, b in
      switch (rows[a].claimedAt, rows[b].claimedAt) {
      case (nil, nil): a < b
      case (nil, _): true
      case (_, nil): false
      case (let first?, let second?): (first, a) < (second, b)
      }
    }
    let taken = due.prefix(most).sorted()
    for index in taken { (rows[index].relay, rows[index].claimedAt, rows[index].waitsFor) = (relay, now, nil) }
    return taken.map { rows[$0].edit }
  }

  /// Those of these that are still that relay's to do.
  func standing(_ edits: [UUIDValue], of relay: DeviceID) -> Set<UUIDValue> {
    let asked = Set(edits)
    return Set(
      rows.lazy.filter {
        asked.contains($0.edit.id) && $0.relay == relay && !$0.isSettled && !changed.contains($0.edit.id)
      }.map(\.edit.id))
  }

  /// Nobody has a claim any more.
  mutating func releaseAll() { for index in rows.indices { rows[index].relay = nil } }

  mutating func settle(_ outcomes: [(edit: UUIDValue, outcome: EditOutcome)], by relay: DeviceID) {
    for (edit, outcome) in outcomes {
      guard let index = rows.firstIndex(where: { $0.edit.id == edit && $0.relay == relay && !$0.isSettled }) else {
        continue
      }
      switch outcome {
      case .written, .unchanged: rows[index].isSettled = true
      case .refused(let reason): (rows[index].isSettled, rows[index].refusal) = (true, reason)
      case .left(let reason): (rows[index].relay, rows[index].waitsFor) = (nil, reason)
      }
    }
  }
}
