import Foundation
import Replication
import Testing

@testable import Storage

@Suite struct BackupTests {
  private let directory: TemporaryDirectory
  private let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try directory.open()
    try put(0..<2_000)
  }

  private func put(_ numbers: Range<Int64>) throws {
    try store.write(.deferred) { transaction in
      let place = try Place(transaction)
      for number in numbers {
        _ = try transaction.insertNew(
          place.partition, place.collection, key: Value.int(number).canonicalBytes,
          state: [UInt8](repeating: 9, count: 8_000))
      }
    }
  }

  @Test("a copy made while the writer goes on is one state, and the writer is not stopped")
  func copyUnderLoad() throws {
    let target = try TemporaryDirectory()
    let path = target.path + "/copy"
    var next: Int64 = 2_000
    var reports: [(done: Int, all: Int)] = []
    try StoreBackup.write(store: store.database.path, to: path) { done, all in
      reports.append((done, all))
      if next < 3_000 {
        try? put(next..<next + 10)
        next += 10
      }
    }
    #expect(next > 2_010 && reports.count > 3)
    #expect(reports.map(\.done) == reports.map(\.done).sorted() && reports.last?.done == reports.last?.all)
    #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == ["copy"])
    let copy = try Database(path: path, access: .readOnly)
    #expect(try copy.integer("SELECT count(*) FROM documents") == 2_000)
    #expect(try copy.integer("SELECT documents FROM partitions") == 2_000)
    #expect(store.counters.documents == next)
  }

  @Test(
    "a copy whose place is slow holds the log while the store is read, not while it is written there",
    arguments: [StoreBackup.Way.staged, .direct])
  func slowPlace(way: StoreBackup.Way) throws {
    let target = try TemporaryDirectory()
    var isHeld: [Bool] = []
    var next: Int64 = 2_000
    var reports: [Int] = []
    try StoreBackup.write(store: store.database.path, to: target.path + "/copy", way) { done, all in
      reports.append(done)
      guard done > all / 2, let carried = try? goOn(&next) else { return }
      isHeld.append(carried.frames != carried.carried)
    }
    #expect(isHeld.count > 1 && reports == reports.sorted())
    #expect(Set(isHeld.dropLast()) == [way == .direct], "\(isHeld)")
    let copy = try Database(path: target.path + "/copy", access: .readOnly)
    #expect(try copy.integer("SELECT count(*) FROM documents") == 2_000)
    try StoreBackup.verify(target.path + "/copy")
    #expect(!FileManager.default.fileExists(atPath: store.database.path + BackupStage.suffix))
  }

  private func goOn(_ next: inout Int64) throws -> (frames: Int32, carried: Int32) {
    try put(next..<next + 10)
    next += 10
    return try store.carryOver()
  }

  @Test("what a copy that was cut off had left beside the store goes with the next start")
  func leftover() throws {
    let directory = try TemporaryDirectory()
    _ = try directory.open()
    let left = directory.path + "/" + Store.fileName + BackupStage.suffix
    try Data([1]).write(to: URL(fileURLWithPath: left))
    _ = try directory.open()
    #expect(!FileManager.default.fileExists(atPath: left))
  }

  @Test(
    "a second copy to a place that one is on its way to is refused, by whatever path, and the first one is whole",
    arguments: [StoreBackup.Way.staged, .direct])
  func twice(way: StoreBackup.Way) throws {
    let target = try TemporaryDirectory()
    let path = target.path + "/copy"
    var refusals: [StoreError] = []
    try StoreBackup.write(store: store.database.path, to: path, way) { _, _ in
      for other in [path, target.path + "/./copy"] {
        do throws(StoreError) { try StoreBackup.write(store: store.database.path, to: other) } catch {
          refusals.append(error)
        }
      }
    }
    #expect(
      refusals.first == .backupUnderWay(path: path) && refusals.last == .backupUnderWay(path: target.path + "/./copy"))
    try StoreBackup.verify(path)
    #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == ["copy"])
    #expect(throws: StoreError.alreadyExists(path: path)) {
      try StoreBackup.write(store: store.database.path, to: path)
    }
    try FileSystem.remove(path)
    try StoreBackup.write(store: store.database.path, to: path)
  }

  @Test("files of others beside a copy stay as they are, whatever they are called")
  func filesOfOthers() throws {
    let target = try TemporaryDirectory()
    let names = [
      "copy.partial", "copy.partial-journal", "copy.partial-wal", "copy.partial-1", "copy.partial-2-journal",
    ]
    for name in names { try Data(name.utf8).write(to: URL(fileURLWithPath: target.path + "/" + name)) }
    try StoreBackup.write(store: store.database.path, to: target.path + "/copy")
    try StoreBackup.verify(target.path + "/copy")
    #expect(try FileManager.default.contentsOfDirectory(atPath: target.path).sorted() == ["copy"] + names.sorted())
    for name in names {
      #expect(try Data(contentsOf: URL(fileURLWithPath: target.path + "/" + name)) == Data(name.utf8))
    }
  }

  @Test("a copy that fails leaves no half file behind")
  func failedCopy() throws {
    #expect(throws: StoreError.self) {
      try StoreBackup.write(store: store.database.path, to: directory.path + "/absent/copy")
    }
    #expect(throws: StoreError.missing(path: "/absent")) { try StoreBackup.write(store: "/absent", to: "/tmp/x") }
  }
}
