import CSQLite
import Dispatch
import Engine
import Foundation
import Replication
import Synchronization
import Testing

@testable import Storage

@Suite struct ReaderTests {
  private let directory: TemporaryDirectory
  private let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try directory.open()
  }

  private func put(_ numbers: Range<Int64>) throws {
    try store.write(.deferred) { transaction in
      let place = try Place(transaction)
      for number in numbers {
        _ = try transaction.insertNew(
          place.partition, place.collection, key: Value.int(number).canonicalBytes, state: [1])
      }
    }
  }

  private func count(_ reader: StoreReader) throws -> Int64 {
    guard let partition = try reader.partition(partitionID(1)), let collection = try reader.collectionNumber("reports")
    else { return 0 }
    return try reader.documentCount(partition.number, collection)
  }

  @Test("a reader sees what is committed, and within a snapshot one state")
  func snapshots() throws {
    #expect(try store.readers.read(count) == 0)
    try put(0..<10)
    #expect(try store.readers.read(count) == 10)
    let seen = try store.readers.read { reader in
      try reader.snapshot { reader in
        let before = try count(reader)
        try put(10..<20)
        return [before, try count(reader)]
      }
    }
    #expect(seen == [10, 10])
    #expect(try store.readers.read(count) == 20)
  }

  @Test("what readers keep of pages goes when the process rests, but not under who reads")
  func releasedCaches() throws {
    func cachedBytes(_ reader: StoreReader) -> Int32 {
      var (current, highest): (Int32, Int32) = (0, 0)
      sqlite3_db_status(reader.database.handle, SQLITE_DBSTATUS_CACHE_USED, &current, &highest, 0)
      return current
    }
    try put(0..<20_000)
    try store.readers.read { first in
      // Another one, at rest by the time.
      let seen = try [count(first), store.readers.read(count)]
      let kept = cachedBytes(first)
      #expect(seen == [20_000, 20_000] && kept > 100_000)
      store.readers.releaseCaches()
      let left = try store.readers.read(cachedBytes)
      #expect(cachedBytes(first) == kept && left < kept / 4)
    }
    store.readers.releaseCaches()
    #expect(try store.readers.read(count) == 20_000)
  }

  @Test("a reader cannot write")
  func readOnly() throws {
    #expect(throws: StoreError.self) {
      try store.readers.read { try $0.database.execute("DELETE FROM meta") }
    }
  }

  @Test("threads read while the writer writes, and each sees whole transactions only")
  func parallelReads() throws {
    try put(0..<100)
    let failures = Atomic(0)
    let readers = store.readers
    let done = Atomic(false)
    let group = DispatchGroup()
    for _ in 0..<12 {
      DispatchQueue.global().async(group: group) {
        while !done.load(ordering: .relaxed) {
          let count = try? readers.read { reader -> Int64 in
            guard let partition = try reader.partition(partitionID(1)) else { return 1 }
            let collection = try #require(try reader.collectionNumber("reports"))
            return try reader.documentCount(partition.number, collection)
          }
          if count == nil || count?.isMultiple(of: 100) == false { failures.add(1, ordering: .relaxed) }
        }
      }
    }
    for round in 1..<20 as Range<Int64> { try put(round * 100..<(round + 1) * 100) }
    done.store(true, ordering: .relaxed)
    group.wait()
    #expect(failures.load(ordering: .relaxed) == 0)
  }

  @Test("an open snapshot delays neither the writer nor its checkpoints, and the log shows it (S2)")
  func longReader() throws {
    try put(0..<10)
    try store.readers.read { reader in
      try reader.snapshot { reader in
        #expect(try count(reader) == 10)
        let before = store.writeAheadLogBytes
        try put(10..<5_000)
        try store.checkpoint()
        #expect(store.writeAheadLogBytes > before)
        #expect(try count(reader) == 10)
      }
    }
    try store.checkpoint()
    let size = store.writeAheadLogBytes
    try put(5_000..<5_010)
    #expect(store.writeAheadLogBytes == size)
  }

  // MARK: The log begins anew

  /// A small limit, so that readers soon hold a log that is twice as long.
  private func smallLog(_ change: (inout StoreOptions) -> Void = { _ in }) throws -> (TemporaryDirectory, Store) {
    let directory = try TemporaryDirectory()
    let store = try directory.open {
      $0.logByteLimits = [.live: 1024 * 1024, .catchUp: 2 * 1024 * 1024]
      change(&$0)
    }
    return (directory, store)
  }

  /// Commits as an engine does it: the log is carried over behind it.
  private func write(_ store: Store, _ number: Int) throws {
    try store.transact(isBacklog: false) { transaction in
      for part in 0..<20 {
        try transaction.subscribe(Text("\(number)-\(part)-" + String(repeating: "x", count: 10_000)))
      }
    }
    try store.carryOver(.busy)
  }

  @Test("readers who relieve one another do not hold the log for ever: new ones wait until it begins anew")
  func relievedReaders() throws {
    let (directory, store) = try smallLog()
    defer { withExtendedLifetime(directory) {} }
    let (next, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let readers = store.readers
    let relieved = Mutex(false)
    try readers.read { reader in
      try reader.snapshot { reader in
        _ = try count(reader)
        for number in 0..<60 { try write(store, number) }
        #expect(store.carryDelay == 10, "the engine looks whether the reader has come back")
        DispatchQueue.global().async {
          next.signal()
          try? readers.read { _ in relieved.withLock { $0 = true } }
          done.signal()
        }
        next.wait()
        try write(store, 100)
        #expect(!relieved.withLock { $0 }, "the next reader has to wait")
      }
    }
    try store.carryOver(.busy)
    done.wait()
    #expect(relieved.withLock { $0 })
    #expect(store.waitingFrames == 0 && store.carryDelay == nil)
    let size = store.writeAheadLogBytes
    for number in 200..<204 { try write(store, number) }
    #expect(store.writeAheadLogBytes == size, "the log has begun anew")
  }

  @Test("a reader that holds nothing keeps nobody out, however long the log has become at once")
  func readerBesideCarriedLog() throws {
    let (directory, store) = try smallLog()
    defer { withExtendedLifetime(directory) {} }
    try store.transact(isBacklog: true) { transaction in
      for number in 0..<400 {
        try transaction.subscribe(Text("\(number)-" + String(repeating: "x", count: 10_000)))
      }
    }
    try store.readers.read { reader in
      try reader.snapshot { reader in
        _ = try count(reader)
        try store.transact(isBacklog: false) { try $0.subscribe("last") }
        try store.carryOver(.idle)
        #expect(store.carrying.heldOffSince == nil)
      }
    }
  }

  @Test("nobody is kept out for longer than the log may take, whatever becomes of who writes it")
  func forgottenDoor() throws {
    let (directory, store) = try smallLog()
    defer { withExtendedLifetime(directory) {} }
    store.readers.holdOff(until: monotonicMilliseconds() + 30)
    #expect(try store.readers.read { try $0.database.integer("SELECT 1") } == 1)
  }

  @Test("SQLite keeps no statistics of memory, which would cost every thread a lock at each allocation")
  func withoutStatistics() throws { #expect(Database.libraryConfigured == 0) }

  @Test("a reader that stays while others wait is ended, and asks again")
  func endedReader() throws {
    let (directory, store) = try smallLog { $0.readerPatienceMilliseconds = 0 }
    defer { withExtendedLifetime(directory) {} }
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n"
    #expect(throws: StoreError.interrupted) {
      try store.readers.read { reader in
        try reader.snapshot { reader in
          _ = try count(reader)
          for number in 0..<60 { try write(store, number) }
          _ = try reader.database.integer(endless)
        }
      }
    }
    // Nobody is kept out for ever, either, where somebody does not come back.
    try write(store, 100)
    #expect(try store.readers.read { try $0.database.integer("SELECT count(*) FROM subscriptions") } == 61 * 20)
  }

  @Test("a question that was stopped says so, and so do later ones")
  func stops() throws {
    try put(0..<10)
    let readers = store.readers
    #expect(throws: StoreError.interrupted) {
      try readers.read { reader in
        readers.stopAll()
        _ = try reader.database.integer(
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n")
      }
    }
    #expect(throws: StoreError.interrupted) { try readers.read(count) }
  }
}
