import Glibc

/// A line on standard error that shows how far an operation is, once it has taken a second.
final class ProgressBar {
  fileprivate static let firstShownAfterMilliseconds: Int64 = 1_000
  private static let redrawnAfterMilliseconds: Int64 = 100
  private static let barWidth = 30

  private let label: String
  private let isShown: Bool
  private let startedAt = monotonicMilliseconds()
  private var drawnAt: Int64?

  init(_ label: String, on terminal: Terminal) { (self.label, isShown) = (label, terminal.showsProgress) }

  /// `total` is nil where it is not known; `more` comes behind.
  func update(done: Int64, total: Int64?, unit: String, more: String = "") {
    let now = monotonicMilliseconds()
    guard isShown, now - startedAt >= ProgressBar.firstShownAfterMilliseconds,
      now - (drawnAt ?? startedAt) >= ProgressBar.redrawnAfterMilliseconds
    else { return }
    drawnAt = now
    ProgressBar.draw(ProgressBar.line(label, done: done, total: total, unit: unit) + more)
  }

  /// Takes the line away.
  func finish() {
    guard drawnAt != nil else { return }
    drawnAt = nil
    ProgressBar.draw("")
  }

  static func line(_ label: String, done: Int64, total: Int64?, unit: String) -> String {
    guard let total, total > 0 else { return "\(label) \(done) \(unit)" }
    let share = min(1, max(0, Double(done) / Double(total)))
    let filled = Int(share * Double(barWidth))
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: barWidth - filled)
    return "\(label) [\(bar)] \(Int(share * 100)) %"
  }

  fileprivate static func draw(_ line: String) {
    let bytes = Array("\r\u{1b}[K\(line)".utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
  }
}

/// A line on standard error that says what is waited for, once that has taken a second.
final class WaitingLine {
  private let isShown: Bool
  private let startedAt = monotonicMilliseconds()
  private var isDrawn = false

  init(on terminal: Terminal) { isShown = terminal.showsProgress }

  func update(_ sentence: String) {
    guard isShown, monotonicMilliseconds() - startedAt >= ProgressBar.firstShownAfterMilliseconds else { return }
    isDrawn = true
    ProgressBar.draw(shown(sentence))
  }

  func finish() {
    if isDrawn { ProgressBar.draw("") }
    isDrawn = false
  }
}

/// Milliseconds of a clock that never steps.
func monotonicMilliseconds() -> Int64 {
  var now = timespec()
  clock_gettime(CLOCK_MONOTONIC, &now)
  return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
}
