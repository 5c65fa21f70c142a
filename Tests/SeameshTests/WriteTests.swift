import Dispatch
import Identity
import Replication
import Synchronization
import Testing

@testable import Engine
@testable import Seamesh

/// What requests make of documents on a real node, and what refused ones leave.
@Suite(.serialized) struct WriteTests {
  private let partition: PartitionName
  private let fleet: TestFleet

  init() throws {
    partition = try PartitionName("room=1")
    fleet = try TestFleet(1)
  }

  private var node: Node { fleet.nodes[0] }

  @discardableResult
  private func write(_ id: Text, _ action: DocumentRequest.Action, ifMatch: String? = nil) throws -> WriteReceipt {
    try node.write(
      partition, [DocumentRequest(collection: "c", id: .string(id), action: action, ifMatch: ifMatch)])
  }

  private func shown(_ id: Text) throws -> ValueMap? { try node.read(partition, "c", id: .string(id))?.body }

  private func code(_ id: Text, _ action: DocumentRequest.Action, ifMatch: String? = nil) -> NodeError.Code? {
    do {
      try write(id, action, ifMatch: ifMatch)
      return nil
    } catch {
      return (error as? NodeError)?.code
    }
  }

  @Test("an insert that is asked for again changes nothing, and brings nothing back that was deleted")
  func insertOnce() throws {
    let insert = DocumentRequest.Action.insertOnce(body: body(["n": .int(1)]))
    let first = try write("once", insert)
    try write("once", .put(body: body(["n": .int(2)])))
    let second = try write("once", insert)
    #expect(first.created == [true] && second.created == [false] && second.dot == nil)
    #expect(try shown("once")?["n"] == .int(2))
    try write("once", .delete)
    #expect(code("once", insert) == .preconditionFailed)
    #expect(try shown("once") == nil)
  }

  @Test("a key makes one document: it is refused with another body, however the document was edited or deleted since")
  func keyedInserts() throws {
    let first = body(["n": .int(1), "m": .int(2)])
    func insert(_ body: ValueMap, _ key: Text = "k", _ collection: Text = "c") throws -> ObjectID {
      try node.insert(body, under: key, partition, collection).id
    }
    func code(_ work: () throws -> Void) -> NodeError.Code? {
      do { try work() } catch { return (error as? NodeError)?.code }
      return nil
    }
    let id = try insert(first)
    func change(_ action: DocumentRequest.Action) throws {
      _ = try node.write(partition, [DocumentRequest(collection: "c", id: .objectID(id), action: action)])
    }
    let second = body(["n": .int(2)])
    #expect(code { _ = try insert(second) } == .unprocessable)
    try change(.put(body: second))
    let again = try node.insert(first, under: "k", partition, "c")
    #expect(again.id == id && again.receipt.created == [false] && again.receipt.dot == nil)
    #expect(code { _ = try insert(second) } == .unprocessable)
    #expect(try node.read(partition, "c", id: .objectID(id))?.body == second)
    #expect(try Set([id, insert(second, "l"), insert(second, "k", "d")]).count == 3)
    try change(.delete)
    #expect(code { _ = try insert(first) } == .preconditionFailed)
    #expect(code { _ = try insert(second) } == .unprocessable)
  }

  @Test("of two bodies that come under one key at the same time one is inserted, and the other refused")
  func keyedAtOnce() throws {
    let (node, partition) = (node, partition)
    for round in 0..<20 {
      let made = Mutex(0)
      DispatchQueue.concurrentPerform(iterations: 4) { number in
        let content = body(["n": .int(Int64(number))])
        guard (try? node.insert(content, under: Text("k\(round)"), partition, "once")) != nil else { return }
        made.withLock { $0 += 1 }
      }
      #expect(made.withLock { $0 } == 1)
    }
  }

  @Test("nothing is written into a partition whose name says nothing behind =, by whatever way")
  func withoutValue() throws {
    let partition = try PartitionName("agency=")
    let request = DocumentRequest(collection: "c", id: .string("a"), action: .insert(body: body(["n": .int(1)])))
    for write in [
      { _ = try node.write(partition, [request]) }, { _ = try node.writeEach(partition, [request])[0].get() },
    ] {
      let refused = #expect(throws: NodeError.self) { try write() }
      #expect(refused?.code == .notPermitted && refused?.message.hasPrefix("agency= says nothing behind =") == true)
    }
    #expect(try node.partitions(withDigests: false).isEmpty)
  }

  @Test("a document with more values than one change holds is refused with that limit, and made in steps")
  func operationLimit() throws {
    let numbers = Array(0...Run.operationLimit)
    func map(_ numbers: some Sequence<Int>) -> ValueMap {
      numbers.reduce(into: ValueMap()) { $0[Text("f\($1)")] = .int(Int64($1)) }
    }
    let refused = #expect(throws: NodeError.self) { try write("large", .put(body: map(numbers))) }
    #expect(refused?.code == .tooLarge && refused?.limit == NodeError.Limit(Run.operationLimit, "operations"))
    #expect(try shown("large") == nil)
    try write("large", .put(body: map(numbers.prefix(6_000))))
    try write("large", .mergePatch(map(numbers.dropFirst(6_000))))
    #expect(try shown("large")?.count == numbers.count)
  }

  @Test("a document that is larger than one may write can be made smaller, and not otherwise changed")
  func oversized() throws {
    func document(_ count: Int) -> ValueMap { body(["a": .bytes([UInt8](repeating: 7, count: count))]) }
    let present = PresentDocument(state: nil, body: document(2_000_000), encoded: [], hash: SHA256.hash)
    func put(_ count: Int) throws {
      let request = DocumentRequest(collection: "c", id: .string("x"), action: .put(body: document(count)))
      _ = try request.outcome(on: present)
    }
    for count in [1_500_000, 10] { try put(count) }
    for count in [2_000_000, 2_000_001] { #expect(throws: NodeError.self) { try put(count) } }
  }

  @Test("a document is written only over the version that the writer names")
  func ifMatch() throws {
    let put = DocumentRequest.Action.put(body: body(["n": .int(1)]), keepAbsent: true)
    #expect(code("a", put, ifMatch: "0123") == .preconditionFailed)
    #expect(code("a", put, ifMatch: "") == .preconditionFailed)
    #expect(try shown("a") == nil)
    let first = try #require(try write("a", put).etags[0])
    let second = try #require(
      try write("a", .put(body: body(["n": .int(2)]), keepAbsent: true), ifMatch: first).etags[0])
    #expect(first != second)
    #expect(code("a", .delete, ifMatch: first) == .preconditionFailed)
    #expect(try shown("a") == body(["n": .int(2)]))
    #expect(try node.read(partition, "c", id: .string("a"))?.etag == second)
    try write("a", .delete, ifMatch: second)
    // It has gone: no version of it is there to be written over.
    #expect(code("a", put, ifMatch: second) == .preconditionFailed)
    #expect(try shown("a") == nil)
  }

  @Test("each kind of request does what it says to what is there")
  func actions() throws {
    #expect(try write("a", .insert(body: body(["n": .int(1), "m": .int(1)]))).created == [true])
    #expect(code("a", .insert(body: ValueMap())) == .preconditionFailed)
    try write("a", .put(body: body(["n": .int(2)]), keepAbsent: true))
    #expect(try shown("a") == body(["n": .int(2), "m": .int(1)]))
    try write("a", .put(body: body(["n": .int(3)])))
    #expect(try shown("a") == body(["n": .int(3)]))
    try write("a", .mergePatch(body(["n": .null, "p": .int(4)])))
    #expect(try shown("a") == body(["p": .int(4)]))
    try write("a", .update(body(["$set": .map(body(["q": .int(5)]))])))
    #expect(try shown("a") == body(["p": .int(4), "q": .int(5)]))
    #expect(try write("a", .delete).etags == [nil])
    #expect(try shown("a") == nil)
    #expect(code("a", .delete) == .notFound)
    #expect(code("b", .update(body(["$set": .map(body(["q": .int(5)]))]))) == .notFound)
    #expect(try write("a", .insert(body: body(["n": .int(9)]))).created == [true])
  }

  @Test("a refused first write leaves no subscription, partition or replica id")
  func refused() throws {
    #expect(code("a", .delete) == .notFound)
    #expect(code("a", .put(body: body(["_id": .int(1)]), keepAbsent: true), ifMatch: "x") == .preconditionFailed)
    let large = DocumentRequest.Action.put(
      body: body(["n": .bytes([UInt8](repeating: 1, count: 17 * 1_024 * 1_024))]), keepAbsent: true)
    #expect(code("a", large) != nil)
    #expect(try node.subscriptions().isEmpty)
    #expect(try node.partitions(withDigests: true).isEmpty)
    #expect(try node.status().replica == nil)
    try write("a", .insert(body: ValueMap()))
    #expect(try node.subscriptions() == ["room=1"])
    #expect(try node.status().replica != nil)
  }

  @Test("of many requests each has its own answer, in order")
  func each() throws {
    let requests = (0..<10).map {
      DocumentRequest(
        collection: "c", id: .int(Int64($0 / 2)), action: .insert(body: body(["n": .int(Int64($0))])))
    }
    let results = try node.writeEach(partition, requests)
    #expect(results.map { (try? $0.get()) != nil } == (0..<10).map { $0 % 2 == 0 })
    #expect(try node.status().documents == 5)
    let many = Array(repeating: requests[0], count: BulkLimit.requests + 1)
    #expect(throws: NodeError.self) { try node.writeEach(partition, many) }
    #expect(throws: NodeError.self) { try node.writeEach(many.map { (partition, $0) }) }
  }

  @Test("a partition whose name would be a prefix takes no documents, and what is no name is not subscribed to")
  func names() throws {
    let prefix = try PartitionName("room=*")
    let request = DocumentRequest(collection: "c", id: .int(1), action: .insert(body: ValueMap()))
    #expect(throws: NodeError.self) { try node.write(prefix, [request]) }
    #expect(throws: NodeError.self) { try node.subscribe("") }
    #expect(throws: NodeError.self) { try node.unsubscribe("room=9") }
    #expect(try node.subscriptions().isEmpty)
  }

  @Test("an export gives every living document once, of all collections or of one, until it is told to stop")
  func export() throws {
    for collection in ["c", "d"] as [Text] {
      let requests = (0..<600).map {
        DocumentRequest(collection: collection, id: .int(Int64($0)), action: .insert(body: body(["n": .int(1)])))
      }
      for result in try node.writeEach(partition, requests) { _ = try result.get() }
    }
    try write("gone", .insert(body: ValueMap()))
    try write("gone", .delete)
    func exported(_ collection: Text?, atMost limit: Int = .max) throws -> [String] {
      var found: [String] = []
      try node.export(partition, collection: collection) { name, document in
        found.append("\(name.string) \(document.id)")
        return found.count < limit
      }
      return found
    }
    let all = try exported(nil)
    #expect(all.count == 1_200 && Set(all).count == 1_200)
    #expect(try exported("d").count == 600)
    #expect(try exported("none").isEmpty)
    #expect(try exported(nil, atMost: 700).count == 700)
  }
}
