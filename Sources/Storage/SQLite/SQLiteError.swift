import CSQLite

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// What SQLite answered, without any value of the statement.
package struct SQLiteError: Error, Hashable, Sendable {
  /// A primary result code. Codes of later versions of SQLite survive, having no name here.
  package struct Code: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }

    package static let busy = Code(rawValue: SQLITE_BUSY)
    package static let readOnly = Code(rawValue: SQLITE_READONLY)
    package static let interrupted = Code(rawValue: SQLITE_INTERRUPT)
    package static let inputOutput = Code(rawValue: SQLITE_IOERR)
    package static let corrupt = Code(rawValue: SQLITE_CORRUPT)
    package static let full = Code(rawValue: SQLITE_FULL)
    package static let cannotOpen = Code(rawValue: SQLITE_CANTOPEN)
    package static let notADatabase = Code(rawValue: SQLITE_NOTADB)
    package static let constraint = Code(rawValue: SQLITE_CONSTRAINT)
  }

  package let extendedCode: Int32
  /// `errno` of the call below SQLite that failed; 0 where there was none.
  package let systemError: Int32
  package let message: String
  /// What was being done, such as `step` or `checkpoint`.
  package let operation: String
  /// The statement's text with its placeholders.
  package let sql: String?

  package init(extendedCode: Int32, systemError: Int32 = 0, message: String, operation: String, sql: String? = nil) {
    (self.extendedCode, self.systemError) = (extendedCode, systemError)
    (self.message, self.operation, self.sql) = (message, operation, sql)
  }

  package var code: Code { Code(rawValue: extendedCode & 0xff) }

  /// SQLite says "full" only for writes; other calls that ran out of space show it in `errno` alone.
  package var isDiskFull: Bool {
    code == .full || (!isFailedSync && isSystemFailure && [ENOSPC, EDQUOT].contains(systemError))
  }
  package var isReadOnly: Bool { code == .readOnly || (!isFailedSync && isSystemFailure && systemError == EROFS) }
  package var isIOError: Bool {
    (code == .inputOutput || (code == .cannotOpen && systemError == EIO)) && !isDiskFull && !isReadOnly
  }
  package var isCorrupt: Bool { code == .corrupt || code == .notADatabase }

  /// After a failed sync the kernel may already have dropped the pages: whatever its errno, nothing may be retried (K3).
  private var isFailedSync: Bool {
    [SQLITE_IOERR | 4 << 8, SQLITE_IOERR | 5 << 8].contains(extendedCode)  // SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC
  }
  private var isSystemFailure: Bool { code == .inputOutput || code == .cannotOpen }
}

extension SQLiteError: CustomStringConvertible {
  /// For whoever works on this program.
  package var description: String { "\(operation): \(detail)" + (sql.map { " in: \($0)" } ?? "") }

  /// For the log: with the number to look it up by, and nothing of the statement, which may be the whole layout.
  package var detail: String {
    "\(message) (SQLite \(extendedCode)" + (systemError == 0 ? ")" : ", errno \(systemError))")
  }
}
