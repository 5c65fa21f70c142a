import CSQLite
import Foundation
import Replication
import SimulatedDisk
import Testing

@testable import Storage

/// The disk that fault tests and the simulator believe in.
@Suite struct SimulatedDiskTests {
  private let disk = SimulatedDisk()

  private func open(_ disk: SimulatedDisk, _ change: (inout StoreOptions) -> Void = { _ in }) throws -> Store {
    var options = StoreOptions()
    options.fileLayer = disk.name
    change(&options)
    return try Store.open(directory: "/no/such/directory", fleet: testFleet, device: testDevice, options: options)
  }

  private func put(_ store: Store, _ number: UInt64, bytes: Int = 100, _ durability: Durability = .full) throws {
    try store.write(durability) { transaction in
      let place = try Place(transaction)
      try transaction.appendRun(
        place.chain, first: number, last: number, context: vector([:]), body: [UInt8](repeating: 1, count: bytes)[...])
    }
  }

  private func count(_ reader: some StoreReading) throws -> Int64? {
    try reader.database.integer("SELECT count(*) FROM runs")
  }

  private func runs(_ disk: SimulatedDisk) throws -> Int64? { try count(try open(disk)) }

  @Test("a store on the disk touches no file of the system, and a closed one is whole on the next start")
  func standsAlone() throws {
    try {
      let store = try open(disk)
      try put(store, 1)
      try #require(try store.carryOverAll())
      try store.closeLog()
    }()
    #expect(try runs(disk) == 1)
    #expect(!FileManager.default.fileExists(atPath: "/no"))
    #expect(try open(disk).databaseBytes > 0 && open(disk).writeAheadLogBytes == 0)
  }

  @Test("where a store is expected on the disk and there is none, none is made")
  func missing() throws {
    #expect(throws: StoreError.missing(path: "/no/such/directory/\(Store.fileName)")) {
      try open(disk) { $0.createsIfMissing = false }
    }
    #expect(disk.fileNames == [])
  }

  @Test("whoever opens a new store decides its id and the size of its pages")
  func seededStore() throws {
    let id = UUIDValue(high: 5, low: 6)
    let store = try open(disk) {
      $0.makeStoreID = { id }
      $0.pageByteCount = 4_096
    }
    #expect(store.id == id)
    #expect(try store.database.integer("PRAGMA page_size") == 4_096)
  }

  @Test("the log is carried over at the limit that the options set")
  func logLimit() throws {
    let store = try open(disk) { $0.logByteLimits = [.live: 256 * 1024] }
    for number in 1...60 as ClosedRange<UInt64> { try put(store, number, bytes: 20_000) }
    #expect(store.writeAheadLogBytes < 768 * 1024)
    #expect(store.databaseBytes > 600_000)
  }

  @Test("a reader beside the writer keeps its state over a checkpoint, and its end leaves the log alone")
  func readerBesideWriter() throws {
    let store = try open(disk)
    try put(store, 1)
    let reader = try Database(path: store.database.path, access: .readOnly, vfs: disk.name)
    try reader.execute("BEGIN; SELECT count(*) FROM runs")
    for number in 2...20 as ClosedRange<UInt64> {
      try put(store, number)
      try store.checkpoint()
    }
    #expect(try reader.integer("SELECT count(*) FROM runs") == 1)
    #expect(try store.readers.read { try count($0) } == 20)
    try { try Database(path: store.database.path, access: .readOnly, vfs: disk.name).execute("SELECT * FROM runs") }()
    try reader.execute("COMMIT")
    try put(store, 21)
    #expect(try runs(disk.afterRestart(.lost)) == 21)
    #expect(try reader.integer("SELECT count(*) FROM runs") == 21)
  }

  @Test("a copy and its original go separate ways, and a copy has what was not synced yet")
  func copies() throws {
    let store = try open(disk)
    try put(store, 1)
    try put(store, 2, .deferred)
    let copy = disk.copy()
    try put(store, 3)
    try {
      let other = try open(copy)
      #expect(try count(other) == 2)
      try put(other, 3)
      try put(other, 4)
    }()
    #expect(try count(store) == 3)
    #expect(try runs(copy) == 4)
    #expect(try runs(disk.afterRestart(.lost)) == 3)
  }

  @Test("a process that ends leaves its writes to the cache, from which a power cut still takes them")
  func cachedThenLost() throws {
    let store = try open(disk)
    try put(store, 1)
    try put(store, 2, .deferred)
    let next = disk.afterRestart(.cached)
    #expect(try runs(next.afterRestart(.kept)) == 2)
    #expect(try runs(next.afterRestart(.lost)) == 1)
    #expect(try runs(next) == 2)
  }

  @Test("writes that would grow the disk beyond its limit are refused, and what is deleted gives room")
  func byteLimit() throws {
    disk.setContents(of: "film", to: [UInt8](repeating: 1, count: 1_000_000))
    let store = try open(disk)
    disk.byteLimit = disk.usedBytes + 300_000
    var number: UInt64 = 1
    let refused = #expect(throws: StoreError.self) {
      while number < 100 {
        try put(store, number, bytes: 20_000)
        number += 1
      }
    }
    guard case .diskFull? = refused else {
      Issue.record("expected a full disk, got \(String(describing: refused))")
      return
    }
    #expect(number > 1 && disk.usedBytes <= disk.byteLimit ?? 0)
    disk.setContents(of: "film", to: nil)
    try put(store, number, bytes: 20_000)
    #expect(try count(store) == Int64(number))
  }

  @Test("a deleted file is back after a power cut unless the names were synced; a torn disk decides by chance")
  func deletedFilesComeBack() throws {
    let files = StoreFiles(layer: disk.name)
    disk.setContents(of: "a", to: [1])
    disk.setContents(of: "b", to: [2])
    try files.remove("/x/a")
    #expect(disk.fileNames == ["b"])
    #expect(disk.afterRestart(.lost).fileNames == ["a", "b"])
    #expect(disk.afterRestart(.kept).fileNames == ["b"])
    let torn = Set((0..<16).map { disk.afterRestart(.torn(seed: $0)).fileNames })
    #expect(torn == [["b"], ["a", "b"]])
    try files.syncNames(beside: "/x/b")
    #expect(disk.afterRestart(.lost).fileNames == ["b"])
    try files.move("/x/b", to: "/x/c")
    #expect(disk.contents(of: "c") == [2])
    #expect(disk.afterRestart(.lost).fileNames == ["b"])
  }

  @Test("each operation is counted, and slow syncs add up in virtual time")
  func counts() throws {
    let store = try open(disk)
    let before = disk.operations
    disk.millisecondsPerSync = 30
    try put(store, 1)
    try put(store, 2)
    #expect(disk.operations[.sync] - before[.sync] == 2)
    #expect(disk.operations[.write] > before[.write] && disk.operations.bytesWritten > before.bytesWritten)
    #expect(disk.takeDelay() == 60 && disk.takeDelay() == 0)
  }

  @Test("a read that fails says so, and only once")
  func failedRead() throws {
    try { try put(try open(disk), 1) }()
    let store = try open(disk) { $0.cacheBytes = 4_096 }
    disk.failRead(disk.operations[.read] + 1)
    #expect(throws: StoreError.self) { try store.database.integer("SELECT sum(length(body)) FROM runs") }
    #expect(try store.database.integer("SELECT sum(length(body)) FROM runs") == 100)
  }

  @Test("a store is backed up and migrated within the disk")
  func upkeep() throws {
    let store = try open(disk)
    try put(store, 1)
    try StoreBackup.write(store: store.database.path, to: "/elsewhere/copy", fileLayer: disk.name)
    let other = SimulatedDisk()
    other.setContents(of: Store.fileName, to: disk.contents(of: "copy"))
    let second = Migration(version: 6, sql: "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT")
    let migrated = try open(other) { $0.migrations = Migration.all + [second] }
    #expect(try count(migrated) == 1 && migrated.meta(.restored) != nil)
    #expect(other.fileNames.contains(Store.fileName + ".format5"))
  }

  @Test("thousands of disks come and go, and nothing of them stays")
  func noLeaks() throws {
    // Of this test alone: others have disks meanwhile.
    var names: [String] = []
    func registered() -> Int { names.count { sqlite3_vfs_find($0) != nil } }
    for round in 0..<5_000 {
      // A store on each would take minutes in a debug build.
      let disk = SimulatedDisk()
      let path = "/no/\(round)"
      if round % 100 == 0 { try put(try open(disk), 1) }
      disk.setContents(of: "film", to: [UInt8](repeating: 1, count: 50_000))
      let copy = disk.copy()
      #expect(StoreFiles(layer: copy.name).size(path + "/film") == 50_000)
      names.append(copy.name)
      if round == 1_000 { #expect(registered() <= 2) }
    }
    #expect(registered() == 0)
    #expect(residentBytes() < 1_000_000_000)
  }

  private func residentBytes() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * Int(getpagesize()) } ?? 0
  }
}
