import CSQLite
import Foundation
import TestSupport

/// A disk in memory for one SQLite connection at a time, registered as a file layer under ``name``. It knows what has
/// been synced, fails the operation it is told to, and can lose power.
///
/// Used by one thread: the test's.
final class FaultDisk {
  enum Fault: String, CaseIterable {
    /// The operation fails with EIO, once. A sync that fails has lost what it should have written, as Linux does it.
    case inputOutput
    /// From this operation on, each one that needs space fails for lack of it until ``heal()``.
    case full
    /// As `full`, with EROFS.
    case readOnly
    /// The power goes before the operation: it and everything later fails.
    case crash
  }

  /// What becomes of writes that were not synced before the next start.
  enum Unsynced {
    /// Only the process ended: the system's cache still has everything.
    case cached
    /// The power went, and they with it.
    case lost
    /// The power went just after the disk had written them.
    case kept
    /// Each 512-byte sector by chance, in no order.
    case torn(seed: UInt64)
  }

  let name: String
  private(set) var files: [String: File]
  /// Writes, syncs, truncations and deletions so far.
  private(set) var operations = 0
  private(set) var faultsHit = 0
  var lastError: Int32 = 0
  private var fault: (kind: Fault, operation: Int)?
  private var isPowerless = false
  private(set) var syncsFail = false
  private let layer: UnsafeMutablePointer<sqlite3_vfs>

  private nonisolated(unsafe) static var count = 0  // guarded by countLock
  private static let countLock = NSLock()

  init(files: [String: File] = [:]) {
    self.files = files
    name = FaultDisk.countLock.withLock {
      FaultDisk.count += 1
      return "fault-disk-\(FaultDisk.count)"
    }
    layer = .allocate(capacity: 1)
    layer.initialize(to: FaultDisk.makeLayer(name: strdup(name)))
    layer.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
    sqlite3_vfs_register(layer, 0)
  }

  deinit {
    sqlite3_vfs_unregister(layer)
    free(UnsafeMutableRawPointer(mutating: layer.pointee.zName))
    layer.deallocate()
  }

  func fail(_ kind: Fault, atOperation operation: Int) { fault = (kind, operation) }
  func heal() { fault = nil }
  /// Every sync fails from now on.
  func failSyncs() { syncsFail = true }

  /// The disk as the next start finds it.
  func afterRestart(_ unsynced: Unsynced) -> FaultDisk {
    FaultDisk(files: files.mapValues { File(content: $0.afterRestart(unsynced)) })
  }

  /// Counts an operation and answers what becomes of it: nil where it goes well.
  func attempt(needsSpace: Bool) -> Fault? {
    operations += 1
    if isPowerless { return .crash }
    guard let fault else { return nil }
    let isDue =
      switch fault.kind {
      case .inputOutput, .crash: operations == fault.operation
      case .full, .readOnly: operations >= fault.operation && needsSpace
      }
    guard isDue else { return nil }
    faultsHit += 1
    isPowerless = fault.kind == .crash
    return fault.kind
  }

  func file(_ path: String, makes: Bool) -> File? {
    if let known = files[FaultDisk.name(path)] { return known }
    guard makes else { return nil }
    let made = File(content: [])
    files[FaultDisk.name(path)] = made
    return made
  }

  func remove(_ path: String) { files[FaultDisk.name(path)] = nil }
  func exists(_ path: String) -> Bool { files[FaultDisk.name(path)] != nil }

  /// The directory does not matter, so that a test may use another for each start.
  private static func name(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }
}

extension FaultDisk {
  final class File {
    /// What the process sees.
    private(set) var content: [UInt8]
    /// What is on disk for certain.
    private var durable: [UInt8]
    private var pending: [Pending] = []
    private var regions: [UnsafeMutableRawPointer] = []

    private enum Pending {
      case write(offset: Int, bytes: [UInt8])
      case truncate(Int)
    }

    init(content: [UInt8]) { (self.content, durable) = (content, content) }
    deinit { for region in regions { region.deallocate() } }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
      File.apply(.write(offset: offset, bytes: Array(bytes)), to: &content)
      pending.append(.write(offset: offset, bytes: Array(bytes)))
    }

    func truncate(_ size: Int) {
      File.apply(.truncate(size), to: &content)
      pending.append(.truncate(size))
    }

    func sync() {
      for change in pending { File.apply(change, to: &durable) }
      pending = []
    }

    func loseUnsynced() { pending = [] }

    /// A region of the shared index of the write-ahead log; it is lost with the process.
    func region(_ index: Int, size: Int, makes: Bool) -> UnsafeMutableRawPointer? {
      while regions.count <= index {
        guard makes else { return nil }
        let region = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
        region.initializeMemory(as: UInt8.self, repeating: 0, count: size)
        regions.append(region)
      }
      return regions[index]
    }

    func afterRestart(_ unsynced: Unsynced) -> [UInt8] {
      var result = durable
      switch unsynced {
      case .cached: return content
      case .lost: break
      case .kept: for change in pending { File.apply(change, to: &result) }
      case .torn(let seed):
        var random = SplitMix64(seed: seed)
        for change in pending.flatMap(File.sectors).shuffled(using: &random) where Bool.random(using: &random) {
          File.apply(change, to: &result)
        }
      }
      return result
    }

    private static func sectors(_ change: Pending) -> [Pending] {
      guard case .write(let offset, let bytes) = change else { return [change] }
      return stride(from: 0, to: bytes.count, by: 512).map { start in
        .write(offset: offset + start, bytes: Array(bytes[start..<min(start + 512, bytes.count)]))
      }
    }

    private static func apply(_ change: Pending, to content: inout [UInt8]) {
      switch change {
      case .truncate(let size):
        if size < content.count { content.removeSubrange(size...) } else { grow(&content, to: size) }
      case .write(let offset, let bytes):
        grow(&content, to: offset + bytes.count)
        // Byte loops of the collections are slow in debug builds, and this runs a million times.
        content.withUnsafeMutableBytes { content in
          if let start = content.baseAddress { memcpy(start + offset, bytes, bytes.count) }
        }
      }
    }

    private static func grow(_ content: inout [UInt8], to size: Int) {
      if size > content.count { content += [UInt8](repeating: 0, count: size - content.count) }
    }
  }
}
