import CSQLite

/// The lock of a database file as SQLite knows it: any number that read, one of which may prepare to write.
///
/// Connections of one process need it even on one thread: one that closes checkpoints and deletes the write-ahead log
/// when nobody refuses it the exclusive lock.
struct FileLocks {
  /// Connections that hold any lock.
  private var holders = 0
  /// The highest level that one of them holds.
  private var highest = SQLITE_LOCK_NONE

  var isReserved: Bool { highest > SQLITE_LOCK_SHARED }

  /// Raises `held`, the level of one connection, to `level`; busy where another one stands in the way.
  mutating func raise(_ held: inout Int32, to level: Int32) -> Int32 {
    guard level > held else { return SQLITE_OK }
    if held != highest, highest >= SQLITE_LOCK_PENDING || level > SQLITE_LOCK_SHARED { return SQLITE_BUSY }
    if level == SQLITE_LOCK_SHARED {
      holders += 1
      highest = max(highest, SQLITE_LOCK_SHARED)
      held = level
      return SQLITE_OK
    }
    // Who waits for readers to leave keeps new ones out.
    let waits = level == SQLITE_LOCK_EXCLUSIVE && holders > 1
    held = waits ? SQLITE_LOCK_PENDING : level
    highest = held
    return waits ? SQLITE_BUSY : SQLITE_OK
  }

  mutating func lower(_ held: inout Int32, to level: Int32) {
    guard level < held else { return }
    if held > SQLITE_LOCK_SHARED { highest = SQLITE_LOCK_SHARED }
    if level == SQLITE_LOCK_NONE {
      holders -= 1
      if holders == 0 { highest = SQLITE_LOCK_NONE }
    }
    held = level
  }
}
