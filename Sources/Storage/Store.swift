import CSQLite
import Replication

package struct StoreOptions: Sendable {
  /// Memory for pages of the writing connection; a reader takes a quarter.
  package var cacheBytes = 32 * 1024 * 1024
  /// The same until something is written: a start reads each page of all chains, mostly once, and the pages would lie
  /// between what is made of them and be kept.
  package var startCacheBytes = 2 * 1024 * 1024
  /// A store is made where there is none.
  package var createsIfMissing = true
  /// Name of a registered SQLite file layer; nil for the system's. A layer belongs to one process: no lock is taken,
  /// and the file system is not touched.
  package var fileLayer: String?
  package var migrations = Migration.all
  /// Of a new store; an existing one keeps its own. One of the file system's: a single write changes seven pages, and puts all
  /// of them into the log.
  package var pageByteCount = 4_096
  /// How far the write-ahead log may grow before it is carried into the database, at each pace.
  package var logByteLimits: [WritePace: Int] = [.live: 16 * 1024 * 1024, .catchUp: 256 * 1024 * 1024]
  /// So long are readers waited for who hold the write-ahead log, and once more for those that were told to end.
  package var readerPatienceMilliseconds: Int64 = 2_000
  /// Draws the id of a new store.
  package var makeStoreID: @Sendable () -> UUIDValue = {
    UUIDValue(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
  }

  package init() {}
}

/// How a commit reaches the disk (design: durable before sent).
package enum Durability: Sendable {
  /// On disk, with everything before it, when the write returns. For transactions with own changes.
  case full
  /// Consistent after a crash, but perhaps lost: not to be announced before ``Store/makeDurable()``.
  case deferred
}

/// How rarely the write-ahead log is carried into the database (``StoreOptions/logByteLimits``).
package enum WritePace: Hashable, Sendable {
  /// Often: short pauses.
  case live
  /// A page that many transactions touch is written once. Measured 1.5 to 2 times as fast in catch-up.
  case catchUp
}

/// The one writing connection of a data directory, which also does every checkpoint: SQLite before 3.51.3 can damage a
/// write-ahead log that two connections write and checkpoint (S12).
///
/// Not thread-safe: one thread owns it. Other threads read through ``readers``.
package final class Store: StoreReading {
  package let directory: String
  package let database: Database
  package let readers: StoreReaders
  /// Drawn when the store was made; a copy has the same one.
  package let id: UUIDValue
  /// Set when the store must not be written any more (K3); every write throws it again.
  package private(set) var failure: StoreError?
  package var pace = WritePace.live
  var carrying: LogCarrying
  /// Of the writing connection; nothing where the disk is in memory.
  package let syncs: SyncMeter
  /// Over all partitions.
  package internal(set) var counters: Counters
  /// Of the log, as the last transaction left it or the present one has it.
  package internal(set) var end: LogPosition
  /// The write-ahead log held nothing when the store was opened: it is missing, or empty.
  package let wasLogEmpty: Bool
  /// This start is counted in the database, so that the log holds something until it is closed.
  package internal(set) var isStartNoted = false

  let lock: DirectoryLock?
  let files: StoreFiles
  private let metered: MeteredFiles?
  package let numbers: NumberCache
  let contexts = ContextCache()
  /// Never the number of a partition that was taken away: readers remember chains by it.
  var nextPartition: Int64
  var changedCounters: [PartitionNumber: Counters] = [:]
  let gauge: WriteAheadGauge
  /// The write-ahead log that the first commit was written into.
  private var logFile: FileIdentity?
  private var isSynchronousFull = true
  /// Of the page cache from the first transaction on; nil once it has that.
  private var cacheBytes: Int?
  var unsyncedCommits = 0

  package static let fileName = "seamesh.db"

  init(opening: StoreOpening) throws(StoreError) {
    (directory, database, lock, id) = (opening.directory, opening.database, opening.lock, opening.id)
    metered = opening.metered
    metered?.gathersWrites = true
    syncs = metered?.meter ?? SyncMeter()
    files = StoreFiles(layer: opening.options.fileLayer)
    // In pages of the store: the write-ahead log counts those.
    let pageByteCount = Int(try opening.database.integer("PRAGMA page_size") ?? 0)
    let limits = opening.options.logByteLimits.mapValues { Int32(clamping: $0 / max(pageByteCount, 1)) }
    carrying = LogCarrying(
      CarryPlan(limits: limits, isTimed: opening.options.fileLayer == nil),
      patience: opening.options.readerPatienceMilliseconds)
    readers = StoreReaders(path: opening.database.path, options: opening.options)
    wasLogEmpty = opening.wasLogEmpty
    numbers = NumberCache(remembersPartitions: true)
    gauge = WriteAheadGauge(database)
    end = try database.logEnd()
    nextPartition = (try database.integer("SELECT max(id) FROM partitions") ?? 0) + 1
    counters = try opening.database.partitionTotals()
    let options = opening.options
    if options.startCacheBytes < options.cacheBytes {
      try setCache(options.startCacheBytes)
      cacheBytes = options.cacheBytes
    }
  }

  // MARK: Writing

  /// Runs `body` as one transaction: all of it, or nothing when it throws.
  ///
  /// Throws what `body` throws, or ``StoreError``. After a fatal one (``failure``) it is unknown whether the commit
  /// reached the disk; the next opening shows it.
  ///
  /// - Parameter carriesOver: the log is carried into the database behind the commit, where that is due. Not where somebody
  ///   waits for the commit alone, who then calls ``carryOver(_:)``.
  package func write<Result>(
    _ durability: Durability, carriesOver: Bool = true, _ body: (borrowing Transaction) throws -> Result
  ) throws -> Result {
    let before = end
    // A constant of its own: passing the new value straight on makes the 6.3.1 optimiser abort.
    let transaction = Transaction(store: self)
    do {
      try begin(durability)
      let result = try body(transaction)
      try commit(durability)
      if carriesOver { carryOverBehindCommit() }
      return result
    } catch {
      rollBack(to: before)
      if let error = error as? StoreError { giveUp(after: error) }
      throw error
    }
  }

  private func begin(_ durability: Durability) throws(StoreError) {
    if let failure { throw failure }
    precondition(!database.isInTransaction, "a transaction inside a transaction")
    try setSynchronous(durability)
    try widenCache()
    try database.statement("BEGIN IMMEDIATE").run()
  }

  private func commit(_ durability: Durability) throws(StoreError) {
    let counted = try flushCounters()
    let before = gauge.commits
    try database.statement("COMMIT").run()
    counters += counted
    // A commit that changed nothing writes no frame, and then syncs nothing either.
    guard gauge.commits != before else { return }
    try requireFiles()
    unsyncedCommits = durability == .full ? 0 : unsyncedCommits + 1
    carrying.noteCommit(inLog: gauge.pages)
  }

  /// Files without a name take writes as ever, and are gone with the process.
  private func requireFiles() throws(StoreError) {
    guard !database.hasMoved else { throw .removed(path: database.path) }
    let log = database.path + "-wal"
    guard files.layer == nil else { return }
    let present = FileSystem.identity(log)
    logFile = logFile ?? present
    guard let present, present == logFile else { throw .removed(path: log) }
  }

  /// Puts earlier ``Durability/deferred`` commits on disk: a commit at `full` syncs every frame before it.
  package func makeDurable() throws {
    guard unsyncedCommits > 0 else { return }
    try write(.full) { transaction in
      try transaction.setInteger((try transaction.integer(.syncs) ?? 0) &+ 1, for: .syncs)
    }
  }

  private func setSynchronous(_ durability: Durability) throws(StoreError) {
    let full = durability == .full
    guard full != isSynchronousFull else { return }
    try database.execute(full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL")
    metered?.gathersWrites = full
    isSynchronousFull = full
  }

  private func widenCache() throws(StoreError) {
    guard let bytes = cacheBytes else { return }
    try setCache(bytes)
    cacheBytes = nil
  }

  private func setCache(_ bytes: Int) throws(StoreError) {
    try database.execute("PRAGMA cache_size=-\(bytes / 1024)")
  }

  private func flushCounters() throws(StoreError) -> Counters {
    var sum = Counters()
    let update = try database.statement(
      "UPDATE partitions SET documents=documents+?2, changes=changes+?3, log_bytes=log_bytes+?4 WHERE id=?1")
    // In one order in every process, so that a simulated disk sees the same writes again.
    for (partition, counters) in changedCounters.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      try update.bind(1, partition.rawValue)
      try update.bind(2, counters.documents)
      try update.bind(3, counters.changes)
      try update.bind(4, counters.logBytes)
      try update.run()
      sum += counters
    }
    changedCounters.removeAll(keepingCapacity: true)
    return sum
  }

  /// What caches hold may stem from the transaction that is gone. Its arrivals are given out again, as they would be after a
  /// new start: whoever has kept a position must find no run at or below it that is new.
  private func rollBack(to end: LogPosition) {
    self.end = end
    // Several errors make SQLite roll back by itself; then there is nothing left to do.
    if database.isInTransaction { try? database.execute("ROLLBACK") }
    changedCounters.removeAll()
    numbers.removeAll()
    contexts.removeAll()
  }

  /// After a failed sync the cache may hold pages that are not on disk: nothing builds on them any more.
  func giveUp(after error: StoreError) {
    guard error.isFatal, failure == nil else { return }
    failure = error
    if carrying.heldOffSince != nil { letReadersIn() }
    _ = seamesh_sqlite_checkpoint_on_close(database.handle, 0)
  }
}

/// What SQLite tells after each commit that wrote something. Listening replaces SQLite's own automatic checkpoint, which
/// would swallow the errors of its syncs.
final class WriteAheadGauge {
  private struct Reading {
    /// In the write-ahead log after the last commit.
    var pages: Int32 = 0
    var commits: UInt64 = 0
  }

  private let reading = UnsafeMutablePointer<Reading>.allocate(capacity: 1)
  private let database: Database
  var pages: Int32 { reading.pointee.pages }
  var commits: UInt64 { reading.pointee.commits }

  init(_ database: Database) {
    self.database = database
    reading.initialize(to: Reading())
    _ = sqlite3_wal_hook(
      database.handle,
      { context, _, _, pages in
        let reading = context?.assumingMemoryBound(to: Reading.self)
        reading?.pointee.pages = pages
        reading?.pointee.commits += 1
        return SQLITE_OK
      }, reading)
  }

  deinit {
    _ = sqlite3_wal_hook(database.handle, nil, nil)
    reading.deallocate()
  }
}
