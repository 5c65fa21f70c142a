import CSQLite

extension Store {
  /// Of SQLite, as it is linked.
  package static var libraryVersion: String { String(cString: sqlite3_libversion()) }
}
