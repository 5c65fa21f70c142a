import Engine
import Kernel
import Synchronization

/// Lines of `time level message key=value …`: ids and sizes, never contents or secrets (X16).
///
/// Writing never holds up the node: a full disk, one that hangs, or a reader that has stopped, loses lines, and nothing else
/// (K11). A file that has grown to its limit is set aside, and the oldest of those goes.
package final class NodeLog: Sendable {
  let level: LogLevel
  private let writer: LogWriter

  /// A file is passed by what waited at the most.
  package static let fileByteLimit = 16 * 1024 * 1024
  /// Files that were set aside: `PATH.1` is the latest.
  package static let keptFiles = 3

  /// - Parameter path: of the file; nil for standard error.
  package init(level: LogLevel, path: String?, fileByteLimit: Int = NodeLog.fileByteLimit) throws(NodeError) {
    self.level = level
    let file = try LogFile(path, byteLimit: fileByteLimit, keptFiles: NodeLog.keptFiles)
    do throws(SystemError) { writer = try LogWriter(file) } catch {
      file.close()
      throw NodeError(.failed, "the log cannot be written: \(error)")
    }
  }

  deinit { writer.end() }

  package func notice(_ message: String, _ facts: KeyValuePairs<String, String> = [:]) {
    write(.notice, message, facts.map { ($0.key, $0.value) })
  }
  package func error(_ message: String, _ facts: KeyValuePairs<String, String> = [:]) {
    write(.error, message, facts.map { ($0.key, $0.value) })
  }

  func write(_ level: LogLevel, _ message: String, _ facts: [(String, String)]) {
    guard level >= self.level else { return }
    let pairs = facts.map { " \($0)=\(NodeLog.oneLine($1))" }.joined()
    writer.put("\(WallClock.text) \(level.name) \(message)\(pairs)\n")
  }

  /// Waits until all lines are written, though not for long: answers false where they are not.
  @discardableResult
  package func flush(withinMilliseconds limit: UInt64 = LogWriter.patienceMilliseconds) -> Bool {
    writer.flush(withinMilliseconds: limit)
  }

  /// Names come from other devices: no line ends, no terminal controls, and no more than a line's worth.
  private static func oneLine(_ text: String) -> String {
    let safe = String(text.unicodeScalars.prefix(200).map { $0.value < 0x20 || $0.value == 0x7f ? " " : Character($0) })
    return safe.contains(" ") ? "\"\(safe)\"" : safe
  }
}
