import CSQLite

/// One SQLite connection with its prepared statements. Not thread-safe (SQLite's own mutexes are off): whoever opens it
/// calls it from one thread at a time.
package final class Database {
  package enum Access: Sendable { case create, readWrite, readOnly }

  package let path: String
  let handle: OpaquePointer
  private var statements: [UnsafeRawPointer: PreparedStatement] = [:]

  /// Needed by the open connection.
  private let kept: AnyObject?

  /// Opens or creates the file. `vfs` names a registered file layer, which `keeping` may keep there; nil takes the system's.
  package init(
    path: String, access: Access, vfs: String? = nil, keeping kept: AnyObject? = nil
  ) throws(StoreError) {
    _ = Database.libraryConfigured
    let flags =
      switch access {
      case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
      case .readWrite: SQLITE_OPEN_READWRITE
      case .readOnly: SQLITE_OPEN_READONLY
      }
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs)
    guard code == SQLITE_OK, let opened else {
      let error = Database.error(opened, code, operation: "open \(path)", sql: nil)
      sqlite3_close_v2(opened)
      throw error
    }
    (self.path, self.handle, self.kept) = (path, opened, kept)
  }

  deinit {
    statements.removeAll()
    sqlite3_close_v2(handle)
  }

  /// SQLite's result code.
  static let libraryConfigured = seamesh_sqlite_memory_status_off()

  /// The prepared statement of a literal, kept for the next time. Literals are told apart by address, which is as good
  /// as by text (a second copy would only be prepared twice) and needs no hashing of SQL on the hot path.
  func statement(_ sql: StaticString) throws(StoreError) -> PreparedStatement {
    let key = UnsafeRawPointer(sql.utf8Start)
    if let known = statements[key] { return known }
    let made = try PreparedStatement(self, sql.description)
    statements[key] = made
    return made
  }

  /// Runs any number of statements and drops their rows.
  package func execute(_ sql: String) throws(StoreError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw error(code, operation: "execute", sql: sql) }
  }

  /// The first column of the first row as a number; nil without a row.
  package func integer(_ sql: String) throws(StoreError) -> Int64? {
    let statement = try PreparedStatement(self, sql)
    return try statement.step() ? statement.integer(0) : nil
  }

  /// The first column of the first row as text; nil without a row. Runs to the end: a pragma that writes gives its row
  /// before it commits, and would fail unnoticed.
  package func string(_ sql: String) throws(StoreError) -> String? {
    let statement = try PreparedStatement(self, sql)
    guard try statement.step() else { return nil }
    let text = statement.text(0)
    try statement.run()
    return text
  }

  /// Rows that the last statement inserted, changed or deleted.
  var changedRows: Int { Int(sqlite3_changes(handle)) }
  var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }
  package var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") == 1 }

  /// Frees the pages that it keeps in memory, but for those that a running statement needs: the next question reads them anew.
  func releaseCache() { _ = sqlite3_db_release_memory(handle) }

  /// Under its path is another file by now, or none. Of a layer that cannot tell: false.
  var hasMoved: Bool {
    var moved: Int32 = 0
    return sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0
  }

  func error(_ code: Int32, operation: String, sql: String?) -> StoreError {
    Database.error(handle, code, operation: operation, sql: sql)
  }

  static func error(_ handle: OpaquePointer?, _ code: Int32, operation: String, sql: String?) -> StoreError {
    let message = handle.flatMap(sqlite3_errmsg) ?? sqlite3_errstr(code)
    let systemError = handle.map { Database.systemError($0, code) } ?? 0
    return StoreError(
      SQLiteError(
        extendedCode: code, systemError: systemError,
        message: message.map { String(cString: $0) } ?? "", operation: operation, sql: sql))
  }

  /// SQLite forgets the `errno` of a write that failed inside COMMIT; the file still knows it: the log's, or the
  /// database's own while there is no log.
  private static func systemError(_ handle: OpaquePointer, _ code: Int32) -> Int32 {
    var error = sqlite3_system_errno(handle)
    guard error == 0, code == SQLITE_IOERR | 3 << 8 else { return error }  // SQLITE_IOERR_WRITE
    for question in [SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER] where error == 0 {
      var file: UnsafeMutablePointer<sqlite3_file>?
      guard sqlite3_file_control(handle, "main", question, &file) == SQLITE_OK, let file,
        let control = file.pointee.pMethods?.pointee.xFileControl
      else { continue }
      _ = control(file, SQLITE_FCNTL_LAST_ERRNO, &error)
    }
    return error
  }
}
