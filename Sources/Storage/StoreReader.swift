import CSQLite
import Synchronization

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A read-only connection. It never checkpoints, so that the writer's stays the only one that does (S12).
package final class StoreReader: StoreReading {
  package let database: Database
  package let numbers = NumberCache(remembersPartitions: false)
  private let watch: ReadWatch

  init(path: String, options: StoreOptions, stop: StopFlag) throws(StoreError) {
    database = try Database(path: path, access: .readOnly, vfs: options.fileLayer)
    watch = ReadWatch(stop: stop)
    guard database.isReadOnly else { throw .readOnly("a reader of \(path) could write") }
    try database.execute(
      """
      PRAGMA query_only=1;
      PRAGMA cache_size=-\(options.cacheBytes / 1024 / 4);
      PRAGMA temp_store=MEMORY;
      PRAGMA busy_timeout=\(StoreReader.busyTimeoutMilliseconds);
      """)
    sqlite3_progress_handler(
      database.handle, StoreReader.stepsBetweenChecks,
      { context in
        context.map { Unmanaged<ReadWatch>.fromOpaque($0).takeUnretainedValue().isOver } == true ? 1 : 0
      }, Unmanaged.passUnretained(watch).toOpaque())
    // Opens the log's files, too: where there are no descriptors, this shows now, and not in the midst of a question.
    _ = try database.meta(.fleet)
  }

  deinit { sqlite3_progress_handler(database.handle, 0, nil, nil) }

  private static let busyTimeoutMilliseconds = 2_000
  /// Steps of SQLite's machine: some tens of microseconds.
  private static let stepsBetweenChecks: Int32 = 4_000
  /// Of one question: a snapshot older than this keeps the writer's log from starting anew (S2). Whoever has more to
  /// read asks several times.
  package static let timeLimitMilliseconds: Int64 = 10_000

  /// Several questions on one state of the store. Throws ``StoreError/interrupted`` past the time limit.
  package func snapshot<Result>(_ body: (StoreReader) throws -> Result) throws -> Result {
    watch.restart()
    try database.statement("BEGIN").run()
    // A commit of a read transaction writes nothing; a roll-back cannot fail either.
    defer { try? database.execute("ROLLBACK") }
    return try body(self)
  }

  /// Between questions on one snapshot that are too small to be interrupted: throws ``StoreError/interrupted`` where the time of
  /// all of them is over.
  package func checkTime() throws(StoreError) { if watch.isOver { throw .interrupted } }

  /// Begins a snapshot of the state at this very moment, not at the first question as ``snapshot(_:)`` does. For whoever
  /// can say, at this moment alone, what that state is. It lasts until ``unpin()``.
  package func pin() throws(StoreError) {
    watch.restart()
    try database.statement("BEGIN").run()
    // SQLite takes its snapshot when it first reads.
    _ = try database.meta(.fleet)
  }

  /// Ends what ``pin()`` began, also where that failed half way.
  package func unpin() { try? database.execute("ROLLBACK") }

  func restartWatch(_ milliseconds: Int64) {
    watch.limitMilliseconds = milliseconds
    watch.restart()
  }
}

/// Set once, when the node stops: readers then give up. Or those alone that are at it.
final class StopFlag: Sendable {
  private let flag = Atomic(false)
  private let endings = Atomic<UInt64>(0)
  var isSet: Bool { flag.load(ordering: .relaxed) }
  func set() { flag.store(true, ordering: .relaxed) }
  /// Questions that were begun under an earlier number are to end.
  var ending: UInt64 { endings.load(ordering: .relaxed) }
  func endRunning() { endings.add(1, ordering: .relaxed) }
}

/// Says when a reader must stop. Belongs to the thread that uses the reader, but for the stop flag.
private final class ReadWatch {
  private let stop: StopFlag
  private var deadline: Int64 = .max
  private var ending: UInt64 = 0
  var limitMilliseconds = StoreReader.timeLimitMilliseconds

  init(stop: StopFlag) { self.stop = stop }

  var isOver: Bool { stop.isSet || stop.ending != ending || monotonicMilliseconds() > deadline }
  func restart() { (deadline, ending) = (monotonicMilliseconds() + limitMilliseconds, stop.ending) }
}

func monotonicMilliseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
}
