import Replication
import Testing

@testable import Engine
@testable import Seamesh

/// Live results of a real node.
@Suite(.serialized) struct WatchTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Galapagos") }

  /// Applies events as an app does, and holds what it then shows.
  private final class Mirror {
    private let watch: any WatchSubscription
    private(set) var shown: [StoredDocument] = []
    private(set) var eventCount = 0
    var ids: [Value] { shown.map(\.id) }

    init(_ watch: any WatchSubscription) throws {
      self.watch = watch
      guard case .snapshot(let documents, _)? = try watch.next(timeoutMilliseconds: 1_000) else {
        Issue.record("there is no snapshot")
        return
      }
      shown = documents
    }

    deinit { watch.cancel() }

    /// False where nothing waits.
    func take() throws -> Bool {
      guard let event = try watch.next(timeoutMilliseconds: 0) else { return false }
      eventCount += 1
      switch event {
      case .snapshot(let documents, _): shown = documents
      case .insert(let document, let position, _): shown.insert(document, at: position)
      case .delete(let id, let position, _): #expect(shown.remove(at: position).id == id)
      case .update(let document, let position, let before, _):
        #expect(shown.remove(at: before).id == document.id)
        shown.insert(document, at: position)
      }
      return true
    }

    func drain() throws { while try take() {} }
  }

  /// More commits than the feed remembers.
  private func overflow(_ node: Node) {
    for _ in 0...CommitFeed.recordLimit { node.feed.committed(CommitRecord()) }
  }

  @Test("a result follows inserts, changes and deletes", arguments: [nil, 2])
  func follows(limit: Int?) throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let request = FindRequest(sort: [.init(path: "n", ascending: true)], limit: limit)
    let mirror = try Mirror(try node.watch(partition, "reports", request))
    for (id, n) in [("a", 3), ("b", 1), ("c", 2), ("a", 0), ("b", 9)] as [(Text, Int64)] {
      try node.put(partition, "reports", id, body(["n": .int(n)]))
      try mirror.drain()
      #expect(try mirror.shown == node.find(partition, "reports", request))
    }
    let gone = DocumentRequest(collection: "reports", id: .string("a"), action: .delete)
    _ = try node.write(partition, [gone])
    try mirror.drain()
    #expect(try mirror.shown == node.find(partition, "reports", request))
  }

  @Test("one that falls behind the feed shows everything again: nothing is lost", arguments: [nil, 3])
  func lapse(limit: Int?) throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    for id in ["a", "b", "c"] as [Text] { try node.put(partition, "reports", id, body(["n": .int(1)])) }
    let request = FindRequest(limit: limit)
    let mirror = try Mirror(try node.watch(partition, "reports", request))
    #expect(mirror.ids == [.string("a"), .string("b"), .string("c")])
    try node.put(partition, "reports", "b", body(["n": .int(2)]))
    _ = try node.write(
      partition, [DocumentRequest(collection: "reports", id: .string("a"), action: .delete)])
    try node.put(partition, "reports", "d", body(["n": .int(1)]))
    overflow(node)
    try mirror.drain()
    #expect(try mirror.shown == node.find(partition, "reports", request))
    #expect(mirror.ids == [.string("b"), .string("c"), .string("d")])
    let seen = mirror.eventCount
    overflow(node)
    try mirror.drain()
    // What is as it was is not shown a second time.
    #expect(mirror.eventCount == seen)
  }

  @Test("changes in other collections and partitions move nothing")
  func elsewhere() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let mirror = try Mirror(try node.watch(partition, "reports", FindRequest()))
    try node.put(partition, "other", "a", body(["n": .int(1)]))
    try node.put(try PartitionName("agency=Other"), "reports", "a", body(["n": .int(1)]))
    try mirror.drain()
    #expect(mirror.shown.isEmpty && mirror.eventCount == 0)
  }

  @Test("a watch of what is not there yet begins empty and follows what comes")
  func notThereYet() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let mirror = try Mirror(try node.watch(partition, "reports", FindRequest(filter: body(["n": .int(1)]))))
    #expect(mirror.shown.isEmpty)
    #expect(try node.partitions(withDigests: false).isEmpty)
    try node.put(partition, "reports", "a", body(["n": .int(1)]))
    try node.put(partition, "reports", "b", body(["n": .int(2)]))
    try mirror.drain()
    #expect(mirror.ids == [.string("a")])
  }

  @Test("there are so many live results at the most, and one that is closed makes room")
  func limit() throws {
    let fleet = try TestFleet(1)
    var watches = try (0..<CommitFeed.followerLimit).map { _ in
      try fleet.nodes[0].watch(partition, "reports", FindRequest())
    }
    let error = #expect(throws: NodeError.self) { try fleet.nodes[0].watch(partition, "reports", FindRequest()) }
    #expect(error?.code == .busy)
    watches[0].cancel()
    watches.append(try fleet.nodes[0].watch(partition, "reports", FindRequest()))
    for watch in watches { watch.cancel() }
  }

  @Test("a stop ends a watch by saying so")
  func stop() throws {
    let fleet = try TestFleet(1)
    let watch = try fleet.nodes[0].watch(partition, "reports", FindRequest())
    _ = try watch.next(timeoutMilliseconds: 0)
    fleet.nodes[0].stop()
    let error = #expect(throws: NodeError.self) { try watch.next(timeoutMilliseconds: 60_000) }
    #expect(error?.code == .stopping)
  }
}
