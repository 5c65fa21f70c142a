import Storage

/// The tables of one ledger as they stood at one moment: at a server, in a dump, or in memory. Used by one thread.
/// Calls throw ``BackendProblem`` where they cannot be read, ``LedgerFinding`` where a row does not read.
package protocol LedgerTables: AnyObject {
  /// For people, without a secret.
  var name: String { get }
  /// Rows behind a key, in the order of the table's key: so many, and ``LedgerPages/byteLimit`` at the most, which the last
  /// may pass; empty at the end. Nil: from the beginning.
  func page(of table: LedgerTable, after key: [RowValue]?, rows: Int) throws -> [LedgerRow]
  func row(of table: LedgerTable, _ key: [RowValue]) throws -> LedgerRow?
  func count(of table: LedgerTable) throws -> Int64
  /// Rows of documents are there, with sums, and may be read.
  var hasDocumentSums: Bool { get }
  /// So is what tells documents that a relay has not sent yet from others.
  var hasDocumentNotes: Bool { get }
}

package enum LedgerPages {
  /// Read at once of a table.
  package static let byteLimit = 1024 * 1024
  package static let rowLimit = 1_024
}

/// One table from its beginning to its end.
final class LedgerCursor {
  private let tables: any LedgerTables
  private let table: LedgerTable
  private var page: ArraySlice<LedgerRow> = []
  private var last: [RowValue]?
  private var isAtEnd = false

  init(_ tables: any LedgerTables, _ table: LedgerTable) { (self.tables, self.table) = (tables, table) }

  func peek() throws -> LedgerRow? {
    if page.isEmpty, !isAtEnd {
      page = try tables.page(of: table, after: last, rows: LedgerPages.rowLimit)[...]
      isAtEnd = page.isEmpty
    }
    return page.first
  }

  @discardableResult
  func next() throws -> LedgerRow? {
    guard let row = try peek() else { return nil }
    page.removeFirst()
    // A table that gives its rows in another order would be walked without an end.
    if let last, !last.lexicographicallyPrecedes(row.key) { throw row.finding("it stands there twice") }
    last = row.key
    return row
  }
}
