import CSQLite
import Replication

/// Copies of a store, and the way back from them.
package enum StoreBackup {
  /// Between two reports of progress.
  private static let stepByteCount = 4 * 1024 * 1024

  /// How a copy comes to its place.
  package enum Way: Sendable {
    /// Read into a file beside the store first where the place is on another file system, and there is room.
    case whicheverFits
    case staged
    case direct
  }

  /// Writes a consistent copy of `store` (its database file) to `path`, which must be free, while the writer goes on. A second
  /// copy to a place that one is on its way to is refused. `progress` gets what is done and how much there is. The copy is on
  /// disk when this returns.
  ///
  /// From a connection of its own, on one snapshot: the copy never has to start over, however much is written
  /// meanwhile, at the price of a write-ahead log that grows until all is read. A place on another file system may be slow,
  /// so nothing is read for it directly. Whoever opens the copy finds
  /// ``MetaKey/restored`` and takes a new replica id (S6). May run on any thread.
  package static func write(
    store: String, to path: String, fileLayer: String? = nil, _ way: Way = .whicheverFits,
    progress: (Int, Int) -> Void = { _, _ in }
  ) throws(StoreError) {
    let files = StoreFiles(layer: fileLayer)
    guard files.exists(store) else { throw .missing(path: store) }
    let target = BackupPlace(path, files)
    guard target.take() else { throw .backupUnderWay(path: path) }
    defer { target.leave() }
    guard !files.exists(path) else { throw .alreadyExists(path: path) }
    if let stage = BackupStage(beside: store, for: path, files, way) {
      return try stage.write(store, to: path, progress)
    }
    let source = try source(store, files)
    try place(at: path, as: PartialName.free(for: path, files), in: files) { partial throws(StoreError) in
      try fill(partial, from: source, in: files, progress: progress)
    }
  }

  static func source(_ store: String, _ files: StoreFiles) throws(StoreError) -> Database {
    let source = try Database(path: store, access: .readOnly, vfs: files.layer)
    try source.execute("PRAGMA busy_timeout=10000")
    return source
  }

  /// Checks a copy: that it is a store of a version known here, and whole. Reads all of it.
  package static func verify(_ path: String, migrations: [Migration] = Migration.all) throws(StoreError) {
    guard FileSystem.exists(path) else { throw .missing(path: path) }
    try verify(try Database(path: path, access: .readOnly), migrations)
  }

  static func verify(_ database: Database, _ migrations: [Migration]) throws(StoreError) {
    let version = try FileFormat.check(database, migrations)
    guard version > 0 else { throw .notAStore(path: database.path) }
    let finding = try database.string("PRAGMA quick_check(1)") ?? "no answer"
    guard finding == "ok" else { throw .damaged("\(database.path): \(finding)") }
  }

  /// Copies into a new file beside `path` in a data directory, which gets its name when it is whole and on disk. What an attempt
  /// that was cut off had left there goes: the directory is locked, and such names in it are the store's own.
  static func copy(
    _ source: Database, to path: String, in files: StoreFiles, progress: (Int, Int) -> Void
  ) throws(StoreError) {
    guard !files.exists(path) else { throw .alreadyExists(path: path) }
    let partial = path + PartialName.suffix
    for suffix in PartialName.sideSuffixes { try files.remove(partial + suffix) }
    try files.makePrivateFile(partial)
    try place(at: path, as: partial, in: files) { partial throws(StoreError) in
      try fill(partial, from: source, in: files, progress: progress)
    }
  }

  /// Fills `partial`, a file of this copy alone, and gives it the name `path` when it is whole and on disk.
  static func place(
    at path: String, as partial: String, in files: StoreFiles, _ fill: (String) throws(StoreError) -> Void
  ) throws(StoreError) {
    do {
      try fill(partial)
      try files.sync(partial)
      try files.move(partial, to: path)
      try files.syncNames(beside: path)
    } catch {
      for suffix in PartialName.sideSuffixes { try? files.remove(partial + suffix) }
      throw error
    }
  }

  static func fill(
    _ path: String, from source: Database, in files: StoreFiles, progress: (Int, Int) -> Void
  ) throws(StoreError) {
    try files.makePrivateFile(path)
    let target = try Database(path: path, access: .create, vfs: files.layer)
    let pageByteCount = Int(try source.integer("PRAGMA page_size") ?? 0)
    let pagesPerStep = Int32(clamping: stepByteCount / max(pageByteCount, 1))
    try source.execute("BEGIN; SELECT count(*) FROM sqlite_schema")
    defer { try? source.execute("ROLLBACK") }
    guard let backup = sqlite3_backup_init(target.handle, "main", source.handle, "main") else {
      throw target.error(sqlite3_extended_errcode(target.handle), operation: "backup", sql: nil)
    }
    var code = SQLITE_OK
    while code == SQLITE_OK {
      code = sqlite3_backup_step(backup, pagesPerStep)
      let pages = Int(sqlite3_backup_pagecount(backup))
      progress(pages - Int(sqlite3_backup_remaining(backup)), pages)
    }
    let finished = sqlite3_backup_finish(backup)
    guard code == SQLITE_DONE, finished == SQLITE_OK else {
      throw target.error(code == SQLITE_DONE ? finished : code, operation: "backup", sql: nil)
    }
    // One file that can be carried about; the store that opens it goes back to a write-ahead log.
    try target.execute("PRAGMA journal_mode=DELETE")
    try target.setMeta(.restored, [1])
    try target.setNumber(named: Text(MetaKey.copy.rawValue), .random(in: 1 ... .max))
  }
}

extension Database {
  /// Throws where the log that is gone was carried into the database in part alone: SQLite then leaves pages of different times
  /// behind, and writes to them would damage more. Reads all of it, and holds every index against its table.
  func verifyWithoutLog(cacheBytes: Int) throws(StoreError) {
    do throws(StoreError) {
      try execute("PRAGMA cache_size=-\(cacheBytes / 1024)")
      let finding = try string("PRAGMA integrity_check(1)") ?? "no answer"
      guard finding == "ok" else { throw .tornByLostLog("\(path): \(finding)") }
    } catch {
      // Some tears it meets instead of telling them.
      if case .damaged(let detail) = error { throw .tornByLostLog(detail) }
      throw error
    }
  }
}
