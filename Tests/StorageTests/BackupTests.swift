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

  @Test("a restored copy has everything, knows that it is one, and its source does not (S6)")
  func restore() throws {
    let (target, copies) = (try TemporaryDirectory(), try TemporaryDirectory())
    let path = copies.path + "/copy"
    try StoreBackup.write(store: store.database.path, to: path)
    try StoreBackup.restore(from: path, into: target.path)
    let restored = try target.open()
    #expect(restored.counters == store.counters && restored.id == store.id)
    #expect(try restored.meta(.restored) != nil && store.meta(.restored) == nil)
    try restored.write(.full) { try $0.setMeta(nil, for: .restored) }
    #expect(try restored.meta(.restored) == nil)
  }

  @Test("nothing that is there is overwritten")
  func keepsWhatIsThere() throws {
    let copies = try TemporaryDirectory()
    let path = copies.path + "/copy"
    try StoreBackup.write(store: store.database.path, to: path)
    #expect(throws: StoreError.alreadyExists(path: path)) {
      try StoreBackup.write(store: store.database.path, to: path)
    }
    let other = try TemporaryDirectory()
    try { _ = try other.open() }()
    #expect(throws: StoreError.alreadyExists(path: other.path + "/" + Store.fileName)) {
      try StoreBackup.restore(from: path, into: other.path)
    }
    #expect(throws: StoreError.self) { try StoreBackup.restore(from: path, into: directory.path) }
  }

  @Test("a file that is no store, newer, missing or damaged is not restored", arguments: ["other", "newer", "damaged"])
  func refusesBadFiles(kind: String) throws {
    let (target, copies) = (try TemporaryDirectory(), try TemporaryDirectory())
    let path = copies.path + "/copy"
    try StoreBackup.write(store: store.database.path, to: path)
    switch kind {
    case "other": try Data("a text".utf8).write(to: URL(fileURLWithPath: path))
    case "newer": try Database(path: path, access: .readWrite).execute("PRAGMA user_version=9")
    default:
      let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
      // Amid the documents: only looking at every page finds it.
      for page in 1_000..<1_200 as Range<UInt64> {
        try file.seek(toOffset: page * 4_096)
        try file.write(contentsOf: Data(repeating: 0xa5, count: 4_000))
      }
      try file.close()
    }
    #expect(throws: StoreError.self) { try StoreBackup.restore(from: path, into: target.path) }
    #expect(!FileManager.default.fileExists(atPath: target.path + "/" + Store.fileName))
  }

  @Test("a copy that fails leaves no half file behind")
  func failedCopy() throws {
    #expect(throws: StoreError.self) {
      try StoreBackup.write(store: store.database.path, to: directory.path + "/absent/copy")
    }
    #expect(throws: StoreError.missing(path: "/absent")) { try StoreBackup.write(store: "/absent", to: "/tmp/x") }
  }
}
