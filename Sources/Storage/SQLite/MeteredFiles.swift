import CSQLite
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The system's files as SQLite sees them, with a clock at each sync. A layer over the system's own, which does all of the
/// work; registered from here until it goes, which must be after the last connection that uses it.
final class MeteredFiles {
  let name: String
  let meter: SyncMeter
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
    layer.pointee.pAppData = Unmanaged.passUnretained(meter).toOpaque()
    layer.pointee.xOpen = { layer, path, file, flags, outFlags in
      guard let system = MeteredFile.system, let file, let meter = layer?.pointee.pAppData else {
        return SQLITE_CANTOPEN
      }
      let code = system.pointee.xOpen?(system, path, file, flags, outFlags) ?? SQLITE_CANTOPEN
      if code == SQLITE_OK { MeteredFile.take(over: file, meter) }
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

/// What stands behind the system's own open file: its calls, and who hears of its syncs.
private struct MeteredFile {
  let calls: UnsafePointer<sqlite3_io_methods>
  let meter: UnsafeMutableRawPointer

  /// Set once, before any connection is there, and never changed. SQLite takes no configuration once it was asked for this.
  nonisolated(unsafe) static let system = {
    _ = Database.libraryConfigured
    return sqlite3_vfs_find(nil)
  }()

  static let offset = (Int(system?.pointee.szOsFile ?? 0) + 15) / 16 * 16

  /// The system's calls with another sync, by the system's: there are a few, for kinds of locks.
  private static let metered = Mutex<[UInt: UInt]>([:])

  static func take(over file: UnsafeMutablePointer<sqlite3_file>, _ meter: UnsafeMutableRawPointer) {
    guard let calls = file.pointee.pMethods else { return }
    of(file).initialize(to: MeteredFile(calls: calls, meter: meter))
    file.pointee.pMethods = metered(calls)
  }

  private static func of(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<MeteredFile> {
    (UnsafeMutableRawPointer(file) + offset).assumingMemoryBound(to: MeteredFile.self)
  }

  private static func metered(_ calls: UnsafePointer<sqlite3_io_methods>) -> UnsafePointer<sqlite3_io_methods>? {
    let address = metered.withLock { known in
      let key = UInt(bitPattern: calls)
      if let address = known[key] { return address }
      let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
      copy.initialize(to: calls.pointee)
      copy.pointee.xSync = { file, flags in file.map { MeteredFile.sync($0, flags) } ?? SQLITE_IOERR }
      known[key] = UInt(bitPattern: copy)
      return UInt(bitPattern: copy)
    }
    return UnsafePointer(bitPattern: address)
  }

  private static func sync(_ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32) -> Int32 {
    let this = of(file).pointee
    let begun = monotonicNanoseconds()
    let code = this.calls.pointee.xSync?(file, flags) ?? SQLITE_IOERR
    let meter = Unmanaged<SyncMeter>.fromOpaque(this.meter).takeUnretainedValue()
    meter.note(nanoseconds: monotonicNanoseconds() &- begun)
    return code
  }
}

func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
