import Dispatch
import Engine
import Kernel
import Replication
import Storage
import TestSupport
import Testing

@testable import Seamesh

/// Questions to a real node whose pages and bounds are small.
@Suite(.serialized) struct ReadTests {
  let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Galapagos") }

  private func node(_ fleet: TestFleet) -> Node { fleet.nodes[0] }

  private func fleet(_ limits: (inout ReadLimits) -> Void) throws -> TestFleet {
    try TestFleet(1) { configuration in
      configuration.reads.pageDocuments = 3
      limits(&configuration.reads)
    }
  }

  private func fill(_ node: Node, _ ids: [Value], text: Text = "") throws {
    let requests = ids.enumerated().map { index, id in
      DocumentRequest(
        collection: "reports", id: id,
        action: .put(body: body(["n": .int(Int64(index % 4)), "text": .string(text)]), keepAbsent: true))
    }
    for result in try node.writeEach(partition, requests) { _ = try result.get() }
  }

  @Test("a reader is open before anybody asks, and the first question needs no other")
  func openAhead() throws {
    let fleet = try fleet { _ in }
    let node = node(fleet)
    try #require(waitUntil { node.documents.readers.openCount == 1 })
    try fill(node, [.int(1)])
    #expect(try node.find(partition, "reports", FindRequest(limit: 1)).count == 1)
    #expect(node.documents.readers.openCount == 1)
  }

  @Test("however many passes read, who asks for one document finds a reader")
  func keptReaders() throws {
    let fleet = try fleet { $0.pageMilliseconds = 200 }
    let node = node(fleet)
    try fill(node, [.int(1)])
    let (inside, go) = (TimedSemaphore(), TimedSemaphore())
    let passes = StoreReaders.limit - node.documents.limits.keptReaders
    let group = DispatchGroup()
    for _ in 0..<passes {
      DispatchQueue(label: "pass").async(group: group) {
        try? node.documents.readingPage { _ in
          inside.signal()
          _ = go.wait(milliseconds: 20_000)
        }
      }
    }
    defer {
      for _ in 0..<passes { go.signal() }
      group.wait()
    }
    for _ in 0..<passes { try #require(inside.wait(milliseconds: 10_000)) }
    let refused = #expect(throws: NodeError.self) { try node.documents.readingPage { _ in } }
    #expect(refused?.code == .busy)
    #expect(try node.read(partition, "reports", id: .int(1)) != nil)
  }

  @Test("a question whose answer is known reads no further: what is damaged behind it does not matter")
  func stopsEarly() throws {
    let fleet = try fleet { _ in }
    try fill(node(fleet), (0..<20).map { .int($0) })
    try node(fleet).damage(id: .int(19))
    let byID = [FindRequest.SortField(path: "_id", ascending: true)]
    func ids(_ request: FindRequest) throws -> [Value] {
      try node(fleet).find(partition, "reports", request).map(\.id)
    }
    #expect(try ids(FindRequest(limit: 1)) == [.int(0)])
    #expect(try ids(FindRequest(limit: 4, skip: 13)) == [.int(13), .int(14), .int(15), .int(16)])
    #expect(try ids(FindRequest(sort: byID, limit: 2, skip: 1)) == [.int(1), .int(2)])
    #expect(try ids(FindRequest(filter: parsedMap(#"{"n":3}"#), limit: 2)) == [.int(3), .int(7)])
    #expect(try ids(FindRequest(filter: parsedMap(#"{"_id":4}"#))) == [.int(4)])
    #expect(try ids(FindRequest(filter: parsedMap(#"{"$and":[{"_id":{"$in":[8,4.0,4,99]}}]}"#))) == [.int(4), .int(8)])
    let watch = try node(fleet).watch(partition, "reports", FindRequest(limit: 1))
    guard case .snapshot(let shown, _)? = try watch.next(timeoutMilliseconds: 0) else {
      Issue.record("there is no snapshot")
      return
    }
    #expect(shown.map(\.id) == [.int(0)])
    #expect(try node(fleet).mended() == 0)
    let whole = [FindRequest(), FindRequest(sort: [.init(path: "n", ascending: true)], limit: 1)]
    for (index, request) in whole.enumerated() {
      try node(fleet).damage(id: .int(19))
      _ = try node(fleet).find(partition, "reports", request)
      #expect(try node(fleet).mended() == index + 1)
    }
  }

  @Test("documents that are named are all found, however few of them a page holds, and those that are gone are not")
  func named() throws {
    let fleet = try fleet { $0.pageBytes = 1 }
    try fill(node(fleet), (0..<7).map { .int($0) }, text: "some text")
    _ = try node(fleet).write(partition, [DocumentRequest(collection: "reports", id: .int(2), action: .delete)])
    let request = FindRequest(filter: try parsedMap(#"{"_id":{"$in":[0,1,2,3,4,5,6,77]}}"#))
    #expect(try node(fleet).find(partition, "reports", request).map(\.id) == [0, 1, 3, 4, 5, 6].map { .int($0) })
    let watch = try node(fleet).watch(partition, "reports", request)
    guard case .snapshot(let shown, _)? = try watch.next(timeoutMilliseconds: 0) else {
      Issue.record("there is no snapshot")
      return
    }
    #expect(shown.count == 6)
  }

  @Test("pages, skip and limit give what the whole would give, in each order", arguments: [1, 3, 500])
  func pages(_ size: Int) throws {
    let fleet = try fleet { $0.pageDocuments = size }
    let kinds: [(UInt64) -> Value] = [
      { .int(Int64($0) - 2) }, { .string(Text("s\($0)")) }, { .uuid(UUIDValue(high: $0, low: 1)) },
      { .objectID(ObjectID(high: $0, low: 2)) },
    ]
    try fill(node(fleet), kinds.flatMap { kind in (0..<5).map { kind($0) } })
    var all: [StoredDocument] = []
    try node(fleet).export(partition, collection: "reports") { _, document in
      all.append(document)
      return true
    }
    #expect(all.count == 20)
    for sort in [[], [("_id", true)], [("_id", false)], [("n", true), ("_id", false)]] as [[(Text, Bool)]] {
      for (skip, limit) in [(0, nil), (0, 1), (4, 7), (11, nil), (19, 5), (20, 1)] as [(Int, Int?)] {
        for filter in ["{}", #"{"n":{"$gt":1}}"#] {
          let request = FindRequest(
            filter: try parsedMap(filter), sort: sort.map { .init(path: $0.0, ascending: $0.1) }, limit: limit,
            skip: skip)
          let found = try node(fleet).find(partition, "reports", request)
          #expect(try found.documents == DocumentQuery(request).run(all.shuffled()), "\(request)")
        }
      }
    }
  }

  @Test("a pass may take longer than a page may, and keeps no reader between its pages")
  func slowPass() throws {
    let fleet = try fleet { ($0.pageDocuments, $0.pageMilliseconds) = (500, 1_000) }
    try fill(node(fleet), (0..<1_000).map { .int($0) })
    let start = ContinuousClock.now
    var pages = 0
    var pass = DocumentPass(node(fleet).documents, partition, "reports")
    try pass.eachPage { _ throws(NodeError) in
      pages += 1
      #expect(waitUntil { ContinuousClock.now - start > .milliseconds(1_100 * pages) })
      let others = DispatchGroup()
      DispatchQueue.global().async(group: others) { [readers = node(fleet).documents.readers] in
        try? readers.lendingAll {}
      }
      #expect(others.wait(timeout: .now() + .seconds(5)) == .success, "the pass keeps a reader")
      return true
    }
    #expect(pages == 2)
  }

  @Test(
    "an answer beyond its bounds is refused with the bound, not cut: in documents where no limit was asked, in bytes ever"
  )
  func bounds() throws {
    let fleet = try fleet { ($0.resultDocuments, $0.resultBytes) = (6, 20_000) }
    let node = node(fleet)
    func refusal(_ request: FindRequest) -> NodeError? {
      do throws(NodeError) {
        let found = try node.find(partition, "reports", request)
        Issue.record("\(found.count) documents were found")
        return nil
      } catch {
        return error
      }
    }
    try fill(node, (0..<7).map { .int($0) })
    let sorted = [FindRequest.SortField(path: "n", ascending: true)]
    for sort in [[], sorted] {
      let error = refusal(FindRequest(sort: sort))
      #expect(error?.code == .tooLarge && error?.message.contains(" 6 documents") == true)
      #expect(error?.limit == NodeError.Limit(6, "documents"))
      #expect(try node.find(partition, "reports", FindRequest(sort: sort, limit: 7)).count == 7)
      #expect(try node.find(partition, "reports", FindRequest(sort: sort, skip: 1)).count == 6)
    }
    #expect(try node.find(partition, "reports", FindRequest(filter: parsedMap(#"{"n":1}"#))).count == 2)

    let long = Text(String(repeating: "x", count: 3_000))
    try fill(node, (0..<40).map { .int($0) }, text: long)
    for request in [FindRequest(limit: 8), FindRequest(sort: sorted, limit: 8)] {
      let error = refusal(request)
      #expect(error?.code == .tooLarge && error?.message.contains("20000 bytes") == true)
      #expect(error?.limit == NodeError.Limit(20_000, "bytes"))
    }
    // What a sort drops does not count, and neither do fields that are not shown.
    #expect(try node.find(partition, "reports", FindRequest(sort: sorted, limit: 5)).count == 5)
    #expect(try node.find(partition, "reports", FindRequest(limit: 30, projection: body(["n": .int(1)]))).count == 30)
  }

  @Test("large results take turns: one that somebody still holds keeps others waiting, and small ones pass")
  func turns() throws {
    let fleet = try fleet { ($0.largeResults, $0.turnMilliseconds) = (1, 50) }
    let node = node(fleet)
    try fill(node, (0..<100).map { .int($0) }, text: Text(String(repeating: "x", count: 3_000)))
    func code(_ request: FindRequest) -> NodeError.Code? {
      do throws(NodeError) { _ = try node.find(partition, "reports", request) } catch { return error.code }
      return nil
    }
    var held: FoundDocuments? = try node.find(partition, "reports", FindRequest())
    #expect(held?.count == 100)
    #expect(code(FindRequest()) == .busy)
    #expect(code(FindRequest(limit: 10)) == nil)
    held = nil
    #expect(code(FindRequest()) == nil && code(FindRequest()) == nil)
  }

  @Test("a live result that finds no turn keeps what it shows, and follows at a later look", arguments: [true, false])
  func liveWithoutTurn(isWindow: Bool) throws {
    let fleet = try fleet { ($0.largeResults, $0.turnMilliseconds, $0.missedDocuments) = (1, 20, 0) }
    let node = node(fleet)
    try fill(node, (0..<120).map { .int($0) }, text: Text(String(repeating: "x", count: 3_000)))
    let mirror = try LiveMirror(try node.watch(partition, "reports", FindRequest(limit: isWindow ? 110 : nil)))
    var held: FoundDocuments? = try node.find(partition, "reports", FindRequest())
    // More commits than the feed remembers, so that all of it is to be read anew.
    for number in 0..<(isWindow ? 1 : CommitFeed.recordLimit + 1) {
      try fill(node, [.int(1)], text: Text("\(number)"))
    }
    #expect(try !mirror.take() && mirror.events.isEmpty && held?.count == 120)
    held = nil
    try mirror.drain()
    #expect(mirror.events == ["~int(1)"])
  }

  @Test(
    "a live result for whose few changed documents there is no reader keeps what it shows, and follows at a later look")
  func liveWithoutReader() throws {
    let fleet = try fleet { $0.pageMilliseconds = 200 }
    let node = node(fleet)
    try fill(node, [.int(1)])
    let mirror = try LiveMirror(try node.watch(partition, "reports", FindRequest()))
    try fill(node, [.int(2)])
    try node.documents.takingPageTurns(StoreReaders.limit - node.documents.limits.keptReaders) {
      let hasTaken = try mirror.take()
      #expect(!hasTaken && mirror.events.isEmpty)
    }
    try mirror.drain()
    #expect(mirror.events == ["+int(2)"])
  }

  @Test(
    "a live result that fell behind and for which there is no reader keeps what it shows, and follows at a later look")
  func behindWithoutReader() throws {
    let fleet = try fleet { _ in }
    let node = node(fleet)
    let elsewhere = try PartitionName("agency=Elsewhere")
    try fill(node, [.int(1)])
    let mirror = try LiveMirror(try node.watch(partition, "reports", FindRequest()))
    try fill(node, [.int(2)])
    for number in 0...CommitFeed.recordLimit {
      try node.put(elsewhere, "noise", "x", body(["n": .int(Int64(number))]))
    }
    try node.documents.readers.lendingAll {
      let hasTaken = try mirror.take()
      #expect(!hasTaken && mirror.events.isEmpty)
    }
    try mirror.drain()
    #expect(mirror.events == ["+int(2)"])
  }

  @Test("live results share one bound: what one holds is lacking to others, until it ends")
  func sharedLiveMemory() throws {
    let fleet = try fleet { $0.allLiveBytes = 200_000 }
    let node = node(fleet)
    try fill(node, (0..<40).map { .int($0) }, text: Text(String(repeating: "x", count: 3_000)))
    func code(_ watch: any WatchSubscription) -> NodeError.Code? {
      do throws(NodeError) { _ = try watch.next(timeoutMilliseconds: 0) } catch { return error.code }
      return nil
    }
    var first: (any WatchSubscription)? = try node.watch(partition, "reports", FindRequest())
    #expect(try first?.next(timeoutMilliseconds: 0) != nil)
    let other = try node.watch(partition, "reports", FindRequest(limit: 39))
    #expect(code(other) == .busy)
    first = nil
    #expect(code(other) == nil)
  }

  @Test("a live result beyond its bounds is refused, at its beginning and when it grows; a part of it is not")
  func watchBounds() throws {
    let fleet = try fleet { $0.resultDocuments = 4 }
    let node = node(fleet)
    try fill(node, (0..<4).map { .int($0) })
    let watch = try node.watch(partition, "reports", FindRequest())
    guard case .snapshot(let shown, _)? = try watch.next(timeoutMilliseconds: 0) else {
      Issue.record("there is no snapshot")
      return
    }
    #expect(shown.count == 4)
    try fill(node, (0..<5).map { .int($0) })
    var refused: NodeError?
    try eventually {
      do throws(NodeError) { _ = try watch.next(timeoutMilliseconds: 100) } catch { refused = error }
      return refused != nil
    }
    #expect(refused?.code == .tooLarge)
    let late = try node.watch(partition, "reports", FindRequest())
    #expect(throws: NodeError.self) { try late.next(timeoutMilliseconds: 0) }
    let part = try node.watch(partition, "reports", FindRequest(limit: 2))
    #expect(try part.next(timeoutMilliseconds: 0) != nil)
  }

  @Test("a live result that reads small pages follows documents that come, change and go")
  func watchPages() throws {
    let fleet = try fleet { $0.pageDocuments = 1 }
    let node = node(fleet)
    try fill(node, (0..<5).map { .int($0) })
    for limit in [nil, 3] {
      let watch = try node.watch(partition, "reports", FindRequest(filter: parsedMap(#"{"n":1}"#), limit: limit))
      guard case .snapshot(var mirror, _)? = try watch.next(timeoutMilliseconds: 0) else { continue }
      for (id, n) in [(7, 1), (1, 2), (8, 1), (7, 3), (1, 1), (8, 2)] as [(Int64, Int64)] {
        let request = DocumentRequest(
          collection: "reports", id: .int(id), action: .put(body: body(["n": .int(n)]), keepAbsent: true))
        _ = try node.write(partition, [request])
        let wanted = try node.find(partition, "reports", FindRequest(filter: parsedMap(#"{"n":1}"#), limit: limit))
        try eventually(within: 5) {
          switch try watch.next(timeoutMilliseconds: 100) {
          case .insert(let document, let position, _)?: mirror.insert(document, at: position)
          case .update(let document, let position, let before, _)?:
            mirror.remove(at: before)
            mirror.insert(document, at: position)
          case .delete(_, let position, _)?: mirror.remove(at: position)
          default: break
          }
          return mirror == wanted.documents
        }
      }
    }
  }
}

extension StoreReaders {
  /// As while so many other questions are being answered that the next one has to wait.
  func lendingAll<Answer>(_ count: Int = StoreReaders.limit, _ body: () throws -> Answer) throws -> Answer {
    guard count > 0 else { return try body() }
    return try read { _ in try lendingAll(count - 1, body) }
  }
}

extension DocumentReader {
  /// As while so many pages are read.
  fileprivate func takingPageTurns<Answer>(_ count: Int, _ body: () throws -> Answer) throws -> Answer {
    guard count > 0 else { return try body() }
    return try inPageTurn { try takingPageTurns(count - 1, body) }
  }
}

extension Node {
  /// Makes what the store holds of a document unreadable, and with `log` all from which it could be made anew.
  func damage(id: Value, log: Bool = false) throws {
    let key = id.canonicalBytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    try execute("UPDATE documents SET state=x'ff' WHERE key=x'\(key)'")
    if log { try execute("UPDATE runs SET body=x'ff'") }
  }

  /// Documents that somebody met damaged and the log gave again.
  func mended() throws -> Int { try engine.ask { $0.state.quarantine.mendedCount } }
}
