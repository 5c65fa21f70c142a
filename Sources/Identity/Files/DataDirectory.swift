#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The directory of one node: only its owner may enter, since the documents in it are as private as the keys.
package struct DataDirectory: Sendable, Equatable {
  package let path: String

  /// A directory that holds more, or that holds directories, is surely somebody's home or a system directory.
  private static let plainEntryLimit = 16

  /// A directory that is there, belongs to the caller and is closed to others.
  package init(existing path: String) throws(FileError) {
    let mode = try DataDirectory.ownMode(of: path)
    guard mode & 0o077 == 0 else { throw .openToOthers(path: path, mode: mode, isDirectory: true) }
    self.path = path
  }

  /// Makes the directory and those above it where they are missing.
  ///
  /// An empty directory, or one with a few plain files such as a configuration or a log, is closed to others (mode 0700);
  /// any other that is open to them is refused.
  package init(preparing path: String) throws(FileError) {
    try DataDirectory.make(path)
    if try DataDirectory.mustClose(path) {
      guard chmod(path, 0o700) == 0 else { throw .last("chmod", path) }
    }
    self.path = path
  }

  /// Throws where ``init(preparing:)`` surely would, and changes nothing.
  package static func check(preparing path: String) throws(FileError) {
    var information = stat()
    if stat(path, &information) == 0 || errno != ENOENT {
      _ = try mustClose(path)
    } else {
      try checkAbove(path)
    }
  }

  /// The nearest directory that is there must let this process make others in it.
  private static func checkAbove(_ path: String) throws(FileError) {
    guard let slash = path.lastIndex(of: "/") else { return }
    let above = slash == path.startIndex ? "/" : String(path[..<slash])
    guard access(above, W_OK | X_OK) != 0 else { return }
    guard errno == ENOENT, above != "/" else { throw .last("mkdir", path) }
    try checkAbove(above)
  }

  package func file(_ name: String) -> String { path + "/" + name }

  /// Others may look into it, and what is in it is nothing that they would miss.
  private static func mustClose(_ path: String) throws(FileError) -> Bool {
    let mode = try ownMode(of: path)
    guard mode & 0o077 != 0 else { return false }
    guard mode & 0o1000 == 0, try holdsFewPlainFiles(path) else { throw .sharedDirectory(path: path) }
    return true
  }

  private static func make(_ path: String) throws(FileError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      throw .last("mkdir", path)
    }
    try make(String(path[..<slash]))
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .last("mkdir", path) }
  }

  private static func ownMode(of path: String) throws(FileError) -> UInt32 {
    var information = stat()
    guard stat(path, &information) == 0 else { throw .last("stat", path) }
    guard information.st_mode & S_IFMT == S_IFDIR else {
      throw .failed(operation: "opening as a directory", path: path, code: ENOTDIR)
    }
    guard information.st_uid == geteuid() else { throw .otherOwner(path: path, owner: information.st_uid) }
    return UInt32(information.st_mode) & 0o7777
  }

  private static func holdsFewPlainFiles(_ path: String) throws(FileError) -> Bool {
    guard let directory = opendir(path) else { throw .last("opendir", path) }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name == "." || name == ".." { continue }
      count += 1
      var information = stat()
      guard lstat(path + "/" + name, &information) == 0 else { throw .last("stat", path + "/" + name) }
      guard count <= plainEntryLimit, information.st_mode & S_IFMT == S_IFREG else { return false }
    }
    return true
  }
}
