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

/// A file that its owner alone may read, in place of what was there. It is a new one, and whole before it has its name: an old one
/// would keep its mode and those who have it open, and a link would lead to a file of somebody else's choice. Where this fails, what
/// was there is there still.
func writePrivateFile(_ content: [UInt8], _ path: String) throws(Failure) {
  try checkReplaceable(path)
  let new = folder(of: path) + ".seamesh-\(String(UInt64.random(in: 0 ... .max), radix: 16)).new"
  let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
  guard descriptor >= 0 else { throw fileFailure("cannot write \(path)", missing: .failed) }
  defer { close(descriptor) }
  do throws(Failure) {
    try writeAll(content, descriptor, path)
    guard fsync(descriptor) == 0, rename(new, path) == 0 else { throw fileFailure("cannot write \(path)") }
  } catch {
    unlink(new)
    throw error
  }
}

private func writeAll(_ content: [UInt8], _ descriptor: Int32, _ path: String) throws(Failure) {
  var rest = content[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count < 0, errno == EINTR { continue }
    guard count > 0 else { throw fileFailure("cannot write \(path)") }
    rest = rest.dropFirst(count)
  }
}

/// With the slash; empty for the working directory.
private func folder(of path: String) -> String { path.lastIndex(of: "/").map { String(path[...$0]) } ?? "" }

/// Neither a directory nor a device or pipe gives its name to a file, be it behind a link.
private func checkReplaceable(_ path: String) throws(Failure) {
  var facts = stat()
  guard stat(path, &facts) == 0 else { return }
  switch facts.st_mode & S_IFMT {
  case S_IFREG: return
  case S_IFDIR: throw Failure(.failed, "cannot write \(path): it is a directory")
  default: throw Failure(.failed, "cannot write \(path): what is there is no regular file")
  }
}

/// Whether ``writePrivateFile(_:_:)`` can write there, as far as that shows before it does. What its owner made read-only is not
/// replaced.
func checkWritable(_ path: String) throws(Failure) {
  try checkReplaceable(path)
  let isThere = access(path, F_OK) == 0
  guard access(folder(of: path) + ".", W_OK | X_OK) == 0, !isThere || access(path, W_OK) == 0 else {
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
