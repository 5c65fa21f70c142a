import CSQLite
import Foundation

// The C face of the disk: what SQLite calls. See https://sqlite.org/c3ref/vfs.html and …/io_methods.html.

/// SQLite's open file: the methods first, as C wants it, then ours.
private struct OpenFile {
  var methods: UnsafePointer<sqlite3_io_methods>?
  var file: Unmanaged<FaultDisk.File>?
  var disk: Unmanaged<FaultDisk>?
}

private typealias FilePointer = UnsafeMutablePointer<sqlite3_file>

private func opened(_ pointer: FilePointer?) -> (file: FaultDisk.File, disk: FaultDisk)? {
  let slot = UnsafeMutableRawPointer(pointer)?.assumingMemoryBound(to: OpenFile.self).pointee
  guard let file = slot?.file?.takeUnretainedValue(), let disk = slot?.disk?.takeUnretainedValue() else { return nil }
  return (file, disk)
}

private func disk(_ layer: UnsafeMutablePointer<sqlite3_vfs>?) -> FaultDisk? {
  layer?.pointee.pAppData.map { Unmanaged<FaultDisk>.fromOpaque($0).takeUnretainedValue() }
}

extension FaultDisk {
  /// Answers the code for a failed operation, leaving `errno` for SQLite to ask for.
  private func code(of fault: Fault, otherwise code: Int32) -> Int32 {
    switch fault {
    case .full:
      lastError = ENOSPC
      return SQLITE_FULL
    case .readOnly: lastError = EROFS
    case .inputOutput, .crash: lastError = EIO
    }
    return code
  }

  fileprivate func write(_ file: File, _ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int32 {
    if let fault = attempt(needsSpace: true) { return code(of: fault, otherwise: SQLITE_IOERR | 3 << 8) }
    file.write(bytes, at: offset)
    return SQLITE_OK
  }

  fileprivate func truncate(_ file: File, to size: Int) -> Int32 {
    if let fault = attempt(needsSpace: false) { return code(of: fault, otherwise: SQLITE_IOERR | 6 << 8) }
    file.truncate(size)
    return SQLITE_OK
  }

  fileprivate func sync(_ file: File) -> Int32 {
    let fault = attempt(needsSpace: false)
    if fault != nil || syncsFail {
      if fault != .crash { file.loseUnsynced() }
      lastError = EIO
      return SQLITE_IOERR | 4 << 8
    }
    file.sync()
    return SQLITE_OK
  }

  fileprivate func delete(_ path: String) -> Int32 {
    if let fault = attempt(needsSpace: false) { return code(of: fault, otherwise: SQLITE_IOERR | 10 << 8) }
    remove(path)
    return SQLITE_OK
  }

  fileprivate func open(_ path: String, _ slot: UnsafeMutablePointer<OpenFile>, flags: Int32) -> Int32 {
    slot.pointee = OpenFile(methods: nil, file: nil, disk: nil)
    guard let file = file(path, makes: flags & SQLITE_OPEN_CREATE != 0) else { return SQLITE_CANTOPEN }
    slot.pointee = OpenFile(
      methods: FaultDisk.methods, file: .passRetained(file), disk: .passUnretained(self))
    return SQLITE_OK
  }

  static func makeLayer(name: UnsafeMutablePointer<CChar>?) -> sqlite3_vfs {
    var layer = sqlite3_vfs()
    layer.iVersion = 1
    layer.szOsFile = Int32(MemoryLayout<OpenFile>.size)
    layer.mxPathname = 1_024
    layer.zName = UnsafePointer(name)
    layer.xOpen = { layer, path, file, flags, outFlags in
      guard let disk = disk(layer), let path, let file else { return SQLITE_CANTOPEN }
      outFlags?.pointee = flags
      return disk.open(
        String(cString: path), UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self), flags: flags)
    }
    layer.xDelete = { layer, path, _ in
      guard let disk = disk(layer), let path, disk.exists(String(cString: path)) else { return SQLITE_IOERR | 23 << 8 }
      return disk.delete(String(cString: path))
    }
    layer.xAccess = { layer, path, _, result in
      result?.pointee = path.map { disk(layer)?.exists(String(cString: $0)) == true } == true ? 1 : 0
      return SQLITE_OK
    }
    layer.xFullPathname = { _, path, size, out in
      guard let path, let out, strlen(path) < Int(size) else { return SQLITE_CANTOPEN }
      strcpy(out, path)
      return SQLITE_OK
    }
    layer.xRandomness = { _, count, out in
      // The same salts in every run, so that every failure can be repeated.
      for index in 0..<Int(count) { out?[index] = CChar(index % 100) }
      return count
    }
    layer.xSleep = { _, microseconds in microseconds }
    layer.xCurrentTime = { _, out in
      out?.pointee = 2_460_000.5
      return SQLITE_OK
    }
    layer.xGetLastError = { layer, _, _ in disk(layer)?.lastError ?? 0 }
    return layer
  }

  private nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {  // written once, here
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    methods.initialize(to: makeMethods())
    return UnsafePointer(methods)
  }()

  private static func makeMethods() -> sqlite3_io_methods {
    var methods = sqlite3_io_methods()
    methods.iVersion = 2
    methods.xClose = { pointer in
      UnsafeMutableRawPointer(pointer)?.assumingMemoryBound(to: OpenFile.self).pointee.file?.release()
      return SQLITE_OK
    }
    methods.xRead = { pointer, out, count, offset in
      guard let (file, _) = opened(pointer), let out else { return SQLITE_IOERR }
      let available = max(0, min(Int(count), file.content.count - Int(offset)))
      file.content.withUnsafeBytes { content in
        if available > 0, let start = content.baseAddress { memcpy(out, start + Int(offset), available) }
      }
      memset(out + available, 0, Int(count) - available)
      return available == Int(count) ? SQLITE_OK : SQLITE_IOERR | 2 << 8  // SQLITE_IOERR_SHORT_READ
    }
    methods.xWrite = { pointer, bytes, count, offset in
      guard let (file, disk) = opened(pointer) else { return SQLITE_IOERR }
      return disk.write(file, UnsafeRawBufferPointer(start: bytes, count: Int(count)), at: Int(offset))
    }
    methods.xTruncate = { pointer, size in
      guard let (file, disk) = opened(pointer) else { return SQLITE_IOERR }
      return disk.truncate(file, to: Int(size))
    }
    methods.xSync = { pointer, _ in
      guard let (file, disk) = opened(pointer) else { return SQLITE_IOERR }
      return disk.sync(file)
    }
    methods.xFileSize = { pointer, size in
      guard let (file, _) = opened(pointer) else { return SQLITE_IOERR }
      size?.pointee = Int64(file.content.count)
      return SQLITE_OK
    }
    methods.xLock = { _, _ in SQLITE_OK }
    methods.xUnlock = { _, _ in SQLITE_OK }
    methods.xCheckReservedLock = { _, result in
      result?.pointee = 0
      return SQLITE_OK
    }
    methods.xFileControl = { pointer, operation, out in
      guard operation == SQLITE_FCNTL_LAST_ERRNO, let (_, disk) = opened(pointer) else { return SQLITE_NOTFOUND }
      out?.assumingMemoryBound(to: Int32.self).pointee = disk.lastError
      return SQLITE_OK
    }
    methods.xSectorSize = { _ in 512 }
    // As SQLite assumes of every disk on Linux: a write does not damage bytes beside it.
    methods.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
    methods.xShmMap = { pointer, index, size, makes, out in
      guard let (file, _) = opened(pointer) else { return SQLITE_IOERR }
      out?.pointee = file.region(Int(index), size: Int(size), makes: makes != 0)
      return SQLITE_OK
    }
    methods.xShmLock = { _, _, _, _ in SQLITE_OK }
    methods.xShmBarrier = { _ in }
    methods.xShmUnmap = { _, _ in SQLITE_OK }
    return methods
  }
}
