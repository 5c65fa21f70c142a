import Kernel
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A directory for one store that nobody else sees, where `TMPDIR` says: gone with this value, and all that is in it. Whoever
/// makes one takes away those that killed processes left: nobody holds their locks.
package final class ScratchDirectory {
  package let path: String
  /// The store's own, held before there is one.
  package let lock: DirectoryLock

  static let prefix = "seamesh-scratch-"
  private static let template = "XXXXXX"
  /// Another process that starts may take a new one away until it is locked.
  private static let attempts = 8
  private static let living = Mutex<Set<String>>([])

  package convenience init() throws(StoreError) {
    try self.init(in: getenv("TMPDIR").map { String(cString: $0) } ?? "/var/tmp")
  }

  init(in parent: String) throws(StoreError) {
    ScratchDirectory.sweep(parent)
    (path, lock) = try ScratchDirectory.make(in: parent)
    ScratchDirectory.living.withLock { [path] in _ = $0.insert(path) }
  }

  deinit {
    ScratchDirectory.remove(path)
    ScratchDirectory.living.withLock { [path] in _ = $0.remove(path) }
  }

  /// All of this process, which is about to end at once. What is open in them goes on until then.
  package static func removeAll() {
    for path in living.withLock({ $0 }) { remove(path) }
  }

  private static func make(in parent: String) throws(StoreError) -> (String, DirectoryLock) {
    for _ in 0..<attempts {
      var name = Array("\(parent)/\(prefix)\(template)".utf8CString)
      guard mkdtemp(&name) != nil else { throw .system("make a directory", parent) }
      let path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      do throws(StoreError) {
        let lock = try DirectoryLock(directory: path)
        if access("\(path)/\(DirectoryLock.fileName)", F_OK) == 0 { return (path, lock) }
      } catch {
        // Somebody who takes it away has locked it for that, or has done it.
        if case .alreadyRunning = error { continue }
        guard access(path, F_OK) != 0 else {
          remove(path)
          throw error
        }
      }
    }
    throw .busy
  }

  // MARK: Taking away

  /// Those of this user that no living process has locked; nothing else is touched, and what cannot be taken away stays.
  private static func sweep(_ parent: String) {
    for name in names(in: parent) where name.hasPrefix(prefix) && name.utf8.count == (prefix + template).utf8.count {
      let path = "\(parent)/\(name)"
      var found = stat()
      guard lstat(path, &found) == 0, found.st_mode & S_IFMT == S_IFDIR, found.st_uid == geteuid() else { continue }
      guard let lock = try? DirectoryLock(directory: path) else { continue }
      withExtendedLifetime(lock) { remove(path) }
    }
  }

  /// The lock goes last: until then nobody takes this for a directory of nobody's.
  private static func remove(_ path: String) {
    // A file may come while others go.
    for _ in 0..<attempts {
      for name in names(in: path) where name != DirectoryLock.fileName { _ = unlink("\(path)/\(name)") }
      _ = unlink("\(path)/\(DirectoryLock.fileName)")
      guard rmdir(path) != 0, errno == ENOTEMPTY || errno == EEXIST else { return }
    }
  }

  private static func names(in path: String) -> [String] { (try? DirectoryNames.of(path)) ?? [] }
}
