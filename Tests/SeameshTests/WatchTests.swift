import Replication
import Testing

@testable import Engine
@testable import Seamesh

/// Live results of a real node.
@Suite(.serialized) struct WatchTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Galapagos") }

  @Test("a result follows inserts, changes and deletes", arguments: [nil, 2])
  func follows(limit: Int?) throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let request = FindRequest(sort: [.init(path: "n", ascending: true)], limit: limit)
    let mirror = try LiveMirror(try node.watch(partition, "reports", request))
    for (id, n) in [("a", 3), ("b", 1), ("c", 2), ("a", 0), ("b", 9)] as [(Text, Int64)] {
      try node.put(partition, "reports", id, body(["n": .int(n)]))
      try mirror.drain()
      #expect(try mirror.shown == node.find(partition, "reports", request).documents)
    }
    let gone = DocumentRequest(collection: "reports", id: .string("a"), action: .delete)
    _ = try node.write(partition, [gone])
    try mirror.drain()
    #expect(try mirror.shown == node.find(partition, "reports", request).documents)
  }

  @Test("changes in other collections and partitions move nothing")
  func elsewhere() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let mirror = try LiveMirror(try node.watch(partition, "reports", FindRequest()))
    try node.put(partition, "other", "a", body(["n": .int(1)]))
    try node.put(try PartitionName("agency=Other"), "reports", "a", body(["n": .int(1)]))
    try mirror.drain()
    #expect(mirror.shown.isEmpty && mirror.events.isEmpty)
  }

  @Test("a watch of what is not there yet begins empty and follows what comes")
  func notThereYet() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let mirror = try LiveMirror(try node.watch(partition, "reports", FindRequest(filter: body(["n": .int(1)]))))
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
