import Engine
import Glibc
import Synchronization

/// Lines of `time level message key=value …`: ids and sizes, never contents or secrets (X16).
///
/// Writing never holds up the node: a full disk or a closed stream loses lines, and nothing else (K11).
package final class NodeLog: Sendable {
  let level: LogLevel
  private let descriptor: Int32
  private let waiting = Mutex<[UInt8]>([])

  /// Lines that could not be written yet; what comes beyond is dropped.
  private static let waitingByteLimit = 256 * 1024

  package init(level: LogLevel, path: String?) throws(NodeError) {
    self.level = level
    descriptor = path.map { open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600) } ?? STDERR_FILENO
    guard descriptor >= 0 else {
      throw NodeError(.failed, "the log cannot be written to \(path ?? ""): \(String(cString: strerror(errno)))")
    }
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
    waiting.withLock { waiting in
      if waiting.count < NodeLog.waitingByteLimit { waiting.append(contentsOf: line.utf8) }
    }
    flush()
  }

  package func flush() {
    waiting.withLock { waiting in
      while !waiting.isEmpty, takesWithoutWaiting {
        let count = min(waiting.count, Int(PIPE_BUF))
        let written = waiting.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, count) }
        guard written > 0 else { return }
        waiting.removeFirst(written)
      }
    }
  }

  /// A pipe whose reader has stopped is full: writing would wait for it, and the node with it. One that is ready takes
  /// `PIPE_BUF` bytes at once (pipe(7)).
  private var takesWithoutWaiting: Bool {
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
