import Glibc

/// What log lines are written to: a file that is set aside when it has grown to its limit, or a stream.
struct LogFile: Sendable {
  private let path: String?
  private let byteLimit: Int
  private let keptFiles: Int
  private var descriptor: Int32
  /// Nil for what is no regular file.
  private var byteCount: Int?

  init(_ path: String?, byteLimit: Int, keptFiles: Int) throws(NodeError) {
    (self.path, self.byteLimit, self.keptFiles) = (path, byteLimit, keptFiles)
    descriptor = path.map(LogFile.open) ?? STDERR_FILENO
    guard descriptor >= 0 else {
      throw NodeError(.failed, "the log cannot be written to \(path ?? ""): \(String(cString: strerror(errno)))")
    }
    byteCount = path == nil ? nil : LogFile.byteCount(of: descriptor)
  }

  private static func open(_ path: String) -> Int32 {
    Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
  }

  private static func byteCount(of descriptor: Int32) -> Int? {
    var facts = stat()
    guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int(facts.st_size)
  }

  /// Line by line into a file, so that whole lines alone are in one that is set aside. Answers what is not written, since
  /// the disk is full or a stream has no reader.
  mutating func write(_ lines: [UInt8]) -> ArraySlice<UInt8> {
    var rest = lines[...]
    while !rest.isEmpty {
      let end = byteCount == nil ? nil : rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 }
      let part = rest[..<(end ?? rest.endIndex)]
      let written = part.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard written > 0 else {
        if written < 0, errno == EINTR { continue }
        return rest
      }
      rest.removeFirst(written)
      byteCount = byteCount.map { $0 + written }
      if let byteCount, byteCount >= byteLimit, rest.startIndex == end { setAside() }
    }
    return rest
  }

  /// Where it cannot be done it is tried again after as much more.
  private mutating func setAside() {
    byteCount = 0
    guard let path else { return }
    for number in (1..<keptFiles).reversed() { rename("\(path).\(number)", "\(path).\(number + 1)") }
    guard rename(path, "\(path).1") == 0, case let next = LogFile.open(path), next >= 0 else { return }
    Glibc.close(descriptor)
    descriptor = next
  }

  func close() { if path != nil { Glibc.close(descriptor) } }
}
