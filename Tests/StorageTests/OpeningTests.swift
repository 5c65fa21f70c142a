import CSQLite
import Foundation
import Replication
import Testing

@testable import Storage

@Suite struct OpeningTests {
  @Test("a store keeps its id over restarts")
  func keepsID() throws {
    let directory = try TemporaryDirectory()
    let id = try directory.open().id
    #expect(try directory.open().id == id)
    #expect(try TemporaryDirectory().open().id != id)
  }

  @Test("nobody but the owner may read the store's files, whatever the directory allows")
  func privateFiles() throws {
    let directory = try TemporaryDirectory()
    let store = try directory.open()
    try store.write(.full) { try $0.subscribe("agency=*") }
    for suffix in ["", "-wal", "-shm"] {
      let facts = try FileManager.default.attributesOfItem(atPath: store.database.path + suffix)
      #expect(facts[.posixPermissions] as? Int == 0o600, "\(suffix)")
    }
  }

  @Test("a second opener is told which process holds the directory (K8)")
  func secondOpener() throws {
    let directory = try TemporaryDirectory()
    let store = try directory.open()
    let expected = StoreError.alreadyRunning(process: getpid(), directory: directory.path)
    #expect(throws: expected) { try directory.open() }
    #expect("\(expected)" == "another seamesh node (process \(getpid())) is using \(directory.path): stop it first")
    withExtendedLifetime(store) {}
  }

  @Test("a full disk, a read-only file system and a file of somebody else's are each told with what to do next")
  func whatToDoNext() {
    #expect(
      StoreError.system("open", "/d/lock", EROFS).sentence.contains(
        "/d/lock lies on a file system that is mounted read-only"))
    #expect(
      StoreError.system("open", "/d/lock", EACCES).sentence.contains("open /d/lock: not permitted; look whose it is"))
    #expect(
      StoreError.diskFull("write").sentence
        == "the disk is full, and nothing was written: free some space, then try again")
  }

  @Test("another process is refused while the lock is held, and served when it is free")
  func otherProcess() throws {
    let directory = try TemporaryDirectory()
    let lock = directory.path + "/" + DirectoryLock.fileName
    try { _ = try directory.open() }()
    let other = Process()
    other.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
    other.arguments = [lock, "-c", "echo held; read line"]
    guard FileManager.default.isExecutableFile(atPath: "/usr/bin/flock") else { return }
    let (input, output) = (Pipe(), Pipe())
    (other.standardInput, other.standardOutput) = (input, output)
    try other.run()
    _ = output.fileHandleForReading.availableData
    #expect(throws: StoreError.self) { try directory.open() }
    try input.fileHandleForWriting.close()
    other.waitUntilExit()
    #expect(throws: Never.self) { try directory.open() }
  }

  @Test("a store of another fleet or device is refused (S15)")
  func otherOwner() throws {
    let directory = try TemporaryDirectory()
    try { _ = try directory.open() }()
    let other = FleetID(digest(9))
    #expect(throws: StoreError.otherFleet(expected: other, found: testFleet)) {
      try Store.open(directory: directory.path, fleet: other, device: testDevice)
    }
    let stranger = DeviceID(digest(8))
    #expect(throws: StoreError.otherDevice(expected: stranger, found: testDevice)) {
      try Store.open(directory: directory.path, fleet: testFleet, device: stranger)
    }
  }

  @Test("a file of another program is refused and left as it is")
  func foreignFile() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/" + Store.fileName
    try { try Database(path: path, access: .create).execute("CREATE TABLE notes (text)") }()
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    #expect(throws: StoreError.notAStore(path: path)) { try directory.open() }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    try Data("not a database at all, but long enough to be read as one".utf8).write(to: URL(fileURLWithPath: path))
    #expect(throws: StoreError.self) { try directory.open() }
  }

  @Test("a store of a newer version is refused with both versions named (K12)")
  func newerVersion() throws {
    let directory = try TemporaryDirectory()
    try { _ = try directory.open() }()
    let path = directory.path + "/" + Store.fileName
    try { try Database(path: path, access: .readWrite).execute("PRAGMA user_version=7") }()
    let expected = StoreError.newerVersion(found: 7, known: 5, path: path)
    #expect(throws: expected) { try directory.open() }
    #expect("\(expected)".contains("format 7") && "\(expected)".contains("up to 5"))
  }

  @Test("a store of before the formats were final is refused with a sentence, and left as it is")
  func olderVersion() throws {
    let directory = try TemporaryDirectory()
    try { try directory.open().write(.full) { try $0.subscribe("agency=*") } }()
    let path = directory.path + "/" + Store.fileName
    try { try Database(path: path, access: .readWrite).execute("PRAGMA user_version=1") }()
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let expected = StoreError.olderVersion(found: 1, oldest: 2, path: path)
    #expect(throws: expected) { try directory.open() }
    #expect("\(expected)".contains("has format 1") && "\(expected)".contains("reads from 2 on"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    #expect(!FileManager.default.fileExists(atPath: path + ".format1"))
  }

  @Test("an older store is copied, then migrated; the copy opens with the older program (K12)")
  func migrates() throws {
    let directory = try TemporaryDirectory()
    try { try directory.open().write(.full) { try $0.subscribe("agency=*") } }()
    let second = Migration(version: 6, sql: "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT")
    try {
      let store = try directory.open { $0.migrations = Migration.all + [second] }
      #expect(try store.subscriptions() == ["agency=*"])
      #expect(try store.database.integer("SELECT count(*) FROM later") == 0)
    }()
    #expect(throws: StoreError.self) { try directory.open() }
    let copy = directory.path + "/" + Store.fileName + ".format5"
    try StoreBackup.verify(copy)
    #expect(try Database(path: copy, access: .readOnly).integer("PRAGMA user_version") == 5)
  }

  @Test("an upgrade that was taken back is copied again when it comes once more, and the older copy stays")
  func upgradeTakenBack() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/" + Store.fileName
    let copy = path + ".format5"
    let second = Migration(version: 6, sql: "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT")
    func start(_ migrations: [Migration]) throws {
      let store = try directory.open { $0.migrations = migrations }
      try store.noteStart()
    }
    func starts(_ path: String) throws -> UInt64? { try Database(path: path, access: .readOnly).number(.starts) }
    try start(Migration.all)
    for round in 1...3 as ClosedRange<UInt64> {
      try start(Migration.all + [second])
      #expect(try starts(copy) == round)
      for suffix in ["", "-wal", "-shm"] { try FileSystem.remove(path + suffix) }
      try FileManager.default.copyItem(atPath: copy, toPath: path)
      // The older program goes on.
      try start(Migration.all)
    }
    #expect(try starts(copy) == 3 && starts(copy + "-1") == 1 && starts(copy + "-2") == 2)
  }

  @Test("the copy of an upgrade that was cut off is kept and used, and one that does not read is not")
  func upgradeCutOff() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/" + Store.fileName
    let copy = path + ".format5"
    try { try directory.open().write(.full) { try $0.setInteger(7, for: .ownCommits) } }()
    func upgrade(_ sql: String) throws {
      _ = try directory.open { $0.migrations = Migration.all + [Migration(version: 6, sql: sql)] }
    }
    #expect(throws: StoreError.self) { try upgrade("NONSENSE") }
    let made = try #require(FileSystem.identity(copy))
    #expect(throws: StoreError.self) { try upgrade("NONSENSE") }
    #expect(FileSystem.identity(copy) == made && !FileSystem.exists(copy + "-1"))
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: copy))
    try upgrade("CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT")
    try StoreBackup.verify(copy)
    #expect(FileSystem.size(copy + "-1") == 3)
  }

  @Test("a store whose log was lost is verified before anything is written to it, a migration included")
  func verifiedBeforeMigration() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/" + Store.fileName
    try tear(directory)
    let torn = try Data(contentsOf: URL(fileURLWithPath: path))
    let next = Migration(version: 6, sql: "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT")
    for _ in 0..<2 {
      var found: FoundLog?
      #expect {
        try directory.open({ $0.migrations = Migration.all + [next] }) { log throws(StoreError) in
          found = log
          return true
        }
      } throws: { error in
        if case .tornByLostLog? = error as? StoreError { true } else { false }
      }
      #expect(found == FoundLog(wasEmpty: true, starts: 1))
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == torn)
    #expect(!FileManager.default.fileExists(atPath: path + ".format5"))
  }

  /// Leaves a store of which a part was carried over, behind a reader's snapshot, and whose log has gone.
  private func tear(_ directory: TemporaryDirectory) throws {
    let path = directory.path + "/" + Store.fileName
    let reader: Database
    do {
      let store = try directory.open()
      try store.noteStart()
      try fill(store, 0..<200)
      try store.checkpoint()
      reader = try Database(path: path, access: .readOnly)
      try reader.execute("BEGIN; SELECT count(*) FROM documents")
      try fill(store, 200..<400)
      try store.checkpoint()
      try reader.execute("ROLLBACK; BEGIN; SELECT count(*) FROM documents")
      try fill(store, 400..<600)
      try store.checkpoint()
    }
    try FileManager.default.removeItem(atPath: path + "-wal")
    withExtendedLifetime(reader) {}
  }

  private func fill(_ store: Store, _ numbers: Range<UInt16>) throws {
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      for number in numbers {
        let key = [UInt8(number >> 8), UInt8(number & 255), 1]
        _ = try transaction.insertNew(
          place.partition, place.collection, key: key, state: Array(repeating: 1, count: 300))
      }
    }
  }

  @Test("a store from before holdings were kept goes on with none")
  func withoutHoldings() throws {
    let directory = try TemporaryDirectory()
    try { try directory.open { $0.migrations = [.first] }.write(.full) { try $0.subscribe("agency=*") } }()
    let store = try directory.open()
    #expect(try store.subscriptions() == ["agency=*"] && store.holdings().isEmpty)
  }

  @Test("a migration that fails leaves the store at its version")
  func failedMigration() throws {
    let directory = try TemporaryDirectory()
    try { _ = try directory.open() }()
    let broken = Migration(version: 6, sql: "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT; DROP TABLE absent")
    #expect(throws: StoreError.self) { try directory.open { $0.migrations = Migration.all + [broken] } }
    let store = try directory.open()
    #expect(try store.database.integer("SELECT count(*) FROM sqlite_schema WHERE name='later'") == 0)
  }

  @Test("where a store is expected and there is none, none is made")
  func missing() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/" + Store.fileName
    #expect(throws: StoreError.missing(path: path)) { try directory.open { $0.createsIfMissing = false } }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("a log beside no database, or an empty one, is left as it is, whether or not a store may be made")
  func logAlone() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/" + Store.fileName
    try { try directory.open().write(.full) { try $0.subscribe("agency=*") } }()
    let log = try Data(contentsOf: URL(fileURLWithPath: path + "-wal"))
    for isEmptyFileThere in [false, true] {
      try FileManager.default.removeItem(atPath: path)
      if isEmptyFileThere { try Data().write(to: URL(fileURLWithPath: path)) }
      for creates in [true, false] {
        #expect(throws: StoreError.logAlone(path: path + "-wal")) {
          try directory.open { $0.createsIfMissing = creates }
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + "-wal")) == log)
        #expect(FileManager.default.fileExists(atPath: path) == isEmptyFileThere)
      }
      try Data().write(to: URL(fileURLWithPath: path))
    }
  }

  @Test("a store that goes without being closed leaves its log, which tells at the next opening whether it was there")
  func keepsLog() throws {
    let directory = try TemporaryDirectory()
    let log = directory.path + "/" + Store.fileName + "-wal"
    try {
      let store = try directory.open()
      #expect(store.wasLogEmpty && !store.isStartNoted)
      try store.noteStart()
      try store.noteStart()
      #expect(try store.integer(.starts) == 1)
    }()
    #expect(FileManager.default.fileExists(atPath: log))
    #expect(try !directory.open().wasLogEmpty)
    try Data().write(to: URL(fileURLWithPath: log))
    #expect(try directory.open().wasLogEmpty)
  }

  @Test("a closed store is one file, with readers that have come back")
  func closes() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/" + Store.fileName
    try {
      let store = try directory.open()
      try store.write(.full) { try $0.subscribe("agency=*") }
      #expect(try store.readers.read { try $0.subscriptions() } == ["agency=*"])
      let readers = store.readers
      readers.close()
      #expect(throws: StoreError.interrupted) { try readers.read { try $0.subscriptions() } }
      #expect(try store.carryOverAll())
      try store.closeLog()
    }()
    #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
    #expect(try Database(path: path, access: .readOnly).integer("SELECT count(*) FROM subscriptions") == 1)
  }

  @Test("a store with 10,000 partitions and 200,000 documents is open and loaded within a second of work")
  func startTime() throws {
    let directory = try TemporaryDirectory()
    try fillMany(directory)
    let start = threadSeconds()
    let store = try directory.open()
    let partitions = try store.partitions()
    let chains = try store.chains()
    #expect(threadSeconds() - start < 1)
    #expect(partitions.count == 10_000 && chains.count == 10_000)
    #expect(store.counters.documents == 200_000)
  }

  /// Of this thread alone, so that other work on the machine does not count.
  private func threadSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  private func fillMany(_ directory: TemporaryDirectory) throws {
    let store = try directory.open()
    store.pace = .catchUp
    try store.write(.deferred) { transaction in
      let collection = try transaction.number(ofCollection: "reports")
      for number in 0..<10_000 as Range<UInt64> {
        let partition = try transaction.number(of: partitionID(number), name: PartitionName(Text("p=\(number)")))
        _ = try transaction.number(of: replica(1), in: partition, genesis: digest(number))
        for index in 0..<20 as Range<UInt8> {
          _ = try transaction.insertNew(partition, collection, key: [6, index, 0], state: [1, 2, 3])
        }
      }
    }
  }

  // MARK: Memory

  private func cachedBytes(_ store: Store) -> Int {
    var (current, highest): (Int32, Int32) = (0, 0)
    sqlite3_db_status(store.database.handle, SQLITE_DBSTATUS_CACHE_USED, &current, &highest, 0)
    return Int(current)
  }

  @Test("what a start reads of all chains is not kept, and what is read once something was written is")
  func startCache() throws {
    let directory = try TemporaryDirectory()
    do {
      let store = try directory.open()
      try store.write(.full) { transaction in
        let partition = try transaction.number(of: partitionID(1), name: PartitionName("agency=Test"))
        for number in 1...6_000 as ClosedRange<UInt64> {
          _ = try transaction.number(of: replica(number), in: partition, genesis: digest(number))
        }
      }
      _ = try store.carryOverAll()
    }
    let store = try directory.open { ($0.startCacheBytes, $0.cacheBytes) = (128 * 1_024, 4 * 1_024 * 1_024) }
    #expect(try store.chains().count == 6_000)
    #expect(cachedBytes(store) < 256 * 1_024, "\(cachedBytes(store))")
    try store.noteStart()
    #expect(try store.chains().count == 6_000)
    #expect(cachedBytes(store) > 512 * 1_024, "\(cachedBytes(store))")
  }
}
