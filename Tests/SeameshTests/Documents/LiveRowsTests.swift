import Replication
import Testing
import TestSupport

@testable import Seamesh

@Suite struct LiveRowsTests {
  @Test(
    "whoever applies the moves one by one has what the query shows after each", arguments: [1, 2, 3, 4] as [UInt64],
    [true, false])
  func moves(seed: UInt64, isSorted: Bool) throws {
    var random = SplitMix64(seed: seed)
    let query = try DocumentQuery(
      FindRequest(
        filter: body(["n": .map(body(["$lt": .int(7)]))]),
        sort: isSorted ? [.init(path: "n", ascending: false)] : []))
    var documents: [Int64: StoredDocument] = [:]
    func change() -> (Int64, StoredDocument?) {
      let id = Int64.random(in: 0..<20, using: &random)
      guard Int.random(in: 0..<4, using: &random) > 0 else { return (id, nil) }
      let number = Int64.random(in: 0..<10, using: &random)
      return (id, StoredDocument(id: .int(id), body: body(["n": .int(number)]), etag: "\(random.next() % 3)-\(number)"))
    }
    for _ in 0..<10 { if case (let id, let document?) = change() { documents[id] = document } }
    var rows = LiveRows(query, documents.values.compactMap { LiveRows.Row($0, query) })
    var mirror = rows.documents
    #expect(mirror == query.run(documents.values))
    for _ in 0..<300 {
      let (id, document) = change()
      // One version has one content.
      if let document, document.etag == documents[id]?.etag { continue }
      documents[id] = document
      switch rows.take(Value.int(id).canonicalBytes, document.flatMap { LiveRows.Row($0, query) }) {
      case .inserted(let document, let index): mirror.insert(document, at: index)
      case .deleted(let id, let index): #expect(mirror.remove(at: index).id == id)
      case .updated(let document, let index, let before):
        #expect(mirror.remove(at: before).id == document.id)
        mirror.insert(document, at: index)
      case nil: break
      }
      #expect(mirror == query.run(documents.values))
      #expect(rows.documents == mirror)
    }
  }

  @Test("a document that is read again as it was moves nothing")
  func unchanged() throws {
    let document = StoredDocument(id: .int(1), body: body(["n": .int(1)]), etag: "a")
    let row = try #require(LiveRows.Row(document, try DocumentQuery(FindRequest())))
    var rows = LiveRows(try DocumentQuery(FindRequest()), [row])
    #expect(rows.take(document.id.canonicalBytes, row) == nil)
    #expect(rows.take(Value.int(2).canonicalBytes, nil) == nil)
    #expect(rows.documents == [document])
  }

  @Test("the memory of a live result is that of its rows, however often they changed, came and went")
  func memory() throws {
    var limits = ReadLimits()
    limits.resultBytes = 10_000
    let query = try DocumentQuery(FindRequest())
    var rows = LiveRows(query, [])
    let id = Value.int(1).canonicalBytes
    for round in 0..<50 {
      let text = Text(String(repeating: "x", count: 4_000))
      let document = StoredDocument(id: .int(1), body: body(["t": .string(text)]), etag: "\(round)")
      _ = rows.take(id, LiveRows.Row(document, query))
      try rows.check(limits)
      if round % 3 == 0 { _ = rows.take(id, nil) }
    }
    for other in 2...3 as ClosedRange<Int64> {
      let text = Text(String(repeating: "x", count: 4_000))
      let document = StoredDocument(id: .int(other), body: body(["t": .string(text)]), etag: "e")
      _ = rows.take(document.id.canonicalBytes, LiveRows.Row(document, query))
    }
    #expect(throws: NodeError.self) { try rows.check(limits) }
  }

  @Test("what a result is sorted by counts in its memory, also where a projection leaves it out")
  func memoryOfKeys() throws {
    var limits = ReadLimits()
    limits.resultBytes = 100_000
    let sort = [FindRequest.SortField(path: "t", ascending: true)]
    let query = try DocumentQuery(FindRequest(sort: sort, projection: body(["n": .int(1)])))
    var collector = ResultCollector(query)
    var rows = LiveRows(query, [])
    #expect(throws: NodeError.self) {
      for number in 0..<50 as Range<Int64> {
        let text = Text(String(repeating: "x", count: 10_000))
        collector.offer(
          StoredDocument(id: .int(number), body: body(["n": .int(number), "t": .string(text)]), etag: "e"))
        try collector.check(limits)
      }
    }
    let key = Text(String(repeating: "x", count: 30_000))
    let document = StoredDocument(id: .int(1), body: body(["t": .string(key)]), etag: "e")
    _ = rows.take(document.id.canonicalBytes, LiveRows.Row(document, query))
    #expect(rows.heapBytes > 30_000 && rows.heapBytes < 40_000)
    _ = rows.take(document.id.canonicalBytes, nil)
    #expect(rows.heapBytes == 0)
  }

  @Test("a result with a limit is kept with a thousand documents beside it at most, in whatever order they come")
  func memoryOfWindow() throws {
    let sort = [FindRequest.SortField(path: "n", ascending: true)]
    let all = (0..<9_000 as Range<Int64>).map { StoredDocument(id: .int($0), body: body(["n": .int($0)]), etag: "e") }
    let one = all[0].heapBytes * 2
    for order in [
      all, all.reversed(),
      Array(all.enumerated().sorted { ($0.offset * 7_919 % 9_000, 0) < ($1.offset * 7_919 % 9_000, 0) }.map(\.element)),
    ] {
      var collector = ResultCollector(try DocumentQuery(FindRequest(sort: sort, limit: 3_000, skip: 1_000)))
      for document in order {
        collector.offer(document)
        #expect(collector.heapBytes <= 5_001 * one)
      }
      #expect(try collector.finish(ReadLimits()).map(\.document) == Array(all[1_000..<4_000]))
    }
  }

  @Test("what a sort holds while it reads is bounded, though the result itself is small")
  func memoryOfSort() throws {
    var limits = ReadLimits()
    limits.resultBytes = 100_000
    let sort = [FindRequest.SortField(path: "n", ascending: true)]
    var collector = ResultCollector(try DocumentQuery(FindRequest(sort: sort, limit: 100)))
    let text = Text(String(repeating: "x", count: 1_000))
    #expect(throws: NodeError.self) {
      for number in 0..<500 as Range<Int64> {
        collector.offer(
          StoredDocument(id: .int(number), body: body(["n": .int(number), "t": .string(text)]), etag: "e"))
        try collector.check(limits)
      }
    }
  }
}
