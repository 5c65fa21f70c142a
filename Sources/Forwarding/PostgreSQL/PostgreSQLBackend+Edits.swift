import Replication

extension PostgreSQLBackend: EditStore {
  package func claimEdits(most: Int, of patterns: [Text]?) throws(BackendProblem) -> [OfficeEdit] {
    let rows = try connected().query(
      """
      SELECT id, partition, collection, document::text, read, body::text, by_user, made_ms
      FROM seamesh.claim_carried_edits($1, $2, $3, \(patterns == nil ? "NULL" : "$4")) ORDER BY number
      """,
      [.bytes(fleet.digest.bytes), .bytes(relay.digest.bytes), .integer(Int32(clamping: most))]
        + (patterns.map { [.texts($0.map(\.string))] } ?? [])
    ).rows
    return rows.compactMap { row in
      guard row.count == 8, let id = row[0].flatMap({ UUIDValue($0) }) else { return nil }
      return OfficeEdit(
        id: id, partition: PostgreSQLRows.text(row[1]), collection: PostgreSQLRows.text(row[2]),
        documentID: PostgreSQLRows.text(row[3]), read: row[4], body: row[5].map { String(decoding: $0, as: UTF8.self) },
        user: PostgreSQLRows.text(row[6]), madeMilliseconds: PostgreSQLRows.integer(row[7]) ?? 0)
    }
  }

  package func confirm(_ edits: [UUIDValue], reaching chains: [ChainReach]) throws(BackendProblem) -> ClaimAnswer {
    let row = try connected().query(
      "SELECT has_chains, standing FROM seamesh.confirm_edits($1, $2, $3, $4, $5, $6)",
      [
        .bytes(fleet.digest.bytes), .bytes(relay.digest.bytes), .byteArrays(edits.map(\.bytes)),
        .digests(chains.map(\.chain.partition.digest)), .replicas(chains.map(\.chain.replica)),
        .longs(chains.map { Int64(clamping: $0.sequence) }),
      ]
    ).rows.first
    guard let row, row.count == 2, let ids = row[1] else {
      throw BackendProblem(.refused, "the backend answered something else than it was asked")
    }
    let standing = stride(from: 0, to: ids.count, by: 16).compactMap { UUIDValue(ids[$0..<min($0 + 16, ids.count)]) }
    return ClaimAnswer(hasChains: row[0] == [1], standing: Set(standing))
  }

  package func settle(_ outcomes: [(edit: UUIDValue, outcome: EditOutcome)]) throws(BackendProblem) {
    var (kinds, reasons): ([String], [String]) = ([], [])
    for item in outcomes {
      switch item.outcome {
      case .written, .unchanged: (kinds, reasons) = (kinds + ["unchanged"], reasons + [""])
      case .refused(let reason): (kinds, reasons) = (kinds + ["refused"], reasons + [reason])
      case .left(let reason): (kinds, reasons) = (kinds + ["left"], reasons + [reason])
      }
    }
    _ = try connected().query(
      "SELECT seamesh.settle_edits($1, $2, $3, $4, $5)",
      [
        .bytes(fleet.digest.bytes), .bytes(relay.digest.bytes), .byteArrays(outcomes.map(\.edit.bytes)), .texts(kinds),
        .texts(reasons.map { $0.replacing("\0", with: "?") }),
      ])
  }

  /// Which changes of the batch came from edits, in the order in which `seamesh.note_edits` takes them.
  static func editRows(of batch: LedgerBatch) -> [PostgreSQLParameter] {
    let rows = batch.runs.flatMap { run in
      run.changes.enumerated().compactMap { index, change in
        change.edit.map { (run: run, sequence: run.first + UInt64(index), hash: change.hash, edit: $0) }
      }
    }
    return [
      .digests(rows.map(\.run.chain.partition.digest)), .replicas(rows.map(\.run.chain.replica)),
      .longs(rows.map { Int64(clamping: $0.sequence) }), .digests(rows.map(\.hash)),
      .byteArrays(rows.map(\.edit.bytes)),
    ]
  }
}
