import Glibc

/// A file that is read in pieces; `-` is standard input.
final class InputFile {
  static let pieceBytes = 256 * 1024

  let path: String
  /// For people.
  var name: String { path == "-" ? "standard input" : path }
  /// Nil where it is not a regular file.
  let byteCount: Int64?
  private let descriptor: Int32

  init(_ path: String) throws(Failure) {
    self.path = path
    descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw fileFailure("cannot read \(path)") }
    var facts = stat()
    let isRegular = fstat(descriptor, &facts) == 0 && facts.st_mode & S_IFMT == S_IFREG
    byteCount = isRegular ? Int64(facts.st_size) : nil
  }

  deinit { if descriptor != STDIN_FILENO { close(descriptor) } }

  /// Empty at the end.
  func next() throws(Failure) -> [UInt8] {
    while true {
      var buffer = [UInt8](repeating: 0, count: InputFile.pieceBytes)
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw fileFailure("cannot read \(name)") }
      return Array(buffer.prefix(count))
    }
  }

  func readAll(limit: Int) throws(Failure) -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let piece = try next()
      if piece.isEmpty { return all }
      all += piece
      guard all.count <= limit else {
        throw Failure(.failed, "\(name) is larger than \(limit) bytes, the most that is taken")
      }
    }
  }
}

/// The whole of a small file. Where it does not exist, `missing`.
func readFile(_ path: String, limit: Int, ifMissing missing: String) throws(Failure) -> [UInt8] {
  guard access(path, F_OK) == 0 else { return Array(missing.utf8) }
  return try InputFile(path).readAll(limit: limit)
}

/// A file that its owner alone may read, in place of what was there.
func writePrivateFile(_ content: [UInt8], _ path: String) throws(Failure) {
  let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
  guard descriptor >= 0 else { throw fileFailure("cannot write \(path)", missing: .failed) }
  defer { close(descriptor) }
  var rest = content[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count < 0, errno == EINTR { continue }
    guard count > 0 else { throw fileFailure("cannot write \(path)") }
    rest = rest.dropFirst(count)
  }
}

/// Whether a file can be written there, as far as that shows before it is made.
func checkWritable(_ path: String) throws(Failure) {
  let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
  let isThere = access(path, F_OK) == 0
  if isThere, !isFile(path) { throw Failure(.failed, "cannot write \(path): it is a directory") }
  guard access(isThere ? path : folder + ".", isThere ? W_OK : W_OK | X_OK) == 0 else {
    throw fileFailure("cannot write \(path)", missing: .failed)
  }
}

func isFile(_ path: String) -> Bool {
  var facts = stat()
  return stat(path, &facts) == 0 && facts.st_mode & S_IFMT != S_IFDIR
}

/// Whether standard input is a file with content or a pipe. A pipe counts before anything is written to it, since whether that
/// has happened yet is chance; one that was closed without a word does not.
func isInputGiven() -> Bool {
  var facts = stat()
  guard fstat(STDIN_FILENO, &facts) == 0 else { return false }
  switch facts.st_mode & S_IFMT {
  case S_IFREG: return facts.st_size > lseek(STDIN_FILENO, 0, SEEK_CUR)
  case S_IFIFO:
    var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    _ = poll(&input, 1, 0)
    return input.revents & Int16(POLLHUP) == 0 || input.revents & Int16(POLLIN) != 0
  default: return false
  }
}

/// The last system call's error, with the exit status that fits it. `missing`: what it is that a file or its folder is not there.
func fileFailure(_ what: String, missing: ExitStatus = .notFound) -> Failure {
  let code = errno
  let status: ExitStatus =
    switch code {
    case ENOENT: missing
    case EACCES, EPERM: .notPermitted
    default: .failed
    }
  return Failure(status, "\(what): \(String(cString: strerror(code)))")
}
