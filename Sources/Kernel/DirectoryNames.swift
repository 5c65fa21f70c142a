import Glibc

/// What a directory holds.
package enum DirectoryNames {
  /// In no order, without itself and its parent.
  package static func of(_ path: String) throws(SystemError) -> [String] {
    guard let directory = opendir(path) else { throw SystemError("opendir") }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}
