import Glibc

/// What a directory holds.
package enum DirectoryNames {
  /// In no order, without itself and its parent.
  package static func of(_ path: String) throws(SystemError) -> [String] {
    guard let directory = opendir(path) else { throw SystemError("opendir") }
    defer { closedir(directory) }
    var names: [String] = []
    while let name = try next(in: directory) { if name != ".", name != ".." { names.append(name) } }
    return names
  }

  private static func next(in directory: OpaquePointer) throws(SystemError) -> String? {
    errno = 0
    guard let entry = readdir(directory) else {
      guard errno == 0 else { throw SystemError("readdir") }
      return nil
    }
    // An entry is as long as its name: the array that it is declared as may reach beyond it.
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return nil }
    return String(cString: UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self))
  }
}
