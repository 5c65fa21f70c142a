import Replication
import Storage

/// A ledger at a server, read by a role that may only read: all of it as it stood when this was made, whatever relays bring
/// meanwhile.
package final class PostgreSQLLedgerTables: LedgerTables {
  private let address: PostgreSQLAddress
  private let connection: PostgreSQLConnection
  package let hasDocumentSums: Bool
  package let hasDocumentNotes: Bool

  package init(_ address: PostgreSQLAddress, environment: [String: String]) throws(BackendProblem) {
    self.address = address
    connection = try PostgreSQLConnection(address, environment: environment, stop: StopPipe())
    // One snapshot, and plans that go by the keys.
    try connection.script(
      """
      BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
      SET LOCAL search_path = pg_catalog, pg_temp;
      SET LOCAL enable_seqscan = off;
      SET LOCAL jit = off;
      """)
    let rows: PostgreSQLRows
    do throws(BackendProblem) {
      rows = try connection.query("SELECT max(number) FROM seamesh.migrations")
    } catch {
      throw PostgreSQLLedgerTables.reading(error, address)
    }
    let format = Int(clamping: PostgreSQLRows.integer(rows.rows.first?.first.flatMap { $0 }) ?? 0)
    try LedgerFormat.check(format, address.shown)
    let hasSums = format >= PostgreSQLSchema.step8.number
    let mayReadDocuments = try PostgreSQLLedgerTables.mayRead([.documents], connection)
    let mayReadNotes = try PostgreSQLLedgerTables.mayRead([.documentPositions, .documentSteps], connection)
    (hasDocumentSums, hasDocumentNotes) = (hasSums && mayReadDocuments, hasSums && mayReadNotes)
  }

  private static func mayRead(
    _ tables: [LedgerTable], _ connection: PostgreSQLConnection
  ) throws(BackendProblem) -> Bool {
    let names = tables.map { "seamesh.\($0.rawValue)" }
    let answer = try connection.query(
      "SELECT coalesce(bool_and(has_table_privilege(to_regclass(n), 'SELECT')), false)::integer FROM unnest($1::text[]) n",
      [.texts(names)])
    return answer.rows.first?.first.flatMap { PostgreSQLRows.integer($0) } == 1
  }

  package var name: String { address.shown }

  private static func reading(_ problem: BackendProblem, _ address: PostgreSQLAddress) -> BackendProblem {
    guard problem.kind == .schema else { return problem }
    guard problem.isLackOfRight else {
      return BackendProblem(
        .schema, "there is no ledger in \(address.shown)", remedy: "Look at the name of the database.")
    }
    return BackendProblem(
      .schema, "the role of \(address.shown) may not read the ledger",
      remedy: "As the owner of the tables: seamesh forward --set-up --audit-to=ROLE.", isLackOfRight: true)
  }

  private func query(
    _ sql: String, _ parameters: [PostgreSQLParameter], _ table: LedgerTable
  ) throws(BackendProblem) -> [LedgerRow] {
    let rows: PostgreSQLRows
    do throws(BackendProblem) { rows = try connection.query(sql, parameters) } catch {
      throw PostgreSQLLedgerTables.reading(error, address)
    }
    return rows.rows.map { values in
      LedgerRow(
        table,
        zip(table.columns, values).map { column, value in
          guard let value else { return .null }
          guard column.kind == .number || column.kind == .time else { return .bytes(value) }
          return PostgreSQLRows.integer(value).map { .integer($0) } ?? .null
        })
    }
  }

  package func page(of table: LedgerTable, after key: [RowValue]?, rows: Int) throws -> [LedgerRow] {
    let (columns, keys) = (PostgreSQLLedgerTables.columns(of: table), PostgreSQLLedgerTables.keys(of: table))
    let asked = PostgreSQLLedgerTables.askedColumns(of: table)
    let behind = key.map { " WHERE (\(keys)) > (\(PostgreSQLLedgerTables.marks($0)))" } ?? ""
    let read = "SELECT \(asked) FROM seamesh.\(table.rawValue)\(behind) ORDER BY \(keys) LIMIT \(rows)"
    guard !table.longColumns.isEmpty else { return try query(read, parameters(key ?? [], table), table) }
    // The server stops where a page is full: lengths of bytes are known to it without reading them.
    let long = table.longColumns.map { "coalesce(octet_length(\($0)), 0)" }.joined(separator: " + ")
    let sized = "SELECT \(columns), sum(\(long)) OVER (ORDER BY \(keys)) - (\(long)) AS before FROM (\(read)) r"
    return try query(
      "SELECT \(columns) FROM (\(sized)) s WHERE before < \(LedgerPages.byteLimit) ORDER BY \(keys)",
      parameters(key ?? [], table), table)
  }

  package func row(of table: LedgerTable, _ key: [RowValue]) throws -> LedgerRow? {
    let (columns, keys) = (PostgreSQLLedgerTables.askedColumns(of: table), PostgreSQLLedgerTables.keys(of: table))
    return try query(
      "SELECT \(columns) FROM seamesh.\(table.rawValue) WHERE (\(keys)) = (\(PostgreSQLLedgerTables.marks(key)))",
      parameters(key, table), table
    ).first
  }

  package func count(of table: LedgerTable) throws -> Int64 {
    let rows = try connection.query("SELECT count(*) FROM seamesh.\(table.rawValue)").rows
    return PostgreSQLRows.integer(rows.first?.first.flatMap { $0 }) ?? 0
  }

  private static func columns(of table: LedgerTable) -> String { table.columns.map(\.name).joined(separator: ", ") }

  private static func askedColumns(of table: LedgerTable) -> String {
    table.columns.map { column in column.expression.map { "\($0) AS \(column.name)" } ?? column.name }
      .joined(separator: ", ")
  }

  private static func keys(of table: LedgerTable) -> String {
    // In the order of bytes, whatever the database's is.
    table.columns.prefix(table.keyCount).map { $0.kind == .text ? "\($0.name) COLLATE \"C\"" : $0.name }
      .joined(separator: ", ")
  }

  private static func marks(_ key: [RowValue]) -> String {
    key.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
  }

  private func parameters(_ key: [RowValue], _ table: LedgerTable) -> [PostgreSQLParameter] {
    zip(key, table.columns).map { value, column in
      switch value {
      case .integer(let number): .long(number)
      case .bytes(let bytes) where column.kind == .text: .text(String(decoding: bytes, as: UTF8.self))
      case .bytes(let bytes): .bytes(bytes)
      case .null: .bytes([])
      }
    }
  }
}

enum LedgerFormat {
  /// Of a ledger that is only read: whatever an older step lacks, the tables that are read were there from the first on.
  static func check(_ format: Int, _ name: String) throws(BackendProblem) {
    guard format > 0 else {
      throw BackendProblem(.schema, "there is no ledger in \(name)", remedy: "Look at its name.")
    }
    guard format <= PostgreSQLSchema.format else {
      throw BackendProblem(
        .schema,
        "the ledger in \(name) was made by a newer seamesh (format \(format); this one knows up to "
          + "\(PostgreSQLSchema.format))", remedy: "Use that version here, too.")
    }
  }
}
