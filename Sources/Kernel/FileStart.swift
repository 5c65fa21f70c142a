import Glibc

/// What a file begins with.
package enum FileStart {
  /// No more than so many bytes.
  package static func content(of path: String, atMost limit: Int) throws(SystemError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError("open") }
    defer { close(descriptor) }
    var content: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: min(limit, 64 * 1024))
    while content.count < limit {
      let count = read(descriptor, &piece, min(piece.count, limit - content.count))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw SystemError("read") }
      guard count > 0 else { break }
      content.append(contentsOf: piece.prefix(count))
    }
    return content
  }
}
