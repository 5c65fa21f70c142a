import Foundation
import Replication
import SimulatedDisk
import Testing

@testable import Storage

/// What the design says of commits: durable before sent.
@Suite struct DurabilityTests {
  private func put(_ store: Store, _ number: UInt64, _ durability: Durability, bytes: Int = 100) throws {
    try store.write(durability) { transaction in
      let place = try Place(transaction)
      try transaction.appendRun(
        place.chain, first: number, last: number, context: vector([:]), body: [UInt8](repeating: 1, count: bytes)[...])
    }
  }

  private func runs(_ disk: SimulatedDisk) throws -> [UInt64] {
    let store = try TemporaryDirectory().open { $0.fileLayer = disk.name }
    guard let chain = try store.chains().first else { return [] }
    return try store.runs(of: chain.number, after: 0, byteLimit: .max).map(\.last)
  }

  @Test("a full commit makes every deferred one before it durable")
  func fullCommitCoversEarlierOnes() throws {
    let directory = try TemporaryDirectory()
    let disk = SimulatedDisk()
    let store = try directory.open { $0.fileLayer = disk.name }
    for number in 1...5 as ClosedRange<UInt64> { try put(store, number, .deferred) }
    #expect(try runs(disk.afterRestart(.lost)).isEmpty)
    #expect(try runs(disk.afterRestart(.cached)) == [1, 2, 3, 4, 5])
    try put(store, 6, .full)
    #expect(try runs(disk.afterRestart(.lost)) == [1, 2, 3, 4, 5, 6])
    try put(store, 7, .deferred)
    #expect(try runs(disk.afterRestart(.lost)) == [1, 2, 3, 4, 5, 6])
    try store.makeDurable()
    #expect(try runs(disk.afterRestart(.lost)) == [1, 2, 3, 4, 5, 6, 7])
  }

  @Test(
    "a write into a file that was deleted or replaced is not acknowledged, nor any after it",
    arguments: ["seamesh.db", "seamesh.db-wal"], [false, true])
  func removedFile(name: String, isReplaced: Bool) throws {
    let directory = try TemporaryDirectory()
    let store = try directory.open()
    try put(store, 1, .full)
    let path = directory.path + "/" + name
    try FileManager.default.removeItem(atPath: path)
    if isReplaced { try Data().write(to: URL(fileURLWithPath: path)) }
    for number in 2...3 as ClosedRange<UInt64> {
      #expect(throws: StoreError.removed(path: path)) { try put(store, number, .full) }
    }
  }

  @Test("making durable what is durable already touches nothing")
  func makesDurableOnce() throws {
    let disk = SimulatedDisk()
    let store = try TemporaryDirectory().open { $0.fileLayer = disk.name }
    try put(store, 1, .full)
    let before = disk.operations.changes
    try store.makeDurable()
    #expect(disk.operations.changes == before)
  }

  @Test("a full commit without any change is not taken for one that made earlier ones durable")
  func emptyFullCommit() throws {
    let disk = SimulatedDisk()
    let store = try TemporaryDirectory().open { $0.fileLayer = disk.name }
    try put(store, 1, .full)
    try put(store, 2, .deferred)
    try store.write(.full) { _ in }
    try store.makeDurable()
    #expect(try runs(disk.afterRestart(.lost)) == [1, 2])
  }

  @Test("a checkpoint makes deferred commits durable, and only one that carried all of them counts as such")
  func checkpointMakesDurable() throws {
    let disk = SimulatedDisk()
    let store = try TemporaryDirectory().open { $0.fileLayer = disk.name }
    try put(store, 1, .deferred)
    try store.checkpoint()
    #expect(try runs(disk.afterRestart(.lost)) == [1])
    let before = disk.operations.changes
    try store.makeDurable()
    #expect(disk.operations.changes == before)
  }

  @Test("the write-ahead log is carried over when due, and starts anew instead of growing")
  func checkpoints() throws {
    let directory = try TemporaryDirectory()
    let store = try directory.open()
    for number in 1...60 as ClosedRange<UInt64> { try put(store, number, .deferred, bytes: 1_000_000) }
    #expect(store.writeAheadLogBytes < 24 * 1024 * 1024)
    #expect(store.databaseBytes > 40 * 1024 * 1024)
    store.pace = .catchUp
    for number in 61...100 as ClosedRange<UInt64> { try put(store, number, .deferred, bytes: 1_000_000) }
    #expect(store.writeAheadLogBytes > 30 * 1024 * 1024)
  }

  @Test("an error in a checkpoint spares the commit before it, and stops the store")
  func failedCheckpoint() throws {
    let directory = try TemporaryDirectory()
    let disk = SimulatedDisk()
    var written: UInt64 = 0
    try {
      let store = try directory.open { $0.fileLayer = disk.name }
      while store.failure == nil && written < 40 {
        // The checkpoint syncs after the 16 MiB that make it due; the commits themselves are deferred.
        if written == 10 { disk.failSyncs() }
        try put(store, written + 1, .deferred, bytes: 1_000_000)
        written += 1
      }
      #expect(store.failure?.isFatal == true)
      #expect(throws: StoreError.self) { try put(store, written + 1, .deferred) }
    }()
    #expect(try runs(disk.afterRestart(.cached)).last == written)
  }

  /// A commit that a failed sync left in the system's cache alone, as the next start finds it.
  private func diskBehindFailedSync() throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let store = try TemporaryDirectory().open { $0.fileLayer = disk.name }
    try put(store, 1, .full)
    disk.failSyncs()
    #expect(throws: StoreError.self) { try put(store, 2, .full, bytes: 20_000) }
    return disk.afterRestart(.cached)
  }

  @Test("what a start found behind a failed sync stays when the power goes next")
  func foundBehindFailedSync() throws {
    let disk = try diskBehindFailedSync()
    #expect(try runs(disk) == [1, 2])
    for rest in [Restart.lost, .kept, .torn(seed: 1), .torn(seed: 2)] {
      #expect(try runs(disk.afterRestart(rest)) == [1, 2])
    }
  }

  @Test("a power cut at any operation of a start behind a failed sync leaves the store whole")
  func startBehindFailedSync() throws {
    let directory = try TemporaryDirectory()
    var (operation, isMet) = (1, true)
    while isMet {
      let disk = try diskBehindFailedSync()
      disk.fail(.crash, atOperation: operation)
      _ = try? directory.open { $0.fileLayer = disk.name }
      isMet = disk.faultsHit > 0
      for rest in [Restart.cached, .lost, .kept, .torn(seed: 1), .torn(seed: 2), .torn(seed: 3)] {
        let left = disk.afterRestart(rest)
        let found = try runs(left)
        #expect(found == [1, 2] || found == [1] && isMet, "operation \(operation), \(rest)")
        let store = try directory.open { $0.fileLayer = left.name }
        #expect(try store.database.string("PRAGMA integrity_check") == "ok", "operation \(operation), \(rest)")
      }
      operation += 1
    }
    #expect(operation > 5)
  }

  @Test("a file that is written again holds what it held")
  func writtenAgain() throws {
    let directory = try TemporaryDirectory()
    let content = (0..<FileSystem.rewrittenAtOnce * 2 + 77).map { UInt8(truncatingIfNeeded: $0 / 3) }
    let path = directory.path + "/log"
    try Data(content).write(to: URL(fileURLWithPath: path))
    try StoreFiles(layer: nil).writeAgain(path)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(content))
    let disk = SimulatedDisk()
    disk.setContents(of: "log", to: content)
    try StoreFiles(layer: disk.name).writeAgain(path)
    #expect(disk.contents(of: "log") == content && disk.operations.bytesWritten == content.count)
  }

  @Test(
    "a full file system refuses the write and lets reading go on; with room again writing does too (S1)",
    .enabled(if: getuid() == 0, "a small file system of its own needs root"))
  func fullFileSystem() throws {
    let directory = try TemporaryDirectory()
    guard try mount("-t", "tmpfs", "-o", "size=3m", "none", directory.path) else { return }
    defer { _ = try? run("/bin/umount", "-l", directory.path) }
    let store = try directory.open()
    var number: UInt64 = 0
    let refused = #expect(throws: StoreError.self) {
      while number < 100 {
        try put(store, number + 1, .full, bytes: 100_000)
        number += 1
      }
    }
    guard case .diskFull? = refused else {
      Issue.record("expected a full disk, got \(String(describing: refused))")
      return
    }
    #expect(store.failure == nil && number > 3)
    let chain = try #require(try store.chains().first)
    #expect(try store.lastRun(of: chain.number)?.last == number)
    #expect(try DiskSpace.of(directory.path).availableBytes < 300_000)
    guard try mount("-o", "remount,size=30m", directory.path) else { return }
    try put(store, number + 1, .full, bytes: 100_000)
    #expect(try store.lastRun(of: chain.number)?.last == number + 1)
  }

  @Test(
    "a read-only file system is named as such (S5)",
    .enabled(if: getuid() == 0, "a read-only mount needs root"))
  func readOnlyFileSystem() throws {
    let directory = try TemporaryDirectory()
    guard try mount("-t", "tmpfs", "-o", "size=3m", "none", directory.path) else { return }
    defer { _ = try? run("/bin/umount", "-l", directory.path) }
    try { _ = try directory.open() }()
    guard try mount("-o", "remount,ro", directory.path) else { return }
    #expect(try DiskSpace.of(directory.path).isReadOnly)
    let refused = #expect(throws: StoreError.self) { try directory.open() }
    guard case .readOnly? = refused else {
      Issue.record("expected read-only, got \(String(describing: refused))")
      return
    }
  }

  private func mount(_ arguments: String...) throws -> Bool { try run("/bin/mount", arguments) == 0 }
  private func run(_ path: String, _ arguments: String...) throws -> Int32 { try run(path, arguments) }

  private func run(_ path: String, _ arguments: [String]) throws -> Int32 {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus
  }
}
