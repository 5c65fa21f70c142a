import CSQLite

/// SQLite's open file: the calls first, as C wants it, then ours. See https://sqlite.org/c3ref/io_methods.html.
struct OpenFile {
  var methods: UnsafePointer<sqlite3_io_methods>?
  var handle: Unmanaged<DiskHandle>?

  nonisolated(unsafe) static let calls: UnsafePointer<sqlite3_io_methods> = {  // written once, here
    let calls = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    var made = sqlite3_io_methods()
    made.iVersion = 2
    setByteCalls(&made)
    setLockCalls(&made)
    setIndexCalls(&made)
    calls.initialize(to: made)
    return UnsafePointer(calls)
  }()

  private static func setByteCalls(_ calls: inout sqlite3_io_methods) {
    calls.xClose = { pointer in
      guard let handle = slot(pointer)?.pointee.handle else { return SQLITE_OK }
      handle.takeUnretainedValue().close()
      handle.release()
      return SQLITE_OK
    }
    calls.xRead = { pointer, out, count, offset in
      guard let handle = opened(pointer) else { return SQLITE_IOERR }
      return handle.read(UnsafeMutableRawBufferPointer(start: out, count: Int(count)), at: Int(offset))
    }
    calls.xWrite = { pointer, bytes, count, offset in
      guard let handle = opened(pointer) else { return SQLITE_IOERR }
      return handle.write(UnsafeRawBufferPointer(start: bytes, count: Int(count)), at: Int(offset))
    }
    calls.xTruncate = { pointer, size in opened(pointer)?.truncate(to: Int(size)) ?? SQLITE_IOERR }
    calls.xSync = { pointer, _ in opened(pointer)?.sync() ?? SQLITE_IOERR }
    calls.xFileSize = { pointer, size in
      guard let handle = opened(pointer) else { return SQLITE_IOERR }
      size?.pointee = Int64(handle.file.content.count)
      return SQLITE_OK
    }
    calls.xFileControl = { pointer, operation, argument in
      opened(pointer)?.control(operation, argument) ?? SQLITE_NOTFOUND
    }
    calls.xSectorSize = { _ in Int32(SimulatedDisk.sectorByteCount) }
    // As SQLite assumes of every disk on Linux: a write does not damage bytes beside it.
    calls.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
  }

  private static func setLockCalls(_ calls: inout sqlite3_io_methods) {
    calls.xLock = { pointer, level in opened(pointer)?.lock(level) ?? SQLITE_IOERR }
    calls.xUnlock = { pointer, level in
      opened(pointer)?.unlock(level)
      return SQLITE_OK
    }
    calls.xCheckReservedLock = { pointer, result in
      result?.pointee = opened(pointer)?.file.locks.isReserved == true ? 1 : 0
      return SQLITE_OK
    }
  }

  private static func setIndexCalls(_ calls: inout sqlite3_io_methods) {
    calls.xShmMap = { pointer, index, size, makes, out in
      guard let handle = opened(pointer) else { return SQLITE_IOERR }
      let answer = handle.mapRegion(Int(index), byteCount: Int(size), makes: makes != 0)
      out?.pointee = answer.region
      return answer.code
    }
    calls.xShmLock = { pointer, first, count, flags in opened(pointer)?.lockIndex(first, count, flags) ?? SQLITE_IOERR }
    // One thread: nothing is out of order.
    calls.xShmBarrier = { _ in }
    calls.xShmUnmap = { pointer, _ in
      opened(pointer)?.unmapIndex()
      return SQLITE_OK
    }
  }
}

private func slot(_ pointer: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<OpenFile>? {
  UnsafeMutableRawPointer(pointer)?.assumingMemoryBound(to: OpenFile.self)
}

private func opened(_ pointer: UnsafeMutablePointer<sqlite3_file>?) -> DiskHandle? {
  slot(pointer)?.pointee.handle?.takeUnretainedValue()
}
