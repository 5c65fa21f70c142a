import Glibc
import Kernel

/// A directory for one run of measurements, taken away with everything in it at the end.
final class BenchScratch {
  let path: String

  init(in parent: String) throws(Failure) {
    var template = Array((parent + "/seamesh-bench.XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else {
      throw Failure(.failed, "no directory can be made in \(parent): \(String(cString: strerror(errno)))")
    }
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit { remove() }

  func remove() { BenchScratch.removeTree(path) }

  /// A directory that was made in it, with what it holds.
  func remove(_ name: String) { BenchScratch.removeTree(path + "/" + name) }

  static func makeDirectory(_ path: String) throws(Failure) {
    guard mkdir(path, 0o700) == 0 else {
      throw Failure(.failed, "\(path) cannot be made: \(String(cString: strerror(errno)))")
    }
  }

  /// Into a new file that only its owner may read.
  static func copy(_ old: String, to new: String) throws(Failure) {
    func failure() -> Failure {
      Failure(.failed, "\(old) cannot be copied to \(new): \(String(cString: strerror(errno)))")
    }
    let from = open(old, O_RDONLY | O_CLOEXEC)
    guard from >= 0 else { throw failure() }
    defer { close(from) }
    let to = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard to >= 0 else { throw failure() }
    defer { close(to) }
    var piece = [UInt8](repeating: 0, count: 1024 * 1024)
    while true {
      let count = read(from, &piece, piece.count)
      guard count >= 0 else { throw failure() }
      guard count > 0 else { return }
      var rest = piece[..<count]
      while !rest.isEmpty {
        let written = rest.withUnsafeBytes { write(to, $0.baseAddress, $0.count) }
        guard written > 0 else { throw failure() }
        rest = rest.dropFirst(written)
      }
    }
  }

  /// 0 where there is no such file.
  static func byteCount(of path: String) -> Int64 {
    var found = stat()
    return stat(path, &found) == 0 ? Int64(found.st_size) : 0
  }

  private static func removeTree(_ path: String) {
    // What a link leads to is somebody else's.
    for name in isDirectory(path) ? (try? DirectoryNames.of(path)) ?? [] : [] { removeTree(path + "/" + name) }
    _ = Glibc.remove(path)
  }

  private static func isDirectory(_ path: String) -> Bool {
    var found = stat()
    return lstat(path, &found) == 0 && found.st_mode & S_IFMT == S_IFDIR
  }

  /// An empty directory that only its owner may enter.
  func directory(_ name: String) throws(Failure) -> String {
    let made = path + "/" + name
    try BenchScratch.makeDirectory(made)
    return made
  }
}
