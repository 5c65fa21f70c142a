import Links
import Replication
import Synchronization

/// A ledger in PostgreSQL. Everything goes through functions of the schema `seamesh`, each call a transaction of its own:
/// nothing is locked while the network is waited for, a pooler may give each call another server process, and a role needs no
/// right on any table.
///
/// `@unchecked Sendable`: all that changes (`connection`, `ledger`, `deadLetterTurn`, `unsureThrough`) belongs to the one
/// thread that uses the port; ``interrupt()`` touches the pipe alone.
package final class PostgreSQLBackend: Backend, @unchecked Sendable {
  private let address: PostgreSQLAddress
  private let environment: [String: String]
  private let password: PasswordSource
  let fleet: FleetID
  let relay: DeviceID
  private let stop: StopPipe
  private let meter: (any SocketMeter)?
  private var connection: PostgreSQLConnection?
  /// As the ledger says itself.
  private var ledger: [UInt8] = []
  var deadLetterTurn = DeadLetterTurn()
  /// Of documents that are unsure, those up to there were told last; nil: all were, or none yet.
  var unsureThrough: DocumentPlace?

  /// - Parameters:
  ///   - meter: keeps account of what its connections cost; nil where the link is free.
  ///   - password: asked before each connection.
  package init(
    _ address: PostgreSQLAddress, fleet: FleetID, relay: DeviceID, environment: [String: String],
    meter: (any SocketMeter)? = nil, password: @escaping PasswordSource = { () throws(BackendProblem) in nil }
  ) throws(BackendProblem) {
    (self.address, self.fleet, self.relay, self.environment, self.meter) = (address, fleet, relay, environment, meter)
    self.password = password
    stop = try StopPipe()
  }

  package var name: String { address.shown }

  package var ledgerID: String {
    ledger.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }

  /// The way that its packets take; nil where that is not known, or nothing leaves this machine. On the thread that uses it.
  package var linkPath: LinkPath? { meter?.path }

  package func connect() throws(BackendProblem) { try connect(toRead: false) }

  /// - Parameter toRead: a server that takes no changes will do.
  package func connect(toRead: Bool) throws(BackendProblem) {
    disconnect()
    let connection = try PostgreSQLConnection(
      address.withPassword(try password()), environment: environment, stop: stop, meter: meter)
    let description = try describe(connection)
    guard description.fleet == fleet.digest.bytes else { throw problem(LedgerState.otherFleet) }
    guard description.lackingRights.isEmpty else {
      throw problem("42501", "it may not execute \(description.lackingRights)")
    }
    guard toRead || !description.isReadOnly else { throw problem(LedgerState.readOnly) }
    (self.connection, ledger) = (connection, description.ledger)
  }

  package func disconnect() { connection = nil }

  package func interrupt() { stop.pull() }

  private struct Description {
    let fleet: [UInt8]
    let ledger: [UInt8]
    let lackingRights: String
    /// It follows another server, or somebody set it so.
    let isReadOnly: Bool
  }

  private func describe(_ connection: PostgreSQLConnection) throws(BackendProblem) -> Description {
    let row: [[UInt8]?]?
    do throws(BackendProblem) {
      row = try connection.query(
        "SELECT format, fleet, ledger, lacking, current_setting('transaction_read_only') FROM seamesh.describe()"
      ).rows.first
    } catch {
      guard error.kind == .schema, !error.isLackOfRight else { throw error }
      throw BackendProblem(
        .schema, "there is no ledger in \(address.shown) yet",
        remedy: "As who may make tables there: seamesh forward --set-up.")
    }
    guard let row, row.count == 5, let format = PostgreSQLRows.integer(row[0]), let fleet = row[1], let ledger = row[2]
    else {
      throw BackendProblem(.schema, "the ledger in \(address.shown) is not whole", remedy: "seamesh forward --set-up")
    }
    let known = Int64(PostgreSQLSchema.format)
    guard format <= known else {
      throw BackendProblem(
        .schema,
        "the tables in \(address.shown) were made by a newer seamesh (format \(format); this one knows up to \(known))",
        remedy: "Use that version here, too.")
    }
    guard format == known else {
      throw BackendProblem(
        .schema, "the tables in \(address.shown) have format \(format), and this seamesh needs format \(known)",
        remedy: "As their owner: seamesh forward --set-up.")
    }
    return Description(
      fleet: fleet, ledger: ledger, lackingRights: String(decoding: row[3] ?? [], as: UTF8.self),
      isReadOnly: row[4].map { $0 == Array("on".utf8) } ?? false)
  }

  private func problem(_ state: String, _ words: String = "") -> BackendProblem {
    PostgreSQLProblems.answered(state, words, address)
  }

  func connected() throws(BackendProblem) -> PostgreSQLConnection {
    guard let connection else { throw BackendProblem(.refused, "\(address.shown) is not connected") }
    return connection
  }

  // MARK: Reading

  package func statementIDs() throws(BackendProblem) -> Set<Digest> {
    let rows = try connected().query("SELECT seamesh.statement_ids($1)", [.bytes(fleet.digest.bytes)]).rows
    return Set(rows.compactMap { $0.first.flatMap { $0 }.flatMap { Digest($0) } })
  }

  package func statementHeads(of ids: [Digest]) throws(BackendProblem) -> [(id: Digest, head: [UInt8])] {
    let rows = try connected().query(
      "SELECT id, head FROM seamesh.statement_heads($1, $2)", [.bytes(fleet.digest.bytes), .digests(ids)]
    ).rows
    return rows.compactMap { row in
      guard row.count == 2, let id = row[0].flatMap({ Digest($0) }), let head = row[1] else { return nil }
      return (id, head)
    }
  }

  package func answers(to questions: [ChainQuestion]) throws(BackendProblem) -> [ChainAnswer] {
    let rows = try connected().query(
      "SELECT number, has_change, highest, hashes, mark, tip FROM seamesh.positions($1, $2, $3, $4) ORDER BY number",
      [
        .digests(questions.map(\.chain.partition.digest)), .replicas(questions.map(\.chain.replica)),
        .longs(questions.map { Int64(clamping: $0.sequence) }), .digests(questions.map(\.hash)),
      ]
    ).rows
    return rows.map { row in
      guard row.count == 6 else { return ChainAnswer() }
      var answer = ChainAnswer()
      answer.hasChange = row[1] == [1]
      answer.highest = UInt64(clamping: PostgreSQLRows.integer(row[2]) ?? 0)
      let hashes = row[3] ?? []
      answer.hashes = stride(from: 0, to: hashes.count, by: Digest.byteCount).compactMap {
        Digest(hashes[$0..<min($0 + Digest.byteCount, hashes.count)])
      }
      if let sequence = PostgreSQLRows.integer(row[4]), let tip = row[5].flatMap({ TipHash($0) }) {
        answer.mark = ChainPosition(sequence: UInt64(clamping: sequence), tip: tip)
      }
      return answer
    }
  }

  // MARK: Writing

  package func append(_ batch: LedgerBatch) throws(BackendProblem) -> AppendOutcome {
    let answer = try connected().query(
      PostgreSQLSchema.appendCall,
      [.bytes(fleet.digest.bytes), .bytes(ledger), .bytes(relay.digest.bytes)] + PostgreSQLBackend.rows(of: batch)
        + PostgreSQLBackend.documentRows(of: batch) + PostgreSQLBackend.editRows(of: batch)
        + PostgreSQLBackend.conflictRows(of: batch))
    return AppendOutcome(answer)
  }

  /// Partitions by their numbers in the batch, and changes by those of their runs: ids are long.
  private static func rows(of batch: LedgerBatch) -> [PostgreSQLParameter] {
    var numbers: [PartitionID: Int32] = [:]
    var partitions: [PartitionID] = []
    func number(_ partition: PartitionID) -> Int32 {
      if let known = numbers[partition] { return known }
      partitions.append(partition)
      numbers[partition] = Int32(clamping: partitions.count)
      return Int32(clamping: partitions.count)
    }
    let payloads = batch.payloads.map { number($0.partition) }
    let runs = batch.runs.map { number($0.chain.partition) }
    let marks = batch.marks.map { number($0.chain.partition) }
    // Also those of documents alone: all are made here, in their order, before anything is locked.
    for partition in batch.documentPartitions { _ = number(partition) }
    let changes = batch.runs.enumerated().flatMap { index, run in
      run.changes.enumerated().map { (run: Int32(clamping: index + 1), sequence: run.first + UInt64($0), change: $1) }
    }
    return [
      .digests(partitions.map(\.digest)), .texts(partitions.map { batch.partitions[$0]?.text.string ?? "" }),
      .digests(batch.statements.map(\.id)), .byteArrays(batch.statements.map(\.encoded)),
      .integers(payloads), .digests(batch.payloads.map(\.hash)), .byteArrays(batch.payloads.map(\.bytes)),
      .integers(runs), .replicas(batch.runs.map(\.chain.replica)), .longs(batch.runs.map { Int64(clamping: $0.first) }),
      .longs(batch.runs.map { Int64(clamping: $0.last) }), .digests(batch.runs.map(\.hashBefore)),
      .digests(batch.runs.map(\.hash)), .byteArrays(batch.runs.map(\.context)), .byteArrays(batch.runs.map(\.body)),
      .integers(changes.map(\.run)), .longs(changes.map { Int64(clamping: $0.sequence) }),
      .digests(changes.map(\.change.hash)),
      .longs(changes.map { Int64(clamping: $0.change.timestamp.milliseconds) }),
      .integers(changes.map { Int32($0.change.timestamp.counter) }), .longs(changes.map(\.change.wallMilliseconds)),
      .integers(changes.map { Int32(clamping: $0.change.payloadByteCount) }),
      .integers(marks), .replicas(batch.marks.map(\.chain.replica)),
      .longs(batch.marks.map { Int64(clamping: $0.position.sequence) }),
      .byteArrays(batch.marks.map(\.position.tip.bytes)),
    ]
  }
}
