import Storage
import Wire

/// A ledger in a dump that `pg_dump --schema=seamesh` wrote as plain text. Its rows stand in the order in which they came, so they
/// are put into the order of their keys on disk first.
package final class LedgerDump: LedgerTables {
  package let name: String
  private let scratch: ScratchTables
  package let hasDocumentSums: Bool
  package let hasDocumentNotes: Bool

  /// - Parameters:
  ///   - name: of the dump, for people.
  ///   - wanted: tables that are to be read; the others are passed over.
  ///   - read: the next bytes of it, so many at the most; empty at its end.
  ///   - progress: bytes that were read.
  package init(
    _ name: String, tables wanted: [LedgerTable] = LedgerTable.allCases, read: (Int) throws -> [UInt8],
    progress: (Int64) -> Void = { _ in }
  ) throws {
    self.name = name
    let scratch = try ScratchTables()
    self.scratch = scratch
    for table in LedgerTable.allCases {
      try scratch.create(table.rawValue, columns: table.columns.count, key: Array(0..<table.keyCount))
    }
    var parser = DumpParser(name, wanted)
    var bytes: Int64 = 0
    while case let chunk = try read(LedgerPages.byteLimit), !chunk.isEmpty {
      bytes += Int64(chunk.count)
      try parser.take(chunk) { try scratch.insert($0.values, into: $0.table.rawValue) }
      progress(bytes)
    }
    try parser.finish()
    (hasDocumentSums, hasDocumentNotes) = (parser.hasDocumentSums, parser.hasDocumentNotes)
    try scratch.index()
    for table in LedgerTable.allCases {
      if let key = try scratch.doubledKey(in: table.rawValue) {
        throw LedgerFinding(table, key, "it stands there twice")
      }
    }
  }

  package func page(of table: LedgerTable, after key: [RowValue]?, rows: Int) throws -> [LedgerRow] {
    try scratch.page(of: table.rawValue, after: key, rows: rows, byteLimit: LedgerPages.byteLimit)
      .map { LedgerRow(table, $0) }
  }

  package func row(of table: LedgerTable, _ key: [RowValue]) throws -> LedgerRow? {
    try scratch.row(of: table.rawValue, key).map { LedgerRow(table, $0) }
  }

  package func count(of table: LedgerTable) throws -> Int64 { try scratch.count(of: table.rawValue) }
}
