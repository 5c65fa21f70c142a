import CSQLite

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// An open file of one connection. It keeps its disk alive.
final class DiskHandle {
  let disk: SimulatedDisk
  let file: DiskFile
  private var name: String
  /// The first sync of a journal that may be new puts the names on disk as well, as SQLite does it on Unix.
  private var syncsNames: Bool
  private var level = SQLITE_LOCK_NONE
  private var held = SharedIndex.Held()

  init(_ disk: SimulatedDisk, _ file: DiskFile, name: String, syncsNames: Bool) {
    (self.disk, self.file, self.name, self.syncsNames) = (disk, file, name, syncsNames)
  }

  func close() {
    file.index.unmap(&held)
    file.locks.lower(&level, to: SQLITE_LOCK_NONE)
  }

  // MARK: Bytes

  func read(_ out: UnsafeMutableRawBufferPointer, at offset: Int) -> Int32 {
    if let fault = disk.attemptRead(out.count) { return disk.code(of: fault, otherwise: SQLITE_IOERR | 1 << 8) }
    let available = file.content.read(out, at: offset)
    guard available < out.count else { return SQLITE_OK }
    if let start = out.baseAddress { memset(start + available, 0, out.count - available) }
    return SQLITE_IOERR | 2 << 8  // SQLITE_IOERR_SHORT_READ
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int32 {
    disk.code(of: disk.write(bytes, to: file, at: offset), otherwise: SQLITE_IOERR | 3 << 8)
  }

  func truncate(to size: Int) -> Int32 {
    disk.code(of: disk.truncate(file, to: size), otherwise: SQLITE_IOERR | 6 << 8)
  }

  func sync() -> Int32 {
    // Whatever the cause: SQLite calls a failed sync by one code.
    if let fault = disk.sync(file) {
      _ = disk.code(of: fault, otherwise: SQLITE_IOERR)
      return SQLITE_IOERR | 4 << 8
    }
    if syncsNames { disk.syncNames() }
    syncsNames = false
    return SQLITE_OK
  }

  // MARK: Locks

  func lock(_ wanted: Int32) -> Int32 { file.locks.raise(&level, to: wanted) }
  func unlock(_ wanted: Int32) { file.locks.lower(&level, to: wanted) }

  func mapRegion(_ index: Int, byteCount: Int, makes: Bool) -> (code: Int32, region: UnsafeMutableRawPointer?) {
    if makes, !file.index.hasRegion(index), let fault = disk.attempt(.map) {
      return (disk.code(of: fault, otherwise: SQLITE_IOERR | 19 << 8), nil)  // SQLITE_IOERR_SHMSIZE
    }
    return (SQLITE_OK, file.index.region(index, byteCount: byteCount, makes: makes, for: &held))
  }

  func lockIndex(_ first: Int32, _ count: Int32, _ flags: Int32) -> Int32 {
    file.index.change(first, count, flags, for: &held)
  }

  func unmapIndex() { file.index.unmap(&held) }

  // MARK: Controls

  func control(_ operation: Int32, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    switch operation {
    case SQLITE_FCNTL_LAST_ERRNO:
      argument?.assumingMemoryBound(to: Int32.self).pointee = disk.lastError
      return SQLITE_OK
    case SEAMESH_FCNTL_RENAME:
      guard let argument else { return SQLITE_MISUSE }
      let new = SimulatedDisk.name(argument.assumingMemoryBound(to: CChar.self))
      let code = disk.code(of: disk.rename(name, to: new), otherwise: SQLITE_IOERR)
      if code == SQLITE_OK { name = new }
      return code
    case SEAMESH_FCNTL_SYNC_NAMES:
      if let fault = disk.attempt(.sync) { return disk.code(of: fault, otherwise: SQLITE_IOERR | 5 << 8) }
      disk.syncNames()
      return SQLITE_OK
    default: return SQLITE_NOTFOUND
    }
  }
}

extension SimulatedDisk {
  /// SQLite's code for what became of an operation, leaving `errno` for SQLite to ask for.
  func code(of fault: DiskFault?, otherwise code: Int32) -> Int32 {
    switch fault {
    case nil: return SQLITE_OK
    case .full:
      lastError = ENOSPC
      return code == SQLITE_IOERR | 3 << 8 ? SQLITE_FULL : code
    case .readOnly: lastError = EROFS
    case .inputOutput, .crash: lastError = EIO
    }
    return code
  }

  /// The last component of a path.
  static func name(_ path: UnsafePointer<CChar>) -> String {
    guard let slash = strrchr(path, CInt(UInt8(ascii: "/"))) else { return String(cString: path) }
    return String(cString: slash + 1)
  }
}
