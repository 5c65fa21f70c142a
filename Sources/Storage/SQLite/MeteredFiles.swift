import CSQLite
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The system's files as SQLite sees them, with a clock at each sync, and with the writes to the write-ahead log gathered. A layer
/// over the system's own, which does all of the work; registered from here until it goes, which must be after the last
/// connection that uses it.
final class MeteredFiles {
  let name: String
  let meter: SyncMeter
  /// Only while each commit is synced: without, it could be read about before it is written.
  var gathersWrites = false
  private let layer: UnsafeMutablePointer<sqlite3_vfs>

  private static let made = Atomic(0)

  /// Nil where there is no system's layer.
  init?(_ meter: SyncMeter) {
    guard let system = MeteredFile.system else { return nil }
    self.meter = meter
    name = "seamesh-metered-\(MeteredFiles.made.add(1, ordering: .relaxed).newValue)"
    layer = .allocate(capacity: 1)
    // What is no matter of one file the system's calls answer, whichever layer they are told.
    layer.initialize(to: system.pointee)
    layer.pointee.pNext = nil
    layer.pointee.zName = UnsafePointer(strdup(name))
    layer.pointee.szOsFile = Int32(MeteredFile.offset + MemoryLayout<MeteredFile>.size)
    layer.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
    layer.pointee.xOpen = { layer, path, file, flags, outFlags in
      guard let system = MeteredFile.system, let file, let files = layer?.pointee.pAppData else {
        return SQLITE_CANTOPEN
      }
      let code = system.pointee.xOpen?(system, path, file, flags, outFlags) ?? SQLITE_CANTOPEN
      if code == SQLITE_OK { MeteredFile.take(over: file, files, isLog: flags & SQLITE_OPEN_WAL != 0) }
      return code
    }
    sqlite3_vfs_register(layer, 0)
  }

  deinit {
    sqlite3_vfs_unregister(layer)
    free(UnsafeMutableRawPointer(mutating: layer.pointee.zName))
    layer.deallocate()
  }
}

/// What stands behind the system's own open file: its calls, the layer that it was opened by, and of a write-ahead log what is
/// to be written.
private struct MeteredFile {
  let calls: UnsafePointer<sqlite3_io_methods>
  let files: Unmanaged<MeteredFiles>
  let gathered: GatheredWrites?

  /// Set once, before any connection is there, and never changed. SQLite takes no configuration once it was asked for this.
  nonisolated(unsafe) static let system = {
    _ = Database.libraryConfigured
    return sqlite3_vfs_find(nil)
  }()

  static let offset = (Int(system?.pointee.szOsFile ?? 0) + 15) / 16 * 16

  /// Calls that stand in for the system's: there are a few, for kinds of locks, and for a log or another file.
  private struct Kind: Hashable {
    let calls: UInt
    let isLog: Bool
  }

  private static let metered = Mutex<[Kind: UInt]>([:])

  static func take(
    over file: UnsafeMutablePointer<sqlite3_file>, _ files: UnsafeMutableRawPointer, isLog: Bool
  ) {
    guard let calls = file.pointee.pMethods else { return }
    place(of: file).initialize(
      to: MeteredFile(
        calls: calls, files: .fromOpaque(files), gathered: isLog ? GatheredWrites(calls) : nil))
    file.pointee.pMethods = metered(calls, isLog: isLog)
  }

  private static func place(of file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<MeteredFile> {
    (UnsafeMutableRawPointer(file) + offset).assumingMemoryBound(to: MeteredFile.self)
  }

  private static func metered(
    _ calls: UnsafePointer<sqlite3_io_methods>, isLog: Bool
  ) -> UnsafePointer<sqlite3_io_methods>? {
    let address = metered.withLock { known in
      let kind = Kind(calls: UInt(bitPattern: calls), isLog: isLog)
      if let address = known[kind] { return address }
      let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
      copy.initialize(to: calls.pointee)
      copy.pointee.xSync = { file, flags in file.map { MeteredFile.sync($0, flags) } ?? SQLITE_IOERR }
      copy.pointee.xClose = { file in file.map(MeteredFile.close) ?? SQLITE_IOERR }
      if isLog { gather(&copy.pointee) }
      known[kind] = UInt(bitPattern: copy)
      return UInt(bitPattern: copy)
    }
    return UnsafePointer(bitPattern: address)
  }

  /// Whatever else is asked of a log comes after what was written to it.
  private static func gather(_ log: inout sqlite3_io_methods) {
    log.xWrite = { file, bytes, count, offset in
      guard let file, let bytes else { return SQLITE_IOERR }
      return MeteredFile.write(file, bytes, count, offset)
    }
    log.xRead = { file, bytes, count, offset in
      MeteredFile.afterWrites(file) { $1.xRead?($0, bytes, count, offset) }
    }
    log.xTruncate = { file, size in MeteredFile.afterWrites(file) { $1.xTruncate?($0, size) } }
    log.xFileSize = { file, size in MeteredFile.afterWrites(file) { $1.xFileSize?($0, size) } }
  }

  private static func write(
    _ file: UnsafeMutablePointer<sqlite3_file>, _ bytes: UnsafeRawPointer, _ count: Int32, _ offset: sqlite3_int64
  ) -> Int32 {
    let this = place(of: file).pointee
    guard let gathered = this.gathered, this.files.takeUnretainedValue().gathersWrites else {
      return afterWrites(file) { $1.xWrite?($0, bytes, count, offset) }
    }
    return gathered.write(file, bytes, count, at: offset)
  }

  private static func afterWrites(
    _ file: UnsafeMutablePointer<sqlite3_file>?,
    _ call: (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods) -> Int32?
  ) -> Int32 {
    guard let file else { return SQLITE_IOERR }
    let this = place(of: file).pointee
    let code = this.gathered?.flush(file) ?? SQLITE_OK
    guard code == SQLITE_OK else { return code }
    return call(file, this.calls.pointee) ?? SQLITE_IOERR
  }

  private static func sync(_ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32) -> Int32 {
    let this = place(of: file).pointee
    let written = this.gathered?.flushForSync(file) ?? SQLITE_OK
    guard written == SQLITE_OK else { return written }
    let begun = monotonicNanoseconds()
    let code = this.calls.pointee.xSync?(file, flags) ?? SQLITE_IOERR
    this.files.takeUnretainedValue().meter.note(nanoseconds: monotonicNanoseconds() &- begun)
    return code
  }

  private static func close(_ file: UnsafeMutablePointer<sqlite3_file>) -> Int32 {
    let this = place(of: file).move()
    let code = this.gathered?.flush(file) ?? SQLITE_OK
    let closed = this.calls.pointee.xClose?(file) ?? SQLITE_IOERR
    return code == SQLITE_OK ? closed : code
  }
}

func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
