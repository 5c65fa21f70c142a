import CSQLite

/// Writes to one write-ahead log that go to the system together. SQLite makes two of each frame, of which hardly any fills a
/// block of the file system: the calls cost more than the bytes do.
///
/// What is gathered nobody can miss: a commit counts only once its sync, which is asked for through here, has returned.
final class GatheredWrites {
  private let calls: UnsafePointer<sqlite3_io_methods>
  private let bytes = UnsafeMutableRawPointer.allocate(byteCount: GatheredWrites.byteLimit, alignment: 16)
  private var start: sqlite3_int64 = 0
  private var count = 0

  /// The system's layer writes less than 128 KiB in one call, and takes a multiple of that for nothing at all: so it would find
  /// the disk full.
  static let byteLimit = 124 * 1024

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
    return calls.pointee.xWrite?(file, bytes, Int32(count), start) ?? SQLITE_IOERR
  }
}
