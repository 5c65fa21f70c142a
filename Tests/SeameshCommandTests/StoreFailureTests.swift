import Foundation
import Replication
import Seamesh
import Storage
import TestSupport
import Testing

@testable import SeameshCommand

@Suite("Nodes whose store fails", .enabled(if: isCommandBuilt), .serialized)
struct StoreFailureTests {
  private let base = NSTemporaryDirectory() + "/seamesh-failure-" + String(UUID().uuidString.prefix(8))
  private var path: String { base + "/a/" + Store.fileName }

  private func seamesh(_ arguments: String..., input: String = "") throws -> CommandResult {
    try run(commandPath, arguments + ["--data=\(base)/a"], input: input, environment: ["PATH": "/usr/bin:/bin"])
  }

  private func makeStore() throws {
    let node = try RunTests.Running(base + "/a", [])
    #expect(try seamesh("put", "p", "c", "x", input: "{\"n\":1}").status == 0)
    #expect(node.stop() == 0)
  }

  /// Nothing of the table's first page is as it was.
  private func spoilPage(of table: String) throws {
    let database = try Database(path: path, access: .readOnly)
    let page = try #require(try database.integer("SELECT rootpage FROM sqlite_schema WHERE name='\(table)'"))
    let size = try #require(try database.integer("PRAGMA page_size"))
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.seek(toOffset: UInt64((page - 1) * size))
    try file.write(contentsOf: Data(repeating: 0xff, count: Int(size)))
  }

  @Test("a page that is damaged ends the node with a status of its own and one sentence, once somebody has read it")
  func damagedPage() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    try makeStore()
    try spoilPage(of: "documents")
    let node = try RunTests.Running(base + "/a", [])
    #expect(try seamesh("get", "p", "c", "x").error.contains("damaged"))
    _ = waitUntil { !node.process.isRunning }
    #expect(!node.process.isRunning && node.process.terminationStatus == ExitStatus.storeFailed.rawValue)
    let log = try String(contentsOfFile: node.log, encoding: .utf8).split(separator: "\n").map(String.init)
    #expect(log.count { $0.contains("opening it again once all of it has been looked at") } == 1)
    #expect(log.last?.contains("seamesh restore") == true)
    #expect(!log.joined().contains("new replica id"))
  }

  @Test("a file that is no database is refused with the same status, and nothing is made in its place")
  func noDatabase() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    try makeStore()
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.write(contentsOf: Data(repeating: 0x20, count: 16))
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let result = try seamesh("run", "--listen=127.0.0.1:0", "--no-discovery")
    // What SQLite says is in the log alone.
    let said = result.errors.filter { $0.hasPrefix("seamesh: ") }
    #expect(said.allSatisfy { !$0.contains("SQLite") })
    #expect(result.status == ExitStatus.storeFailed.rawValue && said.count == 1, "\(result.error)")
    #expect(result.error.contains("fetched anew"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
  }

  @Test("a store of a later format is refused in one sentence with a status of its own, and stays as it is")
  func laterFormat() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    try makeStore()
    do {
      let database = try Database(path: path, access: .readWrite)
      try database.execute("PRAGMA journal_mode=DELETE; PRAGMA user_version=99")
    }
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let result = try seamesh("run", "--listen=127.0.0.1:0", "--no-discovery")
    #expect(result.status == ExitStatus.otherVersion.rawValue && result.errors.count == 1, "\(result.error)")
    #expect(result.error.contains("newer seamesh") && !result.error.contains("damaged"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
  }

  @Test("a store that reads whole is opened again once, and no second time on the same day")
  func once() throws {
    var (looks, answer): (Int, NodeError?) = (0, nil)
    let failure = NodeError(.storeFailed, "the disk failed")
    func at(_ milliseconds: UInt64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }
    try withUnsafeMutablePointer(to: &looks) { looks in
      var reopening = StoreReopening(directory: "/d")
      nonisolated(unsafe) let count = looks
      reopening.verify = { _ in count.pointee += 1 }
      try reopening.look(after: failure, now: at(1_000))
      #expect(throws: StoreReopening.failure(failure, "/d")) { try reopening.look(after: failure, now: at(2_000)) }
      #expect(count.pointee == 1)
      try reopening.look(after: failure, now: at(1_000 + StoreReopening.onceMilliseconds))
      #expect(count.pointee == 2)
    }
    answer = NodeError(.storeFailed, "the store is damaged: page 7")
    var reopening = StoreReopening(directory: "/d")
    reopening.verify = { [answer] _ throws(NodeError) in if let answer { throw answer } }
    let shown = #expect(throws: Failure.self) { try reopening.look(after: failure, now: at(1)) }
    #expect(shown?.status == .storeFailed && shown?.message.hasPrefix("the store is damaged: page 7; ") == true)
  }
}
