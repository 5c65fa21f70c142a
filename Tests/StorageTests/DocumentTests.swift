import Replication
import Testing
import TestSupport

@testable import Storage

@Suite struct DocumentTests {
  private let directory: TemporaryDirectory
  private let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try directory.open()
  }

  @Test("a document is put in once, replaced, deleted, made again and counted on the way")
  func lifeOfADocument() throws {
    let key = Value.string("boat").canonicalBytes
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      #expect(try transaction.insertNew(place.partition, place.collection, key: key, state: [1]))
      #expect(try !transaction.insertNew(place.partition, place.collection, key: key, state: [2]))
      #expect(try transaction.document(place.partition, place.collection, key: key)?.state == [1])
    }
    for (isAlive, count) in [(true, 1), (false, 0), (true, 1)] as [(Bool, Int64)] {
      try store.write(.full) { transaction in
        let place = try Place(transaction)
        let row = try #require(try transaction.document(place.partition, place.collection, key: key))
        try transaction.replace(row, in: place.partition, place.collection, isAlive: isAlive, state: [])
      }
      #expect(store.counters.documents == count)
    }
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      let row = try #require(try transaction.document(place.partition, place.collection, key: key))
      #expect(row.state.isEmpty && row.isAlive)
      try transaction.remove(row, in: place.partition)
    }
    #expect(store.counters.documents == 0)
  }

  @Test("ids with zero bytes, ids of 1 kB and ids that look alike are told apart (D5, D11)")
  func awkwardIDs() throws {
    let long = Text(String(repeating: "\u{1F6A2}", count: 254))
    let ids: [Value] = [
      .string(""), .string("\u{0}"), .string("a\u{0}b"), .string("a"), .string("a\u{0}"), .string("caf\u{e9}"),
      .string("cafe\u{301}"), .string(long), .string(Text(long.string + "x")), .int(0), .int(-1), .double(0),
      .bytes([UInt8](repeating: 0, count: 500)), .bytes([]), .string("../../etc/passwd"),
    ]
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      for (index, id) in ids.enumerated() {
        #expect(
          try transaction.insertNew(place.partition, place.collection, key: id.canonicalBytes, state: [UInt8(index)]))
      }
    }
    let partition = try #require(try store.partitions().first).number
    let collection = try #require(try store.collectionNumber("reports"))
    for (index, id) in ids.enumerated() {
      #expect(try store.document(partition, collection, key: id.canonicalBytes)?.state == [UInt8(index)])
    }
    let keys = try store.documents(partition, collection, limit: 100).map(\.key)
    #expect(keys == ids.map(\.canonicalBytes).sorted { $0.lexicographicallyPrecedes($1) })
  }

  @Test("living documents are read page by page in key order, each once")
  func pages() throws {
    var random = SplitMix64(seed: 7)
    let ids = (0..<500).map { _ in Int64(bitPattern: random.next()) }
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      for (index, id) in ids.enumerated() {
        _ = try transaction.insertNew(
          place.partition, place.collection, key: Value.int(id).canonicalBytes, isAlive: index % 5 != 0,
          state: [UInt8](repeating: 1, count: 100))
      }
    }
    let partition = try #require(try store.partitions().first).number
    let collection = try #require(try store.collectionNumber("reports"))
    var read: [[UInt8]] = []
    while true {
      let page = try store.documents(partition, collection, after: read.last, limit: 30, byteLimit: 1_250)
      guard !page.isEmpty else { break }
      #expect(page.count <= 12)
      read += page.map(\.key)
    }
    let alive = ids.enumerated().filter { $0.offset % 5 != 0 }.map(\.element).sorted()
    #expect(read == alive.map { Value.int($0).canonicalBytes })
    #expect(try store.documentCount(partition, collection) == 400)
  }

  @Test("collections are listed in byte order of their names, and only where they have documents")
  func collections() throws {
    let names: [Text] = ["z", "caf\u{e9}", "cafe\u{301}", "a\u{0}b", "a"]
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      for name in names {
        let collection = try transaction.number(ofCollection: name)
        _ = try transaction.insertNew(place.partition, collection, key: [6, 0], state: [])
      }
    }
    let partition = try #require(try store.partitions().first).number
    #expect(try store.collections(of: partition).map(\.name) == names.sorted())
  }
}
