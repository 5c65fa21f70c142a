import Storage

/// What relays have brought to a ledger since they said last that documents are all there. Until a relay says it again, documents
/// may lack what came in between; what came before, or from a relay that is level, they have.
struct LedgerLag: Equatable {
  private struct Span: Equatable {
    let after: Int64
    let through: Int64
  }

  private var spans: [Span] = []
  /// Whose they are.
  private(set) var relays: [LedgerTally.RelayBehind] = []

  init() {}

  init(_ tables: any LedgerTables) throws {
    var latest: [RowValue: Int64] = [:]
    let steps = LedgerCursor(tables, .documentSteps)
    while let row = try steps.next() {
      latest[row.values[0]] = max(try row.signed("noted"), latest[row.values[0]] ?? .min)
    }
    var settled: [RowValue: Int64] = [:]
    let positions = LedgerCursor(tables, .documentPositions)
    while let row = try positions.next() { settled[row.values[0]] = try row.signed("noted") }
    for (relay, through) in latest.sorted(by: { $0.key < $1.key }) {
      let after = settled[relay]
      guard through > after ?? .min else { continue }
      spans.append(Span(after: after ?? .min, through: through))
      if case .bytes(let id) = relay { relays.append(LedgerTally.RelayBehind(relay: id, since: after)) }
    }
  }

  /// - Parameter moment: when a row came, in microseconds.
  func covers(_ moment: Int64) -> Bool { spans.contains { $0.after < moment && moment <= $0.through } }

  var isEmpty: Bool { spans.isEmpty }

  /// A statement may move what counts anywhere.
  func coversStatements(_ tables: any LedgerTables) throws -> Bool {
    guard !isEmpty else { return false }
    let statements = LedgerCursor(tables, .statements)
    while let row = try statements.next() {
      if covers(try row.signed("arrived")) { return true }
    }
    return false
  }
}
