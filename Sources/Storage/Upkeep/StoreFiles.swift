import CSQLite

/// What the store does with its files beside SQLite: on the system, or in a registered file layer, which has a single
/// directory and speaks the file controls of `CSQLite`.
struct StoreFiles: Sendable {
  /// Name of the layer; nil for the system.
  let layer: String?

  func exists(_ path: String) -> Bool {
    guard let layer = found else { return FileSystem.exists(path) }
    var result: Int32 = 0
    // Not SQLITE_ACCESS_EXISTS, to which an empty file does not exist.
    let code = layer.pointee.xAccess?(layer, path, SQLITE_ACCESS_READWRITE, &result) ?? SQLITE_IOERR
    return code == SQLITE_OK && result != 0
  }

  /// Nil where the file is not there.
  func size(_ path: String) -> Int64? {
    guard layer != nil else { return FileSystem.size(path) }
    guard exists(path) else { return nil }
    return try? withFile(path) { file, calls throws(StoreError) in
      var size: Int64 = 0
      try check(calls.xFileSize?(file, &size), "measure", path)
      return size
    }
  }

  func isEmpty(_ path: String) -> Bool { (size(path) ?? 0) == 0 }

  func makeDirectory(_ path: String) throws(StoreError) {
    if layer == nil { try FileSystem.makeDirectory(path) }
  }

  /// A layer's files have no owner, and SQLite makes them.
  func makePrivateFile(_ path: String) throws(StoreError) {
    if layer == nil { try FileSystem.makePrivateFile(path) }
  }

  /// Makes an empty file that its owner alone may read. False where the name is taken. In a layer SQLite makes it.
  func makeNewFile(_ path: String) throws(StoreError) -> Bool {
    layer == nil ? try FileSystem.makeNewFile(path) : !exists(path)
  }

  func remove(_ path: String) throws(StoreError) {
    guard let layer = found else { return try FileSystem.remove(path) }
    guard exists(path) else { return }
    try check(layer.pointee.xDelete?(layer, path, 0), "remove", path)
  }

  /// Moves without replacing: the new name must be free.
  func move(_ old: String, to new: String) throws(StoreError) {
    guard layer != nil else { return try FileSystem.move(old, to: new) }
    guard !exists(new) else { throw .alreadyExists(path: new) }
    try withFile(old) { file, calls throws(StoreError) in
      let code = new.withCString {
        calls.xFileControl?(file, SEAMESH_FCNTL_RENAME, UnsafeMutableRawPointer(mutating: $0))
      }
      try check(code, "rename", old)
    }
  }

  /// Waits until a file's content is on disk.
  func sync(_ path: String) throws(StoreError) {
    guard layer != nil else { return try FileSystem.sync(path) }
    try withFile(path) { file, calls throws(StoreError) in
      try check(calls.xSync?(file, SQLITE_SYNC_NORMAL), "sync", path)
    }
  }

  /// Writes a file's bytes over themselves, and waits until they are on disk. What a failed sync was to write the system's
  /// cache goes on showing, but only what is written once more gets to the disk.
  func writeAgain(_ path: String) throws(StoreError) {
    guard layer != nil else { return try FileSystem.writeAgain(path) }
    try withFile(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL) { file, calls throws(StoreError) in
      var size: Int64 = 0
      try check(calls.xFileSize?(file, &size), "measure", path)
      var piece = [UInt8](repeating: 0, count: FileSystem.rewrittenAtOnce)
      var offset: Int64 = 0
      while offset < size {
        let count = Int32(clamping: min(size - offset, Int64(piece.count)))
        try check(calls.xRead?(file, &piece, count, offset), "read", path)
        try check(calls.xWrite?(file, piece, count, offset), "write again", path)
        offset += Int64(count)
      }
      try check(calls.xSync?(file, SQLITE_SYNC_NORMAL), "sync", path)
    }
  }

  /// Waits until the names in the directory of `path`, a file that is there, are on disk.
  func syncNames(beside path: String) throws(StoreError) {
    guard layer != nil else { return try FileSystem.sync(FileSystem.parent(path)) }
    try withFile(path) { file, calls throws(StoreError) in
      try check(calls.xFileControl?(file, SEAMESH_FCNTL_SYNC_NAMES, nil), "sync names", path)
    }
  }

  // MARK: The layer

  private var found: UnsafeMutablePointer<sqlite3_vfs>? { layer.flatMap { sqlite3_vfs_find($0) } }

  private func withFile<Result>(
    _ path: String, _ flags: Int32 = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB,
    _ body: (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    guard let layer = found else { throw .missing(path: path) }
    let slot = UnsafeMutableRawPointer.allocate(
      byteCount: Int(layer.pointee.szOsFile), alignment: MemoryLayout<sqlite3_file>.alignment)
    defer { slot.deallocate() }
    let file = slot.assumingMemoryBound(to: sqlite3_file.self)
    try check(layer.pointee.xOpen?(layer, path, file, flags, nil), "open", path)
    guard let calls = file.pointee.pMethods?.pointee else { throw .missing(path: path) }
    defer { _ = calls.xClose?(file) }
    return try body(file, calls)
  }

  private func check(_ code: Int32?, _ operation: String, _ path: String) throws(StoreError) {
    guard code != SQLITE_OK else { return }
    let systemError = found.flatMap { layer in layer.pointee.xGetLastError?(layer, 0, nil) } ?? 0
    throw StoreError(
      SQLiteError(
        extendedCode: code ?? SQLITE_NOTFOUND, systemError: systemError, message: "file layer",
        operation: "\(operation) \(path)"
      ))
  }
}
