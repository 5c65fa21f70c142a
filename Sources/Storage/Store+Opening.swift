import CSQLite
import Replication

extension Store {
  /// Opens the store of `directory`, making both where they are missing, and locks it for this process.
  ///
  /// `fleet` and `device` are what the key file says: a store of another one is refused (S15), a new store gets them.
  /// `lock` is the directory's, if the caller holds it already; a file layer needs none. `hasLostLog` is asked of a store that
  /// is there: one that has is verified before anything is written to it.
  package static func open(
    directory: String, fleet: FleetID, device: DeviceID, lock: DirectoryLock? = nil,
    options: StoreOptions = StoreOptions(), hasLostLog: (FoundLog) throws(StoreError) -> Bool = { _ in false }
  ) throws(StoreError) -> Store {
    let files = StoreFiles(layer: options.fileLayer)
    if options.createsIfMissing { try files.makeDirectory(directory) }
    var held = lock
    if held == nil, options.fileLayer == nil { held = try DirectoryLock(directory: directory) }
    let path = directory + "/" + fileName
    let isNew = files.isEmpty(path)
    let wasLogEmpty = files.isEmpty(path + "-wal")
    // SQLite drops a log that stands beside no database, or beside an empty one.
    guard !isNew || wasLogEmpty else { throw .logAlone(path: path + "-wal") }
    guard options.createsIfMissing || !isNew else { throw .missing(path: path) }
    if isNew { try files.makePrivateFile(path) }
    // What a copy that was cut off had left.
    if files.layer == nil {
      for suffix in ["", "-journal"] { try? files.remove(path + BackupStage.suffix + suffix) }
    }
    let metered = options.fileLayer == nil ? MeteredFiles(SyncMeter()) : nil
    let database = try Database(
      path: path, access: options.createsIfMissing ? .create : .readWrite, vfs: options.fileLayer ?? metered?.name,
      keeping: metered)
    // Whatever ends this opening leaves the log as it is: what became of it since the last start is evidence (S4).
    _ = seamesh_sqlite_checkpoint_on_close(database.handle, 0)
    // SQLite falls back to reading where it may not write.
    guard !database.isReadOnly else { throw .readOnly(path) }
    let version = try FileFormat.check(database, options.migrations)
    if version > 0, try database.store(of: fleet, device) != nil {
      let found = FoundLog(wasEmpty: wasLogEmpty, starts: try database.number(.starts) ?? 0)
      if try hasLostLog(found) { try database.verifyWithoutLog(cacheBytes: options.cacheBytes) }
    }
    try configure(database, options)
    if let last = options.migrations.last?.version, version > 0, version < last {
      try copyBeforeMigration(database, version: version, files)
    }
    try FileFormat.migrate(database, options.migrations)
    let id = try claim(database, fleet: fleet, device: device, newID: options.makeStoreID)
    if isNew {
      try files.syncNames(beside: path)
      if options.fileLayer == nil { try FileSystem.sync(FileSystem.parent(directory)) }
    }
    let store = try Store(
      opening: StoreOpening(
        directory: directory, database: database, metered: metered, lock: held, id: id, options: options,
        wasLogEmpty: wasLogEmpty))
    if !wasLogEmpty { try store.carryOverFoundLog() }
    return store
  }

  private static func configure(_ database: Database, _ options: StoreOptions) throws(StoreError) {
    // First of all the journal, while a foreign or newer file has been refused already: this writes to the file. A page
    // size takes effect only in a file that is still empty.
    try database.execute("PRAGMA page_size=\(options.pageByteCount)")
    let mode = try database.string("PRAGMA journal_mode=WAL")
    guard mode == "wal" else { throw .damaged("\(database.path) keeps journal mode \(mode ?? "unknown")") }
    try database.execute(
      """
      PRAGMA synchronous=FULL;
      PRAGMA secure_delete=OFF;
      PRAGMA cache_size=-\(options.cacheBytes / 1024);
      PRAGMA temp_store=MEMORY;
      PRAGMA busy_timeout=\(busyTimeoutMilliseconds);
      PRAGMA journal_size_limit=\(idleLogByteLimit);
      """)
  }

  /// Only a reader that recovers the log after a crash can stand in the writer's way, and only for a moment.
  private static let busyTimeoutMilliseconds = 10_000
  /// A log that grew in catch-up is cut back to this when it starts anew.
  private static let idleLogByteLimit = 64 * 1024 * 1024

  /// The way back after an upgrade that fails or is regretted (K12). One file per version left behind; an older one of another
  /// state, from before an upgrade that was taken back, is kept beside it under a number. That of an attempt at this very upgrade
  /// is good.
  private static func copyBeforeMigration(
    _ database: Database, version: Int, _ files: StoreFiles
  ) throws(StoreError) {
    let path = database.path + ".format\(version)"
    if files.exists(path) {
      guard !isCopy(path, of: database, files) else { return }
      try setAside(path, files)
    }
    try StoreBackup.copy(database, to: path, in: files) { _, _ in }
  }

  /// Each start of a node and each own commit are counted, so that a store that was used since has other numbers than its copy.
  private static func isCopy(_ path: String, of database: Database, _ files: StoreFiles) -> Bool {
    guard let copy = try? Database(path: path, access: .readOnly, vfs: files.layer),
      let state = try? copy.string(stateQuery)
    else { return false }
    return state == (try? database.string(stateQuery))
  }

  /// All of the meta data but what a copy has of its own, and what all partitions come to.
  private static let stateQuery = """
    SELECT (SELECT group_concat(key || '=' || hex(value)) FROM (
        SELECT key, value FROM meta WHERE key NOT IN ('\(MetaKey.restored.rawValue)', '\(MetaKey.copy.rawValue)') ORDER BY key))
      || (SELECT printf(';%d;%d;%d;%d', count(*), sum(documents), sum(changes), sum(log_bytes)) FROM partitions)
    """

  /// Gives a file the first name with a number that is free.
  private static func setAside(_ path: String, _ files: StoreFiles) throws(StoreError) {
    var number = 1
    while files.exists("\(path)-\(number)") { number += 1 }
    try files.move(path, to: "\(path)-\(number)")
  }

  /// Holds the store's owner against the expected one, or writes it into a new store. Answers the store's id.
  private static func claim(
    _ database: Database, fleet: FleetID, device: DeviceID, newID: () -> UUIDValue
  ) throws(StoreError) -> UUIDValue {
    if let id = try database.store(of: fleet, device) { return id }
    let id = newID()
    try database.execute("BEGIN IMMEDIATE")
    do {
      try database.setMeta(.storeID, id.bytes)
      try database.setMeta(.fleet, fleet.digest.bytes)
      try database.setMeta(.device, device.digest.bytes)
      try database.execute("COMMIT")
    } catch {
      if database.isInTransaction { try? database.execute("ROLLBACK") }
      throw error
    }
    return id
  }
}

/// What tells whether the write-ahead log that a store was left with is still there.
package struct FoundLog: Hashable, Sendable {
  /// Missing, or without content.
  package let wasEmpty: Bool
  /// Counted in the database with what there is of the log.
  package let starts: UInt64
}

/// What ``Store/open(directory:fleet:device:lock:options:hasLostLog:)`` has found and made.
struct StoreOpening {
  let directory: String
  let database: Database
  /// Nil in a file layer, as the lock is.
  let metered: MeteredFiles?
  let lock: DirectoryLock?
  let id: UUIDValue
  let options: StoreOptions
  let wasLogEmpty: Bool
}

extension Database {
  /// The id of the store; nil where nobody owns it yet. Refuses that of another owner.
  func store(of fleet: FleetID, _ device: DeviceID) throws(StoreError) -> UUIDValue? {
    guard let owner = try meta(.fleet), let holder = try meta(.device) else { return nil }
    guard let found = Digest(owner), let foundDevice = Digest(holder), let bytes = try meta(.storeID),
      let id = UUIDValue(bytes)
    else { throw .damaged("the owner in \(path) is unreadable") }
    guard found == fleet.digest else { throw .otherFleet(expected: fleet, found: FleetID(found)) }
    guard foundDevice == device.digest else { throw .otherDevice(expected: device, found: DeviceID(foundDevice)) }
    return id
  }

  func meta(_ key: MetaKey) throws(StoreError) -> [UInt8]? { try meta(named: Text(key.rawValue)) }

  private func meta(named key: Text) throws(StoreError) -> [UInt8]? {
    let statement = try statement("SELECT value FROM meta WHERE key=?1")
    defer { statement.reset() }
    try statement.bind(1, key)
    return try statement.step() ? statement.bytes(0) : nil
  }

  func number(_ key: MetaKey) throws(StoreError) -> UInt64? { try number(named: Text(key.rawValue)) }

  func number(named key: Text) throws(StoreError) -> UInt64? {
    guard let bytes = try meta(named: key) else { return nil }
    guard bytes.count == 8 else { throw .damaged("\(key.string) is not a number") }
    return bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Nil takes the key away.
  func setMeta(_ key: MetaKey, _ value: [UInt8]?) throws(StoreError) { try setMeta(named: Text(key.rawValue), value) }

  func setNumber(named key: Text, _ value: UInt64) throws(StoreError) {
    var bytes: [UInt8] = []
    appendBigEndian(value, to: &bytes)
    try setMeta(named: key, bytes)
  }

  private func setMeta(named key: Text, _ value: [UInt8]?) throws(StoreError) {
    guard let value else {
      let delete = try statement("DELETE FROM meta WHERE key=?1")
      try delete.bind(1, key)
      return try delete.run()
    }
    let insert = try statement(
      "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value=excluded.value")
    try insert.bind(1, key)
    try insert.bind(2, copied: value)
    try insert.run()
  }

  func partitionTotals() throws(StoreError) -> Counters {
    let sums = try statement(
      "SELECT ifnull(sum(documents),0), ifnull(sum(changes),0), ifnull(sum(log_bytes),0) FROM partitions")
    defer { sums.reset() }
    guard try sums.step() else { return Counters() }
    return Counters(documents: sums.integer(0), changes: sums.integer(1), logBytes: sums.integer(2))
  }
}
