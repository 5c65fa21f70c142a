#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The few calls of the operating system that the store makes beside SQLite.
enum FileSystem {
  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Nil where there is no such file.
  static func identity(_ path: String) -> FileIdentity? {
    var facts = stat()
    guard stat(path, &facts) == 0 else { return nil }
    return FileIdentity(device: UInt64(facts.st_dev), number: UInt64(facts.st_ino))
  }

  /// Not there, or nothing in it.
  static func isEmpty(_ path: String) -> Bool { (size(path) ?? 0) == 0 }

  /// Makes the directory, readable by its owner alone, if it is not there. Parents must exist.
  static func makeDirectory(_ path: String) throws(StoreError) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .system("make directory", path) }
  }

  /// Makes an empty file that its owner alone may read, if there is none: SQLite would follow the umask, and gives its
  /// side files the same rights.
  static func makePrivateFile(_ path: String) throws(StoreError) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .system("make", path) }
    close(descriptor)
  }

  /// Makes an empty file that its owner alone may read. False where the name is taken, by whatever it is.
  static func makeNewFile(_ path: String) throws(StoreError) -> Bool {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      if errno == EEXIST { return false }
      throw .system("make", path)
    }
    close(descriptor)
    return true
  }

  static func remove(_ path: String) throws(StoreError) {
    guard unlink(path) == 0 || errno == ENOENT else { throw .system("remove", path) }
  }

  /// An empty one.
  static func removeDirectory(_ path: String) throws(StoreError) {
    guard rmdir(path) == 0 || errno == ENOENT else { throw .system("remove", path) }
  }

  /// Moves without replacing: the new name must be free.
  static func move(_ old: String, to new: String) throws(StoreError) {
    guard link(old, new) == 0 else {
      if errno == EEXIST { throw .alreadyExists(path: new) }
      // File systems without hard links: the check and the rename are two steps there.
      guard !exists(new) else { throw .alreadyExists(path: new) }
      try rename(old, to: new)
      return
    }
    try remove(old)
  }

  /// Gives the file a second name. False where the file system has none to give.
  static func addName(_ new: String, to old: String) throws(StoreError) -> Bool {
    if link(old, new) == 0 { return true }
    guard errno != EEXIST else { throw .alreadyExists(path: new) }
    return false
  }

  /// Takes the place of what has the new name.
  static func rename(_ old: String, to new: String) throws(StoreError) {
    #if canImport(Glibc)
      let code = Glibc.rename(old, new)
    #else
      let code = Darwin.rename(old, new)
    #endif
    guard code == 0 else { throw .system("rename", old) }
  }

  /// Waits until content (of a file) or names (of a directory) are on disk.
  static func sync(_ path: String) throws(StoreError) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system("open", path) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw .inputOutput("sync \(path): errno \(errno)") }
  }

  /// Writes a file's bytes over themselves, and waits until they are on disk.
  static func writeAgain(_ path: String) throws(StoreError) {
    let descriptor = open(path, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system("open", path) }
    defer { close(descriptor) }
    var piece = [UInt8](repeating: 0, count: rewrittenAtOnce)
    var offset = 0
    while true {
      let count = pread(descriptor, &piece, piece.count, off_t(offset))
      guard count >= 0 else { throw .system("read", path) }
      guard count > 0 else { break }
      let written = pwrite(descriptor, piece, count, off_t(offset))
      guard written > 0 else { throw .system("write again", path) }
      offset += written
    }
    guard fsync(descriptor) == 0 else { throw .inputOutput("sync \(path): errno \(errno)") }
  }

  /// Writes the bytes of a file into another, an empty one that is there. `progress` gets how many there are.
  static func copy(
    _ old: String, to new: String, stepByteCount: Int, progress: (Int64) -> Void
  ) throws(StoreError) {
    let from = open(old, O_RDONLY | O_CLOEXEC)
    guard from >= 0 else { throw .system("open", old) }
    defer { close(from) }
    let to = open(new, O_WRONLY | O_CLOEXEC)
    guard to >= 0 else { throw .system("open", new) }
    defer { close(to) }
    var piece = [UInt8](repeating: 0, count: stepByteCount)
    var offset = 0
    while true {
      let count = pread(from, &piece, piece.count, off_t(offset))
      guard count >= 0 else { throw .system("read", old) }
      guard count > 0 else { return }
      let written = pwrite(to, piece, count, off_t(offset))
      guard written > 0 else { throw .system("write", new) }
      offset += written
      progress(Int64(offset))
    }
  }

  static let rewrittenAtOnce = 256 * 1024

  /// Nil where the file is not there.
  static func size(_ path: String) -> Int64? {
    var information = stat()
    return stat(path, &information) == 0 ? Int64(information.st_size) : nil
  }

  static func parent(_ path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

/// Space on the file system that holds a directory.
package struct DiskSpace: Sendable, Hashable {
  /// For ordinary users: what is reserved for root is not counted.
  package let availableBytes: Int64
  package let totalBytes: Int64
  /// Mounted read-only. A directory without write permission shows when it is opened.
  package let isReadOnly: Bool

  package static func of(_ directory: String) throws(StoreError) -> DiskSpace {
    var information = statvfs()
    guard statvfs(directory, &information) == 0 else { throw .system("inspect", directory) }
    let block = Int64(information.f_frsize)
    return DiskSpace(
      availableBytes: Int64(clamping: information.f_bavail) &* block,
      totalBytes: Int64(clamping: information.f_blocks) &* block,
      isReadOnly: information.f_flag & UInt(ST_RDONLY) != 0)
  }
}

/// Tells a file apart from another one under the same name.
struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let number: UInt64
}
