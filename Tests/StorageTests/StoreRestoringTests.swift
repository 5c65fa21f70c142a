import Foundation
import Replication
import Testing

@testable import Storage

/// A backup put in place of a store: whichever step is the last, the store that was there is whole under one name.
@Suite struct StoreRestoringTests {
  private let backups: TemporaryDirectory
  private let backup: String

  /// A backup with two documents.
  init() throws {
    backups = try TemporaryDirectory()
    backup = backups.path + "/backup"
    let directory = try TemporaryDirectory()
    let store = try directory.open()
    try put(0..<2, into: store)
    try StoreBackup.write(store: store.database.path, to: backup)
  }

  private func put(_ numbers: Range<Int64>, into store: Store) throws {
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      for number in numbers {
        _ = try transaction.insertNew(
          place.partition, place.collection, key: Value.int(number).canonicalBytes, state: [9])
      }
    }
  }

  private func restoring(_ directory: String, aside: String = "aside") throws -> StoreRestoring {
    StoreRestoring(
      directory: directory, fleet: testFleet, device: testDevice, asideName: aside,
      lock: try DirectoryLock(directory: directory))
  }

  private func documents(_ directory: String, _ name: String = Store.fileName) throws -> Int64? {
    let copy = try TemporaryDirectory()
    for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: "\(directory)/\(name)\(suffix)") {
      try FileManager.default.copyItem(
        atPath: "\(directory)/\(name)\(suffix)", toPath: copy.path + "/" + Store.fileName + suffix)
    }
    return try? copy.open { $0.createsIfMissing = false }.counters.documents
  }

  @Test("a restored copy has everything, knows that it is one, and its source does not (S6)")
  func restores() throws {
    let target = try TemporaryDirectory()
    #expect(try restoring(target.path).run(from: backup) == nil)
    let restored = try target.open()
    #expect(restored.counters.documents == 2)
    #expect(try restored.meta(.restored) != nil)
    try restored.write(.full) { try $0.setMeta(nil, for: .restored) }
    #expect(try restored.meta(.restored) == nil)
  }

  @Test("the store that was there is one file with all that its log held, and both can be opened")
  func folds() throws {
    let target = try TemporaryDirectory()
    try { try put(0..<5, into: try target.open()) }()
    #expect(try restoring(target.path).run(from: backup) == target.path + "/aside")
    #expect(!FileManager.default.fileExists(atPath: target.path + "/aside-wal"))
    #expect(try documents(target.path) == 2 && documents(target.path, "aside") == 5)
    #expect(throws: StoreError.alreadyExists(path: target.path + "/aside")) {
      try restoring(target.path).run(from: backup)
    }
    #expect(try restoring(target.path, aside: "second").run(from: backup) == target.path + "/second")
    #expect(try documents(target.path, "second") == 2)
  }

  @Test("a log without its database is set aside unopened")
  func logAlone() throws {
    let target = try TemporaryDirectory()
    let log = Data(repeating: 5, count: 5_000)
    try log.write(to: URL(fileURLWithPath: target.path + "/seamesh.db-wal"))
    #expect(try restoring(target.path).run(from: backup) == target.path + "/aside-wal")
    #expect(try Data(contentsOf: URL(fileURLWithPath: target.path + "/aside-wal")) == log)
    #expect(try documents(target.path) == 2)
  }

  @Test(
    "what is no store, newer, older, missing, damaged or another's changes nothing",
    arguments: ["other", "newer", "older", "damaged", "missing", "foreign"])
  func refusesBadFiles(kind: String) throws {
    let target = try TemporaryDirectory()
    try { try put(0..<5, into: try target.open()) }()
    let database = try Data(contentsOf: URL(fileURLWithPath: target.path + "/seamesh.db"))
    let device = kind == "foreign" ? DeviceID(digest(77)) : testDevice
    switch kind {
    case "other": try Data("a text".utf8).write(to: URL(fileURLWithPath: backup))
    case "newer": try Database(path: backup, access: .readWrite).execute("PRAGMA user_version=9")
    case "older": try Database(path: backup, access: .readWrite).execute("PRAGMA user_version=1")
    case "missing": try FileManager.default.removeItem(atPath: backup)
    case "foreign": break
    default:
      let file = try FileHandle(forUpdating: URL(fileURLWithPath: backup))
      // Amid the tables: only looking at every page finds it.
      try file.seek(toOffset: UInt64(StoreOptions().pageByteCount) * 2)
      try file.write(contentsOf: Data(repeating: 0xa5, count: StoreOptions().pageByteCount * 4))
      try file.close()
    }
    let restoring = StoreRestoring(
      directory: target.path, fleet: testFleet, device: device, asideName: "aside",
      lock: try DirectoryLock(directory: target.path))
    #expect(throws: StoreError.self) { try restoring.run(from: backup) }
    #expect(try Data(contentsOf: URL(fileURLWithPath: target.path + "/seamesh.db")) == database)
    #expect(try documents(target.path) == 5)
    #expect(!FileManager.default.fileExists(atPath: target.path + "/aside"))
  }

  private struct Killed: Error {}

  @Test(
    "cut off after any step, with a log that can be folded or not: the store is whole, and a second attempt goes through",
    arguments: StoreRestoring.Step.allCases, [true, false])
  func cutOff(step: StoreRestoring.Step, canFold: Bool) throws {
    let target = try TemporaryDirectory()
    try { try put(0..<5, into: try target.open()) }()
    // A reader keeps the log from being emptied.
    let reader = canFold ? nil : try Database(path: target.path + "/seamesh.db", access: .readOnly)
    try reader?.execute("BEGIN; SELECT count(*) FROM documents")
    do {
      var first = try restoring(target.path, aside: "first")
      first.reached = { if $0 == step { throw Killed() } }
      _ = try first.run(from: backup)
      #expect(step == .named && canFold)
    } catch is Killed {}
    try reader?.execute("ROLLBACK")
    let whole = try [Store.fileName, "first"].compactMap { try documents(target.path, $0) }
    #expect(whole.contains(5), "\(whole)")
    // In place stands one of the two stores with its own log, or none.
    #expect([nil, 2, 5].contains(try documents(target.path)))
    _ = try restoring(target.path, aside: "second").run(from: backup)
    #expect(try documents(target.path) == 2)
    let kept = try ["first", "second"].compactMap { try documents(target.path, $0) }
    #expect(kept.contains(5), "\(kept)")
  }
}
