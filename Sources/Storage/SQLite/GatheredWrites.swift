import CSQLite

/// Writes to one write-ahead log that go to the system together. SQLite makes two of each frame, of which hardly any fills a
/// block of the file system: the calls cost more than the bytes do.
///
/// What is gathered nobody can miss: a commit counts only once its sync, which is asked for through here, has returned.
///
/// A small commit that lengthens the log lengthens it further, by zeros. The sync of those that follow then finds a file that is
/// long enough: it writes their bytes, and no entry in the file system's own journal. Behind its last valid frame SQLite reads
/// nothing, as where a log has begun anew over an older one.
final class GatheredWrites {
  private let calls: UnsafePointer<sqlite3_io_methods>
  private let bytes = UnsafeMutableRawPointer.allocate(byteCount: GatheredWrites.byteLimit, alignment: 16)
  private var start: sqlite3_int64 = 0
  private var count = 0
  /// Whether nothing has gone to the system since the last sync.
  private var isWhole = true

  /// The system's layer writes less than 128 KiB in one call, and takes a multiple of that for nothing at all: so it would find
  /// the disk full.
  static let byteLimit = 124 * 1024
  /// What a small commit that lengthens the log leaves behind itself: enough for some seventeen writes of a report, and little
  /// to wait for on slow flash memory.
  static let roomByteCount = 4 * byteLimit

  init(_ calls: UnsafePointer<sqlite3_io_methods>) { self.calls = calls }

  deinit { bytes.deallocate() }

  /// SQLite's result code: of this write, or of an earlier one that went to the system now.
  func write(
    _ file: UnsafeMutablePointer<sqlite3_file>, _ source: UnsafeRawPointer, _ size: Int32, at offset: sqlite3_int64
  ) -> Int32 {
    let size = Int(size)
    if count > 0, offset != start + sqlite3_int64(count) || count + size > GatheredWrites.byteLimit {
      let code = flush(file)
      guard code == SQLITE_OK else { return code }
    }
    guard size <= GatheredWrites.byteLimit else {
      isWhole = false
      return calls.pointee.xWrite?(file, source, Int32(size), offset) ?? SQLITE_IOERR
    }
    if count == 0 { start = offset }
    (bytes + count).copyMemory(from: source, byteCount: size)
    count += size
    return SQLITE_OK
  }

  /// Where that fails nothing stays behind: SQLite gives the transaction up, and the next one writes to the same places.
  func flush(_ file: UnsafeMutablePointer<sqlite3_file>) -> Int32 {
    guard count > 0 else { return SQLITE_OK }
    defer { count = 0 }
    isWhole = false
    return calls.pointee.xWrite?(file, bytes, Int32(count), start) ?? SQLITE_IOERR
  }

  /// As ``flush(_:)``, right before a sync.
  func flushForSync(_ file: UnsafeMutablePointer<sqlite3_file>) -> Int32 {
    let isSmall = isWhole && count > 0
    let end = start + sqlite3_int64(count)
    let code = flush(file)
    isWhole = true
    if code == SQLITE_OK, isSmall { makeRoom(file, behind: end) }
    return code
  }

  /// Nobody asked for it: where it fails, as on a full disk, the commit is none the worse.
  private func makeRoom(_ file: UnsafeMutablePointer<sqlite3_file>, behind end: sqlite3_int64) {
    var size: sqlite3_int64 = 0
    guard calls.pointee.xFileSize?(file, &size) == SQLITE_OK, size <= end else { return }
    bytes.initializeMemory(as: UInt8.self, repeating: 0, count: GatheredWrites.byteLimit)
    for offset in stride(from: 0, to: GatheredWrites.roomByteCount, by: GatheredWrites.byteLimit) {
      let code = calls.pointee.xWrite?(file, bytes, Int32(GatheredWrites.byteLimit), end + sqlite3_int64(offset))
      guard code == SQLITE_OK else { return }
    }
  }
}
