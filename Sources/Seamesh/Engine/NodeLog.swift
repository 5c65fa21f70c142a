import Engine
import Glibc
import Synchronization

/// Lines of `time level message key=value …`: ids and sizes, never contents or secrets (X16).
///
/// Writing never holds up the node: a full disk or a closed stream loses lines, and nothing else (K11). A file that has
/// grown to its limit is set aside, and the oldest of those goes.
package final class NodeLog: Sendable {
  let level: LogLevel
  private let path: String?
  private let fileByteLimit: Int
  private let output: Mutex<Output>

  private struct Output {
    var descriptor: Int32
    /// Of the file that is written; nil for what is no file.
    var fileByteCount: Int?
    var waiting: [UInt8] = []
  }

  /// Lines that could not be written yet; what comes beyond is dropped.
  private static let waitingByteLimit = 256 * 1024
  /// A file is passed by what waited at the most.
  package static let fileByteLimit = 16 * 1024 * 1024
  /// Files that were set aside: `PATH.1` is the latest.
  package static let keptFiles = 3

  package init(level: LogLevel, path: String?, fileByteLimit: Int = NodeLog.fileByteLimit) throws(NodeError) {
    (self.level, self.path, self.fileByteLimit) = (level, path, fileByteLimit)
    let descriptor = path.map(NodeLog.openFile) ?? STDERR_FILENO
    guard descriptor >= 0 else {
      throw NodeError(.failed, "the log cannot be written to \(path ?? ""): \(String(cString: strerror(errno)))")
    }
    output = Mutex(
      Output(descriptor: descriptor, fileByteCount: path == nil ? nil : NodeLog.byteCount(of: descriptor)))
  }

  deinit { if path != nil { output.withLock { _ = close($0.descriptor) } } }

  private static func openFile(_ path: String) -> Int32 {
    open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
  }

  /// Nil for what is no regular file.
  private static func byteCount(of descriptor: Int32) -> Int? {
    var facts = stat()
    guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int(facts.st_size)
  }

  package func notice(_ message: String, _ facts: KeyValuePairs<String, String> = [:]) {
    write(.notice, message, facts.map { ($0.key, $0.value) })
  }
  package func error(_ message: String, _ facts: KeyValuePairs<String, String> = [:]) {
    write(.error, message, facts.map { ($0.key, $0.value) })
  }

  func write(_ level: LogLevel, _ message: String, _ facts: [(String, String)]) {
    guard level >= self.level else { return }
    let pairs = facts.map { " \($0)=\(NodeLog.oneLine($1))" }.joined()
    let line = "\(WallClock.text) \(level.name) \(message)\(pairs)\n"
    output.withLock { output in
      if output.waiting.count < NodeLog.waitingByteLimit { output.waiting.append(contentsOf: line.utf8) }
    }
    flush()
  }

  package func flush() {
    output.withLock { output in
      while !output.waiting.isEmpty, NodeLog.takesWithoutWaiting(output.descriptor) {
        let count = min(output.waiting.count, Int(PIPE_BUF))
        let written = output.waiting.withUnsafeBytes { Glibc.write(output.descriptor, $0.baseAddress, count) }
        guard written > 0 else { return }
        output.waiting.removeFirst(written)
        output.fileByteCount = output.fileByteCount.map { $0 + written }
      }
      // Whole lines alone are in the file.
      if output.waiting.isEmpty, let count = output.fileByteCount, count >= fileByteLimit { rotate(&output) }
    }
  }

  /// Where it cannot be done it is tried again after as much more.
  private func rotate(_ output: inout Output) {
    output.fileByteCount = 0
    guard let path else { return }
    for number in (1..<NodeLog.keptFiles).reversed() { rename("\(path).\(number)", "\(path).\(number + 1)") }
    guard rename(path, "\(path).1") == 0, case let next = NodeLog.openFile(path), next >= 0 else { return }
    close(output.descriptor)
    output.descriptor = next
  }

  /// A pipe whose reader has stopped is full: writing would wait for it, and the node with it. One that is ready takes
  /// `PIPE_BUF` bytes at once (pipe(7)).
  private static func takesWithoutWaiting(_ descriptor: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&entry, 1, 0) == 1 && entry.revents & Int16(POLLOUT) != 0
  }

  /// Names come from other devices: no line ends, no terminal controls, and no more than a line's worth.
  private static func oneLine(_ text: String) -> String {
    let safe = String(text.unicodeScalars.prefix(200).map { $0.value < 0x20 || $0.value == 0x7f ? " " : Character($0) })
    return safe.contains(" ") ? "\"\(safe)\"" : safe
  }
}

/// What the machine says the time is. For people and for hybrid timestamps' bounded part, never for a decision.
package enum WallClock {
  package static var milliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// ISO 8601, UTC, whole seconds.
  static var text: String {
    var seconds = time_t(milliseconds / 1_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    var buffer = [CChar](repeating: 0, count: 32)
    let count = strftime(&buffer, buffer.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
