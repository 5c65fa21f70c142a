import CSQLite
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A disk as SQLite sees it: registered from here until it goes. See https://sqlite.org/c3ref/vfs.html.
final class FileLayer {
  let name: String
  private let layer: UnsafeMutablePointer<sqlite3_vfs>

  private static let made = Atomic(0)

  init(_ disk: SimulatedDisk) {
    name = "simulated-disk-\(FileLayer.made.add(1, ordering: .relaxed).newValue)"
    layer = .allocate(capacity: 1)
    layer.initialize(to: FileLayer.make(name: strdup(name)))
    layer.pointee.pAppData = Unmanaged.passUnretained(disk).toOpaque()
    sqlite3_vfs_register(layer, 0)
  }

  deinit {
    sqlite3_vfs_unregister(layer)
    free(UnsafeMutableRawPointer(mutating: layer.pointee.zName))
    layer.deallocate()
  }

  private static func make(name: UnsafeMutablePointer<CChar>?) -> sqlite3_vfs {
    var layer = sqlite3_vfs()
    layer.iVersion = 1
    layer.szOsFile = Int32(MemoryLayout<OpenFile>.size)
    layer.mxPathname = 1_024
    layer.zName = UnsafePointer(name)
    setFileCalls(&layer)
    // SQLite takes its chance from the system's layer whatever stands here; log salts differ from run to run.
    layer.xRandomness = { _, count, out in
      for index in 0..<Int(count) { out?[index] = CChar(index % 100) }
      return count
    }
    // Nobody else runs on this thread, so waiting would change nothing.
    layer.xSleep = { _, microseconds in microseconds }
    layer.xCurrentTime = { _, out in
      out?.pointee = 2_460_000.5
      return SQLITE_OK
    }
    layer.xGetLastError = { layer, _, _ in disk(layer)?.lastError ?? 0 }
    return layer
  }

  private static func setFileCalls(_ layer: inout sqlite3_vfs) {
    layer.xOpen = { layer, path, file, flags, outFlags in
      guard let disk = disk(layer), let path, let file else { return SQLITE_CANTOPEN }
      let slot = UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self)
      return disk.open(SimulatedDisk.name(path), slot, flags, outFlags)
    }
    layer.xDelete = { layer, path, syncsNames in
      guard let disk = disk(layer), let path else { return SQLITE_IOERR | 10 << 8 }
      let name = SimulatedDisk.name(path)
      guard disk.files[name] != nil else { return SQLITE_IOERR | 23 << 8 }  // SQLITE_IOERR_DELETE_NOENT
      if let fault = disk.delete(name) { return disk.code(of: fault, otherwise: SQLITE_IOERR | 10 << 8) }
      if syncsNames != 0 { disk.syncNames() }
      return SQLITE_OK
    }
    layer.xAccess = { layer, path, question, result in
      let file = path.flatMap { disk(layer)?.files[SimulatedDisk.name($0)] }
      // To SQLite an empty journal is none.
      let counts = file.map { question != SQLITE_ACCESS_EXISTS || $0.content.count > 0 } ?? false
      result?.pointee = counts ? 1 : 0
      return SQLITE_OK
    }
    layer.xFullPathname = { _, path, size, out in
      guard let path, let out, strlen(path) < Int(size) else { return SQLITE_CANTOPEN }
      strcpy(out, path)
      return SQLITE_OK
    }
  }
}

private func disk(_ layer: UnsafeMutablePointer<sqlite3_vfs>?) -> SimulatedDisk? {
  layer?.pointee.pAppData.map { Unmanaged<SimulatedDisk>.fromOpaque($0).takeUnretainedValue() }
}

extension SimulatedDisk {
  fileprivate func open(
    _ name: String, _ slot: UnsafeMutablePointer<OpenFile>, _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    slot.pointee = OpenFile(methods: nil, handle: nil)
    if files[name] == nil {
      guard flags & SQLITE_OPEN_CREATE != 0 else {
        lastError = ENOENT
        return SQLITE_CANTOPEN
      }
      if let fault = make(name) { return code(of: fault, otherwise: SQLITE_CANTOPEN) }
    }
    guard let file = files[name] else { return SQLITE_CANTOPEN }
    let journals = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL
    let syncsNames = flags & SQLITE_OPEN_CREATE != 0 && flags & journals != 0
    let handle = DiskHandle(self, file, name: name, syncsNames: syncsNames)
    slot.pointee = OpenFile(methods: OpenFile.calls, handle: .passRetained(handle))
    let reading = flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) | SQLITE_OPEN_READONLY
    outFlags?.pointee = flags & SQLITE_OPEN_READWRITE != 0 && refusesWriters() ? reading : flags
    return SQLITE_OK
  }
}
