import Replication
import Synchronization
import TestSupport
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

  @Test("while nothing comes, a result that an app awaits is not looked at, and takes no thread")
  func awaited() async throws {
    let result = QuietResult()
    let events = DocumentEvents(result)
    let task = Task {
      var iterator = events.makeAsyncIterator()
      return try await iterator.next()
    }
    try eventually(within: 5) { result.isAwaited }
    // In turns of a quarter of a second it would be looked at four times.
    #expect(!waitUntil(within: 1) { result.looks > 1 })
    result.push(.delete(id: .int(1), position: 0, cursor: ""))
    #expect(try await task.value == .delete(Document.ID(.int(1))))
    #expect(result.looks == 2 && result.longestWait == 0)
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

/// A live result in which nothing happens until it is pushed.
private final class QuietResult: LiveSubscription {
  private struct State {
    var event: WatchEvent?
    var looks = 0
    var longestWait = 0
    var awaiter: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  var isAwaited: Bool { state.withLock { $0.awaiter != nil } }
  var looks: Int { state.withLock { $0.looks } }
  var longestWait: Int { state.withLock { $0.longestWait } }

  func next(timeoutMilliseconds: Int) -> WatchEvent? {
    state.withLock { state in
      state.looks += 1
      state.longestWait = max(state.longestWait, timeoutMilliseconds)
      defer { state.event = nil }
      return state.event
    }
  }

  func atNews(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.awaiter = body } }

  func push(_ event: WatchEvent) {
    let awaiter = state.withLock { state in
      state.event = event
      return state.awaiter
    }
    awaiter?()
  }

  func cancel() {}
}
