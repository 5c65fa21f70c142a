import Replication

extension PostgreSQLBackend {
  package func documentStart(of process: String) throws(BackendProblem) -> DocumentStart {
    var start = DocumentStart()
    (start.position, start.step, start.ledger) = try documentsKept(of: process)
    let letters = try deadLetters(most: deadLetterTurn.asked)
    let turn = deadLetterTurn.take(letters)
    start.hasAllDeadLetters = turn.isAll
    start.deadLetters = letters.filter(PostgreSQLBackend.isNamed)
    start.dueDeadLetters = turn.due.filter(PostgreSQLBackend.isNamed)
    return start
  }

  package func documentNews(of process: String) throws(BackendProblem) -> DocumentNews {
    var news = DocumentNews()
    (news.position, news.step, news.ledger) = try documentsKept(of: process)
    let rows = try connected().query(
      "SELECT partition, collection, id FROM seamesh.unsure_documents($1, $2, $3, $4, $5)",
      [
        // Of no relay's: what this one wrote before it knew all is among them.
        .bytes([]), .bytes(unsureThrough?.partition.digest.bytes ?? []),
        .text(unsureThrough.map { PostgreSQLBackend.told($0.key.collection) } ?? ""),
        .bytes(unsureThrough?.key.id ?? []), .integer(Int32(clamping: DocumentNews.limit)),
      ]
    ).rows
    let found: [DocumentPlace] = rows.compactMap { row in
      guard row.count == 3, let partition = row[0].flatMap({ Digest($0) }), let id = row[2] else { return nil }
      return DocumentPlace(
        partition: PartitionID(partition), key: DocumentKey(collection: Text(PostgreSQLRows.text(row[1])), id: id))
    }
    unsureThrough = rows.count < DocumentNews.limit ? nil : found.last
    news.unsure = found.filter { !$0.key.collection.string.contains(PostgreSQLBackend.nullSign) }
    return news
  }

  private func documentsKept(
    of process: String
  ) throws(BackendProblem) -> (position: String, step: UInt64, ledger: LedgerSums) {
    var ledger = LedgerSums()
    let row = try connected().query(
      """
      SELECT seamesh.document_position($1), seamesh.document_step($1, $2), s.statements, s.batches
      FROM (SELECT seamesh.hold_relay($1, $2) AS held OFFSET 0) h, seamesh.ledger_state() s WHERE h.held
      """,
      [.bytes(relay.digest.bytes), .text(process)]
    ).rows.first
    guard let row, row.count == 4 else { return ("", 0, ledger) }
    ledger.statements = PostgreSQLRows.integer(row[2]) ?? 0
    ledger.batches = UInt64(clamping: PostgreSQLRows.integer(row[3]) ?? 0)
    return (PostgreSQLRows.text(row[0]), UInt64(clamping: PostgreSQLRows.integer(row[1]) ?? 0), ledger)
  }

  /// Of a collection that cannot be named there the name is not known any more; its documents stay dead letters.
  private static func isNamed(_ letter: DeadLetter) -> Bool {
    !letter.place.key.collection.string.contains(nullSign)
  }

  package func deadLetters(most: Int = DeadLetterTurn.limit) throws(BackendProblem) -> [DeadLetter] {
    let rows = try connected().query(
      "SELECT partition, collection, id, refusal, name FROM seamesh.dead_letters($1)", [.integer(Int32(clamping: most))]
    ).rows
    return rows.compactMap { row in
      guard row.count == 5, let partition = row[0].flatMap({ Digest($0) }), let id = row[2] else { return nil }
      let key = DocumentKey(collection: Text(PostgreSQLRows.text(row[1])), id: id)
      return DeadLetter(
        place: DocumentPlace(partition: PartitionID(partition), key: key),
        partition: row[4].map { String(decoding: $0, as: UTF8.self) }, reason: PostgreSQLRows.text(row[3]))
    }
  }

  /// Names of the views that there are then, with their collections.
  package func makeViews() throws(BackendProblem) -> [(view: String, collection: String)] {
    try connected().query("SELECT view_name, of_collection FROM seamesh.make_views()").rows.map { row in
      (PostgreSQLRows.text(row.first.flatMap { $0 }), PostgreSQLRows.text(row.last.flatMap { $0 }))
    }
  }

  /// Stands for U+0000 where a name must be told: PostgreSQL has no text with that.
  private static let nullSign: Character = "\u{2400}"

  private static func told(_ text: Text) -> String {
    text.utf8.contains(0) ? text.string.replacing("\0", with: String(nullSign)) : text.string
  }

  /// Where its documents go on from, and what is kept of it: as `seamesh.write_documents` takes it apart.
  private static func position(of batch: LedgerBatch) -> String {
    let hasPosition = !batch.documentPosition.isEmpty
    let position = hasPosition ? "\(batch.documentPosition)<\(batch.documentPositionBefore)" : "<"
    guard let step = batch.step else { return hasPosition ? position : "" }
    return "\(position)<\(step.writer)<\(step.number)<\(step.before)"
  }

  /// In the order in which `seamesh.write_documents` takes them; of its partitions and heads `seamesh.write_marks` knows too.
  static func documentRows(of batch: LedgerBatch) -> [PostgreSQLParameter] {
    let (documents, ranges) = (batch.documents, batch.ranges)
    let partitions = Set(batch.heads.map(\.chain.partition)).union(batch.documentPartitions).sorted()
    let numbers = Dictionary(zip(partitions, 1...)) { first, _ in first }
    func number(_ partition: PartitionID) -> Int32 { Int32(clamping: numbers[partition] ?? 0) }
    let collections = documents.map { told($0.place.key.collection) }
    let heads = batch.heads
    return [
      .long(batch.knownStatements), .text(position(of: batch)),
      .digests(partitions.map(\.digest)), .texts(partitions.map { batch.partitions[$0].map { told($0.text) } ?? "" }),
      .integers(documents.map { number($0.place.partition) }), .texts(collections),
      .byteArrays(documents.map(\.place.key.id)), .texts(documents.map { $0.id ?? "" }),
      .integers(documents.map { $0.isAlive ? 1 : 0 }), .longs(documents.map { Int64(clamping: $0.generation) }),
      .texts(documents.map { $0.body ?? "" }), .byteArrays(documents.map(\.state)),
      .texts(documents.map { $0.refusal ?? "" }),
      .integers(ranges.map { number($0.partition) }), .texts(ranges.map { $0.after.map { told($0.collection) } ?? "" }),
      .byteArrays(ranges.map { $0.after?.id ?? [] }),
      .texts(ranges.map { $0.through.map { told($0.collection) } ?? "" }),
      .byteArrays(ranges.map { $0.through?.id ?? [] }),
      .integers(heads.map { number($0.chain.partition) }), .replicas(heads.map(\.chain.replica)),
      .longs(heads.map { Int64(clamping: $0.highest) }), .integers(heads.map { $0.isForked ? 1 : 0 }),
    ]
  }
}

extension PostgreSQLBackend {
  /// In the order in which `seamesh.note_conflicts` takes them.
  static func conflictRows(of batch: LedgerBatch) -> [PostgreSQLParameter] {
    let documents = batch.documents.filter { $0.conflicts != nil }
    return [
      .digests(documents.map(\.place.partition.digest)), .texts(documents.map { told($0.place.key.collection) }),
      .byteArrays(documents.map(\.place.key.id)), .byteArrays(documents.map(\.state)),
      .texts(documents.map { $0.conflicts ?? "[]" }),
    ]
  }
}

extension AppendOutcome {
  /// Numbers from 1 on, with commas between.
  fileprivate static func indices(_ bytes: [UInt8]?) -> [Int] {
    PostgreSQLRows.text(bytes).split(separator: ",").compactMap { Int($0) }.map { $0 - 1 }
  }

  init(_ answer: PostgreSQLRows) {
    self.init()
    guard let row = answer.rows.first, row.count == 3 else { return }
    staleMarks = AppendOutcome.indices(row[0])
    (staleDocuments, staleRanges) = (AppendOutcome.indices(row[1]), AppendOutcome.indices(row[2]))
  }
}
