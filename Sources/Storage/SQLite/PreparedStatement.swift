import CSQLite
import Replication

/// A compiled statement. Placeholders and columns are numbered as in SQLite: placeholders from 1, columns from 0.
package final class PreparedStatement {
  private let handle: OpaquePointer
  private unowned let database: Database

  init(_ database: Database, _ sql: String) throws(StoreError) {
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v3(
      database.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard code == SQLITE_OK, let prepared else { throw database.error(code, operation: "prepare", sql: sql) }
    (self.handle, self.database) = (prepared, database)
  }

  deinit { sqlite3_finalize(handle) }

  private var sql: String? { sqlite3_sql(handle).map { String(cString: $0) } }

  // MARK: Placeholders

  func bind(_ index: Int32, _ value: Int64) throws(StoreError) {
    try check(sqlite3_bind_int64(handle, index, value))
  }

  func bind(_ index: Int32, _ value: Int64?) throws(StoreError) {
    guard let value else { return try check(sqlite3_bind_null(handle, index)) }
    try bind(index, value)
  }

  /// Without a copy: `bytes` must stay where they are until ``run()``, or ``reset()`` after ``step()``.
  func bind(_ index: Int32, borrowed bytes: UnsafeRawBufferPointer) throws(StoreError) {
    // A nil address would bind NULL, which an empty blob is not.
    guard let address = bytes.baseAddress, !bytes.isEmpty else {
      return try check(sqlite3_bind_zeroblob(handle, index, 0))
    }
    try check(sqlite3_bind_blob64(handle, index, address, UInt64(bytes.count), nil))
  }

  func bind(_ index: Int32, copied bytes: [UInt8]) throws(StoreError) {
    guard !bytes.isEmpty else { return try check(sqlite3_bind_zeroblob(handle, index, 0)) }
    try check(sqlite3_bind_blob64(handle, index, bytes, UInt64(bytes.count), PreparedStatement.copying))
  }

  func bind(_ index: Int32, _ text: Text) throws(StoreError) {
    var string = text.string
    let code = string.withUTF8 { utf8 in
      utf8.withMemoryRebound(to: CChar.self) { characters in
        sqlite3_bind_text64(
          handle, index, characters.baseAddress, UInt64(characters.count), PreparedStatement.copying,
          UInt8(SQLITE_UTF8))
      }
    }
    try check(code)
  }

  /// `SQLITE_TRANSIENT`, which the C header writes as a cast that Swift does not import.
  private static let copying = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

  // MARK: Rows

  /// True while there is a row. After an error the statement is ready for its next use.
  func step() throws(StoreError) -> Bool {
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    if code == SQLITE_DONE { return false }
    let error = database.error(code, operation: "step", sql: sql)
    sqlite3_reset(handle)
    throw error
  }

  /// Runs to the end, dropping rows, and makes the statement ready for its next use.
  func run() throws(StoreError) {
    defer { reset() }
    while try step() {}
  }

  /// Ends the row walk, so that the statement holds neither a snapshot nor a borrowed buffer in use.
  func reset() { sqlite3_reset(handle) }

  /// `SQLITE_NULL`, `SQLITE_INTEGER` and so on.
  func type(of column: Int32) -> Int32 { sqlite3_column_type(handle, column) }
  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
  func optionalInteger(_ column: Int32) -> Int64? {
    sqlite3_column_type(handle, column) == SQLITE_NULL ? nil : integer(column)
  }

  func optionalText(_ column: Int32) -> String? {
    sqlite3_column_type(handle, column) == SQLITE_NULL ? nil : text(column)
  }
  func text(_ column: Int32) -> String { String(decoding: borrowedBytes(column), as: UTF8.self) }
  func bytes(_ column: Int32) -> [UInt8] { Array(borrowedBytes(column)) }
  func byteCount(_ column: Int32) -> Int { Int(sqlite3_column_bytes(handle, column)) }

  /// Valid until the next ``step()`` or ``reset()``.
  func borrowedBytes(_ column: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(handle, column)
    return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : byteCount(column))
  }

  private func check(_ code: Int32) throws(StoreError) {
    guard code == SQLITE_OK else { throw database.error(code, operation: "bind", sql: sql) }
  }
}
