#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The files of one directory, in memory, as a SQLite file layer. It knows what has been synced, fails what it is told
/// to, and can lose power.
///
/// Directories in paths do not matter: a file is known by its last component. One thread at a time uses a disk, with any
/// number of connections.
package final class SimulatedDisk {
  /// What a disk writes whole or not at all.
  package static let sectorByteCount = 512

  /// As processes see them.
  private(set) var files: [String: DiskFile]
  /// The names that are on disk for certain.
  private var durableFiles: [String: DiskFile]
  package private(set) var operations = DiskOperations()
  /// How often a planned fault was met.
  package private(set) var faultsHit = 0
  /// Bytes of all files together; what would grow beyond is refused with ENOSPC. Nil: no limit.
  package var byteLimit: Int?
  /// How long each sync takes, in virtual time. Nobody waits: see ``takeDelay()``.
  package var millisecondsPerSync: UInt64 = 0
  private var delay: UInt64 = 0
  var lastError: Int32 = 0
  private var fault: (kind: DiskFault, operation: Int)?
  private var failingRead: Int?
  private var syncsFail = false
  private var isPowerless = false
  private lazy var layer = FileLayer(self)

  package init() { (files, durableFiles) = ([:], [:]) }

  private init(files: [String: DiskFile], durableFiles: [String: DiskFile]) {
    (self.files, self.durableFiles) = (files, durableFiles)
  }

  /// The name under which SQLite finds this disk, unique in the process. Registered at first use.
  package var name: String { layer.name }

  // MARK: Faults

  /// Counted from the disk's beginning: ``DiskOperations/changes`` are behind it.
  package func fail(_ kind: DiskFault, atOperation operation: Int) { fault = (kind, operation) }
  /// The `number`-th read fails with EIO, once.
  package func failRead(_ number: Int) { failingRead = number }
  /// Every sync fails from now on.
  package func failSyncs() { syncsFail = true }
  package func cutPower() { isPowerless = true }
  /// The planned fault that was not met yet, or lasts.
  package var plannedFault: DiskFault? { fault?.kind }
  /// Ends a planned or lasting want of room, and nothing else.
  package func makeRoom() {
    byteLimit = nil
    if fault?.kind == .full { fault = nil }
  }

  package func heal() {
    fault = nil
    failingRead = nil
    syncsFail = false
  }

  // MARK: Copies

  /// The same disk once more, with what is not synced yet: a machine's clone, or a state to come back to. Neither shows
  /// in the other. Planned faults, limits and counts stay behind.
  package func copy() -> SimulatedDisk {
    var copies: [ObjectIdentifier: DiskFile] = [:]
    func copied(_ file: DiskFile) -> DiskFile {
      if let known = copies[ObjectIdentifier(file)] { return known }
      let made = DiskFile(copying: file)
      copies[ObjectIdentifier(file)] = made
      return made
    }
    return SimulatedDisk(files: files.mapValues(copied), durableFiles: durableFiles.mapValues(copied))
  }

  /// The disk as the next start finds it. This one stays as it is.
  package func afterRestart(_ restart: Restart) -> SimulatedDisk {
    guard case .powerLoss(let rest) = restart else { return copy() }
    var random = DiskRandom(seed: 0)
    if case .torn(let seed) = rest { random = DiskRandom(seed: seed) }
    var found: [String: DiskFile] = [:]
    for name in Set(files.keys).union(durableFiles.keys).sorted() {
      let (seen, certain) = (files[name], durableFiles[name])
      let staysNew =
        switch rest {
        case .lost: false
        case .kept: true
        case .torn: seen === certain || Bool.random(using: &random)
        }
      if let file = staysNew ? seen : certain { found[name] = file.afterPowerLoss(rest, &random) }
    }
    return SimulatedDisk(files: found, durableFiles: found)
  }

  // MARK: Files from outside

  package var fileNames: [String] { files.keys.sorted() }
  package var usedBytes: Int { files.values.reduce(0) { $0 + $1.content.count } }
  package func contents(of name: String) -> [UInt8]? { files[name]?.content.bytes }

  /// Puts a file there, or takes it away, as somebody else would while no process runs. Durable, and never refused.
  package func setContents(of name: String, to bytes: [UInt8]?) {
    let file = bytes.map { DiskFile(ChunkedBytes($0)) }
    (files[name], durableFiles[name]) = (file, file)
  }

  /// Virtual milliseconds that syncs have taken since the last question.
  package func takeDelay() -> UInt64 {
    defer { delay = 0 }
    return delay
  }
}

// MARK: Operations

extension SimulatedDisk {
  /// Counts an operation and answers what becomes of it: nil where it goes well.
  func attempt(_ kind: DiskOperations.Kind, growth: Int = 0) -> DiskFault? {
    operations[kind] += 1
    operations.changes += 1
    if isPowerless { return .crash }
    if let fault = dueFault(kind) { return fault }
    if growth > 0, let byteLimit, usedBytes + growth > byteLimit { return .full }
    return nil
  }

  private func dueFault(_ kind: DiskOperations.Kind) -> DiskFault? {
    guard let fault, operations.changes >= fault.operation else { return nil }
    let strikes =
      switch fault.kind {
      case .inputOutput, .crash: operations.changes == fault.operation
      case .full, .readOnly: kind != .sync && kind != .truncate && kind != .delete
      }
    guard strikes else { return nil }
    faultsHit += 1
    isPowerless = fault.kind == .crash
    return fault.kind
  }

  /// Whether a file that is to be written can be opened for reading alone.
  func refusesWriters() -> Bool {
    guard let fault, fault.kind == .readOnly, operations.changes + 1 >= fault.operation else { return false }
    faultsHit += 1
    return true
  }

  func attemptRead(_ count: Int) -> DiskFault? {
    operations[.read] += 1
    operations.bytesRead += count
    if isPowerless { return .crash }
    guard failingRead == operations[.read] else { return nil }
    faultsHit += 1
    return .inputOutput
  }

  func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) -> DiskFault? {
    if let fault = attempt(.write, growth: offset + bytes.count - file.content.count) { return fault }
    operations.bytesWritten += bytes.count
    file.write(bytes, at: offset)
    return nil
  }

  func truncate(_ file: DiskFile, to size: Int) -> DiskFault? {
    if let fault = attempt(.truncate, growth: size - file.content.count) { return fault }
    file.truncate(size)
    return nil
  }

  func sync(_ file: DiskFile) -> DiskFault? {
    delay += millisecondsPerSync
    let fault = attempt(.sync) ?? (syncsFail ? .inputOutput : nil)
    if let fault, fault != .crash { file.loseUnsynced() }
    guard fault == nil else { return fault }
    file.sync()
    return nil
  }

  func make(_ name: String) -> DiskFault? {
    if let fault = attempt(.make) { return fault }
    files[name] = DiskFile()
    return nil
  }

  func delete(_ name: String) -> DiskFault? {
    if let fault = attempt(.delete) { return fault }
    files[name] = nil
    return nil
  }

  func rename(_ old: String, to new: String) -> DiskFault? {
    if let fault = attempt(.rename) { return fault }
    files[new] = files.removeValue(forKey: old)
    return nil
  }

  /// Puts the names as they are now on disk.
  func syncNames() { durableFiles = files }
}
