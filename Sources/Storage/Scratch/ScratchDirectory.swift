#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A directory for one store that nobody else sees, where `TMPDIR` says: gone with this value, and all that is in it. Of a process
/// that was killed it stays.
package final class ScratchDirectory {
  package let path: String

  package init() throws(StoreError) {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/var/tmp"
    var template = Array("\(parent)/seamesh-scratch-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw .system("make a directory", parent) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Files that a store makes lie side by side.
  deinit {
    guard let names = opendir(path) else { return }
    while let entry = readdir(names) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { _ = unlink("\(path)/\(name)") }
    }
    closedir(names)
    _ = rmdir(path)
  }
}
