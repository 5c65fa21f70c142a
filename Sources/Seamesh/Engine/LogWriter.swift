import Kernel
import Synchronization

/// Takes lines, and writes them on a thread of its own, which alone waits for the disk or for the reader of a pipe.
final class LogWriter: Sendable {
  private struct Lines {
    var waiting: [UInt8] = []
    /// Some that no longer wait are not written yet.
    var areBeingWritten = false
    var hasEnded = false
    /// Of those who wait until all is written.
    var flushes: [TimedSemaphore] = []

    var areWritten: Bool { waiting.isEmpty && !areBeingWritten }
  }

  /// What comes beyond is dropped.
  static let waitingByteLimit = 256 * 1024
  /// How long an end waits for lines that are still to be written.
  static let patienceMilliseconds: UInt64 = 1_000
  /// What the disk did not take is tried again after this.
  private static let retryMilliseconds: UInt64 = 1_000

  private let lines = Mutex(Lines())
  private let work = TimedSemaphore()

  init(_ file: LogFile) throws(SystemError) {
    try DedicatedThread.start("seamesh log", stackBytes: DedicatedThread.smallStackBytes) { [self] in run(file) }
  }

  func put(_ line: String) {
    let isFirst = lines.withLock { lines in
      guard lines.waiting.count < LogWriter.waitingByteLimit else { return false }
      defer { lines.waiting.append(contentsOf: line.utf8) }
      return lines.waiting.isEmpty
    }
    if isFirst { work.signal() }
  }

  func flush(withinMilliseconds limit: UInt64) -> Bool {
    let isWritten = TimedSemaphore()
    let mustWait = lines.withLock { lines in
      guard !lines.areWritten else { return false }
      lines.flushes.append(isWritten)
      return true
    }
    return !mustWait || isWritten.wait(milliseconds: limit)
  }

  /// The thread ends when all is written; who ends it waits no longer than it waits for a flush.
  func end() {
    _ = flush(withinMilliseconds: LogWriter.patienceMilliseconds)
    lines.withLock { $0.hasEnded = true }
    work.signal()
  }

  // MARK: The thread

  private func run(_ file: LogFile) {
    var file = file
    while let bytes = next() {
      let rest = file.write(bytes)
      guard noteWritten(but: rest) else { break }
      if !rest.isEmpty { _ = work.wait(milliseconds: LogWriter.retryMilliseconds) }
    }
    file.close()
  }

  /// Nil at the end.
  private func next() -> [UInt8]? {
    while true {
      let (bytes, hasEnded) = lines.withLock { lines in
        defer { (lines.waiting, lines.areBeingWritten) = ([], !lines.waiting.isEmpty) }
        return (lines.waiting, lines.hasEnded)
      }
      if !bytes.isEmpty { return bytes }
      if hasEnded { return nil }
      _ = work.wait(milliseconds: .max)
    }
  }

  /// What could not be written waits before all others. Answers whether it is worth another try.
  private func noteWritten(but rest: ArraySlice<UInt8>) -> Bool {
    let (flushes, goesOn) = lines.withLock { lines -> ([TimedSemaphore], Bool) in
      lines.areBeingWritten = false
      lines.waiting.insert(contentsOf: rest, at: 0)
      guard lines.waiting.isEmpty else { return ([], rest.isEmpty || !lines.hasEnded) }
      defer { lines.flushes = [] }
      return (lines.flushes, true)
    }
    for flush in flushes { flush.signal() }
    return goesOn
  }
}
