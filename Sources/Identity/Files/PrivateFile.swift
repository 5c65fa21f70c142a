#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Small files that only their owner may read, and that are whole or absent after any crash.
package enum PrivateFile {
  /// Key and state files have a few hundred bytes.
  package static let byteLimit = 16 * 1024

  /// Refuses links, files of other users and files that others may read or write.
  package static func content(of path: String) throws(FileError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw errno == ELOOP ? .notRegular(path: path) : .last("open", path) }
    defer { close(descriptor) }
    try requirePrivate(descriptor, path)
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw .last("read", path) }
      if count == 0 { return content }
      content.append(contentsOf: chunk.prefix(count))
      guard content.count <= byteLimit else { throw .tooLarge(path: path, limit: byteLimit) }
    }
  }

  /// Refuses where the file is there. Callers hold the lock of the data directory, so nobody else can make it meanwhile.
  package static func create(_ path: String, _ content: [UInt8]) throws(FileError) {
    var information = stat()
    guard lstat(path, &information) != 0 else { throw .exists(path: path) }
    guard errno == ENOENT else { throw .last("stat", path) }
    try replace(path, content)
  }

  /// After a crash the file has its old or its new content, and the new one for certain once this has returned.
  package static func replace(_ path: String, _ content: [UInt8]) throws(FileError) {
    let temporary = path + ".new"
    // One name, taken anew each time: what a crash left behind neither piles up nor lends its permissions.
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .last("create", temporary) }
    do {
      try fill(descriptor, with: content, temporary)
    } catch {
      close(descriptor)
      unlink(temporary)
      throw error
    }
    guard close(descriptor) == 0 else { throw .last("close", temporary) }
    guard rename(temporary, path) == 0 else { throw .last("rename", path) }
    try synchroniseDirectory(of: path)
  }

  /// Gone for good once this has returned. One that was not there is no error.
  package static func remove(_ path: String) throws(FileError) {
    guard unlink(path) == 0 || errno == ENOENT else { throw .last("remove", path) }
    try synchroniseDirectory(of: path)
  }

  private static func fill(_ descriptor: Int32, with content: [UInt8], _ path: String) throws(FileError) {
    var rest = content[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw .last("write", path) }
      rest = rest.dropFirst(count)
    }
    guard fsync(descriptor) == 0 else { throw .last("fsync", path) }
  }

  /// A rename is durable only once the directory is.
  private static func synchroniseDirectory(of path: String) throws(FileError) {
    try synchronise(directory: parent(of: path))
  }

  /// Names made in, or moved into, the directory are on disk once this has returned.
  package static func synchronise(directory: String) throws(FileError) {
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .last("open", directory) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw .last("fsync", directory) }
  }

  private static func requirePrivate(_ descriptor: Int32, _ path: String) throws(FileError) {
    var information = stat()
    guard fstat(descriptor, &information) == 0 else { throw .last("stat", path) }
    guard information.st_mode & S_IFMT == S_IFREG else { throw .notRegular(path: path) }
    guard information.st_uid == geteuid() else { throw .otherOwner(path: path, owner: information.st_uid) }
    let mode = UInt32(information.st_mode) & 0o7777
    guard mode & 0o077 == 0 else { throw .openToOthers(path: path, mode: mode, isDirectory: false) }
  }

  private static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
