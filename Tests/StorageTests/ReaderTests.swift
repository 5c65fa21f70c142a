import Dispatch
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
