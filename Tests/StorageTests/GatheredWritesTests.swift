import CSQLite
import Foundation
import Replication
import Synchronization
import TestSupport
import Testing

@testable import Storage

/// What SQLite writes to the log goes to the system together, and nobody can tell.
@Suite struct GatheredWritesTests {
  private func put(_ count: Int, from first: UInt64, _ transaction: borrowing Transaction) throws {
    let place = try Place(transaction)
    for number in first..<first + UInt64(count) {
      try transaction.appendRun(
        place.chain, first: number, last: number, context: vector([:]),
        body: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 3_000)[...])
    }
  }

  #if os(Linux)
    /// Calls of this thread that write.
    private func writes() throws -> Int {
      let text = try String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8)
      let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("syscw: ") })
      return try #require(Int(line.dropFirst(7)))
    }

    @Test("a commit of hundreds of pages is written in few calls")
    func fewCalls() throws {
      let directory = try TemporaryDirectory()
      defer { withExtendedLifetime(directory) {} }
      let store = try directory.open { $0.logByteLimits = [.live: .max, .catchUp: .max] }
      let before = try writes()
      try store.write(.full) { try put(1_000, from: 1, $0) }
      let pages = Int(store.gauge.pages)
      #expect(pages > 180)
      #expect(try writes() - before < pages / 8)
    }
  #endif

  @Test("small commits seldom lengthen the log; what they write is read by who finds the files after a crash")
  func roomAhead() throws {
    let directory = try TemporaryDirectory()
    let store = try directory.open { $0.logByteLimits = [.live: .max, .catchUp: .max] }
    var sizes: [Int64] = []
    for number in 1...40 as ClosedRange<UInt64> {
      try store.write(.full) { try put(1, from: number, $0) }
      sizes.append(store.writeAheadLogBytes)
    }
    let steps = zip(sizes, sizes.dropFirst()).filter { $0 != $1 }
    #expect(steps.count <= 2)
    // As a stop without warning leaves them: the log ends in zeros.
    let left = try TemporaryDirectory()
    for name in ["seamesh.db", "seamesh.db-wal"] {
      try FileManager.default.copyItem(atPath: directory.path + "/" + name, toPath: left.path + "/" + name)
    }
    let found = try left.open()
    let chain = try #require(try found.chains().first).number
    #expect(try found.runs(of: chain, after: 0, byteLimit: .max).map(\.last) == Array(1...40))
  }

  @Test("a large commit takes the room that it needs, and no more")
  func noRoomBehindLarge() throws {
    let directory = try TemporaryDirectory()
    let store = try directory.open { $0.logByteLimits = [.live: .max, .catchUp: .max] }
    try store.write(.full) { try put(1_000, from: 1, $0) }
    #expect(store.writeAheadLogBytes == 32 + Int64(store.gauge.pages) * (24 + 4_096))
  }

  @Test("a disk without room for zeros takes the commit")
  func noRoomAhead() {
    var calls = sqlite3_io_methods()
    calls.xFileSize = { _, size in
      size?.pointee = 100
      return SQLITE_OK
    }
    calls.xWrite = { _, _, _, offset in offset < 100 ? SQLITE_OK : SQLITE_FULL }
    var file = sqlite3_file()
    withUnsafePointer(to: &calls) { calls in
      let writes = GatheredWrites(calls)
      #expect(writes.write(&file, [UInt8](repeating: 7, count: 100), 100, at: 0) == SQLITE_OK)
      #expect(writes.flushForSync(&file) == SQLITE_OK)
    }
  }

  @Test("what a transaction has spilled is read back in it; given up, it is gone, and what comes next is whole")
  func spilled() throws {
    struct GivenUp: Error {}
    let directory = try TemporaryDirectory()
    let store = try directory.open { $0.cacheBytes = 64 * 1024 }
    try store.write(.full) { try put(10, from: 1, $0) }
    #expect(throws: GivenUp.self) {
      try store.write(.full) { transaction in
        try put(500, from: 11, transaction)
        let chain = try Place(transaction).chain
        let runs = try transaction.runs(of: chain, after: 0, byteLimit: .max)
        #expect(runs.map(\.last) == Array(1...510))
        for run in runs { #expect(Set(run.body) == [UInt8(truncatingIfNeeded: run.last)]) }
        throw GivenUp()
      }
    }
    try store.write(.full) { try put(300, from: 11, $0) }
    // As another connection finds it.
    let other = try Database(path: directory.path + "/seamesh.db", access: .readOnly)
    #expect(try other.string("PRAGMA integrity_check") == "ok")
    #expect(try other.integer("SELECT count(*) FROM runs") == 310)
  }

  @Test("others read what is committed at once, synced or not", arguments: [Durability.full, .deferred])
  func readAtOnce(durability: Durability) throws {
    let directory = try TemporaryDirectory()
    let store = try directory.open()
    for round in 0..<4 {
      try store.write(durability) { try put(50, from: UInt64(round * 50) + 1, $0) }
      let other = try Database(path: directory.path + "/seamesh.db", access: .readOnly)
      #expect(try other.integer("SELECT count(*) FROM runs") == Int64(round + 1) * 50)
      #expect(try other.string("PRAGMA integrity_check") == "ok")
    }
  }

  @Test("a write that fails is told by what it goes with, and nothing of it stays behind")
  func failure() {
    var calls = sqlite3_io_methods()
    calls.xWrite = { _, _, count, offset in
      GatheredWritesTests.written.withLock { $0.append((Int(count), offset)) }
      return offset == 0 ? SQLITE_FULL : SQLITE_OK
    }
    var file = sqlite3_file()
    let bytes = [UInt8](repeating: 7, count: 100)
    withUnsafePointer(to: &calls) { calls in
      let writes = GatheredWrites(calls)
      #expect(writes.write(&file, bytes, 100, at: 0) == SQLITE_OK)
      #expect(writes.write(&file, bytes, 100, at: 100) == SQLITE_OK)
      #expect(writes.flush(&file) == SQLITE_FULL)
      #expect(writes.flush(&file) == SQLITE_OK)
      // Elsewhere: what was gathered goes first.
      #expect(writes.write(&file, bytes, 10, at: 500) == SQLITE_OK)
      #expect(writes.write(&file, bytes, 20, at: 400) == SQLITE_OK)
      #expect(writes.flush(&file) == SQLITE_OK)
      // The one before fails, so that this one was not written either.
      #expect(writes.write(&file, bytes, 10, at: 0) == SQLITE_OK)
      #expect(writes.write(&file, bytes, 10, at: 900) == SQLITE_FULL)
      #expect(writes.flush(&file) == SQLITE_OK)
    }
    let found = GatheredWritesTests.written.withLock { $0 }
    #expect(found.map(\.0) == [200, 10, 20, 10])
    #expect(found.map(\.1) == [0, 500, 400, 0])
  }

  private static let written = Mutex<[(Int, Int64)]>([])
}
