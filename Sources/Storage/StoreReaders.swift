import Dispatch
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The readers of one store: any thread borrows one for a question at a time.
package final class StoreReaders: Sendable {
  private let path: String
  private let options: StoreOptions
  private let idle = Mutex<Idle>(Idle())
  private let door = Mutex(Door())
  private let free = DispatchSemaphore(value: StoreReaders.limit)
  private let opened = DispatchSemaphore(value: 0)
  private let stop = StopFlag()

  /// Connections at the same time; who comes later waits. More would only share two or four cores.
  package static let limit = 8

  init(path: String, options: StoreOptions) { (self.path, self.options) = (path, options) }

  /// Lends a reader to `body`, which must not keep it. One question sees one state of the store; for several on the
  /// same state use ``StoreReader/snapshot(_:)`` inside. Past the time limit, reading throws
  /// ``StoreError/interrupted``; so does one that waits longer for its turn.
  package func read<Result>(
    within milliseconds: Int64 = StoreReader.timeLimitMilliseconds, _ body: (StoreReader) throws -> Result
  ) throws -> Result {
    enter()
    defer { door.withLock { $0.inside -= 1 } }
    guard free.wait(timeout: .now() + .milliseconds(StoreReaders.turnMilliseconds)) == .success else {
      throw StoreError.interrupted
    }
    return try lend(milliseconds, body)
  }

  /// The same for who would rather do without than wait for a turn: nil where none is free, or nobody is let in.
  package func readIfFree<Result>(_ body: (StoreReader) throws -> Result) throws -> Result? {
    let isLetIn = door.withLock { door in
      guard door.remainingMilliseconds == 0 else { return false }
      door.inside += 1
      return true
    }
    guard isLetIn else { return nil }
    defer { door.withLock { $0.inside -= 1 } }
    guard free.wait(timeout: .now()) == .success else { return nil }
    return try lend(StoreReader.timeLimitMilliseconds, body)
  }

  /// Opens the first reader before anybody asks: the first question need not wait for it. What fails here, who asks is told.
  package func openAhead() {
    _ = try? readIfFree { try $0.documents(PartitionNumber(rawValue: 0), CollectionNumber(rawValue: 0), limit: 1) }
  }

  /// Frees what readers keep of the pages that they read: what one large question leaves is of no use to a process at rest.
  /// Readers that are lent keep theirs.
  package func releaseCaches() {
    idle.withLock { for reader in $0.readers { reader.database.releaseCache() } }
  }

  /// Open now, whether somebody reads with them or not.
  package var openCount: Int { idle.withLock { $0.made } }

  /// To who has a turn, which ends with it.
  private func lend<Result>(_ milliseconds: Int64, _ body: (StoreReader) throws -> Result) throws -> Result {
    defer { free.signal() }
    guard !stop.isSet else { throw StoreError.interrupted }
    let reader = try idle.withLock { $0.readers.popLast() } ?? make()
    defer { idle.withLock { $0.readers.append(reader) } }
    reader.restartWatch(milliseconds)
    return try body(reader)
  }

  /// Where the process may open no more files, one that somebody else brings back will do (K4).
  private func make() throws(StoreError) -> StoreReader {
    do throws(StoreError) {
      let reader = try StoreReader(path: path, options: options, stop: stop)
      idle.withLock { $0.made += 1 }
      return reader
    } catch {
      guard error.isOfOpening, idle.withLock({ $0.made > 0 }) else { throw error }
      let deadline = monotonicMilliseconds() + Int64(StoreReaders.turnMilliseconds)
      while monotonicMilliseconds() < deadline, !stop.isSet {
        if let reader = idle.withLock({ $0.readers.popLast() }) { return reader }
        usleep(StoreReaders.lookMicroseconds)
      }
      throw error
    }
  }

  private static let lookMicroseconds: UInt32 = 2_000

  /// So long somebody waits for a reader, of which each has a limit of its own.
  static let turnMilliseconds = Int(StoreReader.timeLimitMilliseconds)

  // MARK: The log begins anew

  /// Those who have a reader or wait for one, and those who are not let in.
  private struct Door {
    /// Nil: open. Past this time nobody waits, whatever became of who closed it.
    var closedUntil: Int64?
    var inside = 0
    var outside = 0

    var remainingMilliseconds: Int64 { max(0, (closedUntil ?? 0) - monotonicMilliseconds()) }
  }

  private func enter() {
    while true {
      let remaining = door.withLock { door in
        let remaining = door.remainingMilliseconds
        if remaining > 0 { door.outside += 1 } else { door.inside += 1 }
        return remaining
      }
      guard remaining > 0 else { return }
      if opened.wait(timeout: .now() + .milliseconds(Int(remaining))) == .timedOut {
        door.withLock { $0.outside = max(0, $0.outside - 1) }
      }
    }
  }

  /// Whoever asks from now on waits until ``letIn()``, or until that time.
  func holdOff(until time: Int64) {
    door.withLock { if !stop.isSet { $0.closedUntil = time } }
  }

  func letIn() {
    let waiting = door.withLock { door in
      defer { (door.closedUntil, door.outside) = (nil, 0) }
      return door.outside
    }
    for _ in 0..<waiting { opened.signal() }
  }

  /// Nobody reads.
  var areAllBack: Bool { door.withLock { $0.inside == 0 } }

  /// Whoever reads now fails with ``StoreError/interrupted``.
  func endRunning() { stop.endRunning() }

  /// How often those who read were ended: what was ended may be asked once more.
  package var endings: UInt64 { stop.ending }

  /// Of the database and its write-ahead log.
  package var fileBytes: Int64 { (FileSystem.size(path) ?? 0) + logFileBytes }
  package var logFileBytes: Int64 { FileSystem.size(path + "-wal") ?? 0 }

  /// Makes running and later questions fail with ``StoreError/interrupted``. For stopping the node.
  package func stopAll() {
    stop.set()
    letIn()
  }
  package var isStopped: Bool { stop.isSet }

  /// Stops them, and closes every connection that comes back in time: one that stays open holds the write-ahead log.
  package func close(withinMilliseconds patience: Int = StoreReaders.closingMilliseconds) {
    stopAll()
    let deadline = DispatchTime.now() + .milliseconds(patience)
    let returned = (0..<StoreReaders.limit).count { _ in free.wait(timeout: deadline) == .success }
    idle.withLock { ($0.readers, $0.made) = ([], $0.made - $0.readers.count) }
    for _ in 0..<returned { free.signal() }
  }

  /// A stopped question ends within milliseconds, unless whoever asked it is slow to take the rows.
  package static let closingMilliseconds = 2_000

  /// Readers at rest. A reader has one user at a time: the thread that took it out under the lock.
  private struct Idle: @unchecked Sendable {
    var readers: [StoreReader] = []
    /// How many there are, with those that are lent.
    var made = 0
  }
}
