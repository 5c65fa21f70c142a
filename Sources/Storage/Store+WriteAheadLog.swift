import CSQLite

/// The write-ahead log: how it is carried into the database, and how the next start can tell that it was lost.
extension Store {
  /// Bytes of the write-ahead log's file. Much above the pace's limit means that a reader holds an old snapshot (S2).
  package var writeAheadLogBytes: Int64 { files.size(database.path + "-wal") ?? 0 }
  package var databaseBytes: Int64 { files.size(database.path) ?? 0 }

  /// Carries into the database what readers do not hold back, due or not.
  package func checkpoint() throws(StoreError) { _ = try carryOver() }

  /// What an unclean stop left in the log goes into the database before anything is built on it. After a failed sync the
  /// system's cache shows frames that are not on disk and, unless they are written again, never will be: a commit behind
  /// them would be lost with the power, and the log that is on disk would put older pages over those that were carried
  /// over. Where there is no room the store opens nevertheless, for reading.
  func carryOverFoundLog() throws(StoreError) {
    do throws(StoreError) {
      try files.writeAgain(database.path + "-wal")
      try checkpoint()
    } catch {
      if error.isFatal { throw error }
    }
  }

  /// Frames in the log, and how many of them are in the database.
  func carryOver() throws(StoreError) -> (frames: Int32, carried: Int32) {
    var (frames, carried): (Int32, Int32) = (0, 0)
    let code = sqlite3_wal_checkpoint_v2(database.handle, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &carried)
    guard code == SQLITE_OK || code & 0xff == SQLITE_BUSY else {
      let error = database.error(code, operation: "checkpoint", sql: nil)
      giveUp(after: error)
      throw error
    }
    // Frames are synced before they are carried over; those that a reader holds back may not be.
    if code == SQLITE_OK, frames == carried { unsyncedCommits = 0 }
    if code == SQLITE_OK { carrying.carriedFrames = max(0, carried) }
    return code == SQLITE_OK ? (frames, carried) : (1, 0)
  }

  /// Counts this start, once, in a durable commit. From then on the log's file is never empty before ``closeLog()``, since
  /// SQLite begins it anew from its start and cuts off nothing that is in use: one that is missing or empty at the next
  /// start has lost what was in it.
  package func noteStart() throws {
    guard !isStartNoted else { return }
    try write(.full) { transaction in
      try transaction.setInteger((try transaction.integer(.starts) ?? 0) &+ 1, for: .starts)
    }
    isStartNoted = true
  }

  /// Carries all of the log over. True where the database alone then holds everything, on disk: no reader holds a part back.
  package func carryOverAll() throws(StoreError) -> Bool {
    let (frames, carried) = try carryOver()
    return frames == carried
  }

  /// Empties the log, which ``carryOverAll()`` has found to be carried over, and lets it go with the store.
  package func closeLog() throws(StoreError) {
    _ = try database.string("PRAGMA wal_checkpoint(TRUNCATE)")
    _ = seamesh_sqlite_checkpoint_on_close(database.handle, 1)
  }
}
