import CSQLite
import Replication

/// What this machine's SQLite can do, with nothing of this project between: other figures of one run are compared with it.
final class RawInsert {
  static let rowsPerTransaction = 10_000
  private static let rowByteCount = 200
  private static let rounds = 3

  private let database: OpaquePointer
  private let insert: OpaquePointer

  /// Rows per second of the bare limit: 24-byte ascending key and 200-byte blob in one clustered table, committed at
  /// `synchronous=FULL`, the best of three rounds.
  static func rate(_ scratch: BenchScratch, rows: Int) throws(Failure) -> Double {
    var best = 0.0
    for _ in 0..<rounds {
      let place = try scratch.directory("raw")
      defer { scratch.remove("raw") }
      best = max(best, try RawInsert(place + "/raw.db").rate(rows: rows))
    }
    return best
  }

  private init(_ path: String) throws(Failure) {
    // As the store has it: the library is configured once for the process.
    _ = seamesh_sqlite_memory_status_off()
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    guard sqlite3_open_v2(path, &opened, flags, nil) == SQLITE_OK, let opened else { throw RawInsert.failure(opened) }
    database = opened
    let setUp = """
      PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF; PRAGMA cache_size=-65536;
      PRAGMA wal_autocheckpoint=16384;
      CREATE TABLE rows (key BLOB PRIMARY KEY NOT NULL, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
      """
    var prepared: OpaquePointer?
    guard sqlite3_exec(opened, setUp, nil, nil, nil) == SQLITE_OK,
      sqlite3_prepare_v2(opened, "INSERT INTO rows (key, body) VALUES (?1, ?2)", -1, &prepared, nil) == SQLITE_OK,
      let prepared
    else {
      let failure = RawInsert.failure(opened)
      sqlite3_close(opened)
      throw failure
    }
    insert = prepared
  }

  deinit {
    sqlite3_finalize(insert)
    sqlite3_close(database)
  }

  private func rate(rows: Int) throws(Failure) -> Double {
    let body = [UInt8](repeating: 0x33, count: RawInsert.rowByteCount)
    let start = ContinuousClock.now
    for first in stride(from: 0, to: rows, by: RawInsert.rowsPerTransaction) {
      try execute("BEGIN")
      for row in first..<min(first + RawInsert.rowsPerTransaction, rows) { try put(RawInsert.key(row), body) }
      try execute("COMMIT")
    }
    return Double(rows) / ((ContinuousClock.now - start) / .seconds(1))
  }

  /// SQLite reads both where they lie.
  private func put(_ key: [UInt8], _ body: [UInt8]) throws(Failure) {
    let isDone = key.withUnsafeBytes { key in
      body.withUnsafeBytes { body in
        sqlite3_bind_blob(insert, 1, key.baseAddress, Int32(key.count), nil) == SQLITE_OK
          && sqlite3_bind_blob(insert, 2, body.baseAddress, Int32(body.count), nil) == SQLITE_OK
          && sqlite3_step(insert) == SQLITE_DONE && sqlite3_reset(insert) == SQLITE_OK
      }
    }
    guard isDone else { throw RawInsert.failure(database) }
  }

  private func execute(_ sql: String) throws(Failure) {
    guard sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK else { throw RawInsert.failure(database) }
  }

  private static func failure(_ database: OpaquePointer?) -> Failure {
    Failure(.failed, "plain SQLite: \(database.map { String(cString: sqlite3_errmsg($0)) } ?? "no memory")")
  }

  private static func key(_ row: Int) -> [UInt8] {
    var key = [UInt8](repeating: 0, count: 16)
    key.reserveCapacity(24)
    appendBigEndian(UInt64(row), to: &key)
    return key
  }
}
