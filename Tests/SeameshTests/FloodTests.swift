import Foundation
import Replication
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

@testable import Engine
@testable import Seamesh

/// A member that goes on asking and does not read what it is told.
@Suite(.serialized) struct FloodTests {
  private let partition: PartitionName
  private let fleet: TestFleet

  init() throws {
    partition = try PartitionName("room=1")
    fleet = try TestFleet(2)
    let (name, nodes) = (partition.text, fleet.nodes)
    for node in nodes { try node.subscribe(name) }
    try eventually { try nodes.allSatisfy { try $0.peers().contains { $0.state == .connected } } }
  }

  /// How node 0 sees its one link.
  private struct View: Sendable {
    var isConnected = false
    var isHeldUp = false
    var heldFrames = 0
    var queuedFrames = 0
    var queuedBytes = 0
  }

  private func view() throws -> View {
    try asked { engine in
      guard let (id, link) = engine.links.table.links.first, let transport = engine.transport else { return View() }
      return View(
        isConnected: true, isHeldUp: link.unread.isHeldUp,
        heldFrames: engine.links.table.held[id]?.frameCount ?? 0,
        queuedFrames: transport.queuedFrames(of: ConnectionID(id)) ?? 0,
        queuedBytes: transport.queuedBytes(of: ConnectionID(id)) ?? 0)
    }
  }

  /// What node 0 answers; fails where it stands still.
  private func asked<Answer: Sendable>(_ question: @escaping @Sendable (NodeEngine) -> Answer) throws -> Answer {
    let node = fleet.nodes[0]
    let answer = Mutex<Answer?>(nil)
    Thread.detachNewThread {
      let given = try? node.engine.ask(question)
      answer.withLock { $0 = given }
    }
    _ = waitUntil { answer.withLock { $0 != nil } }
    return try #require(answer.withLock { $0 }, "the node answers")
  }

  /// A node's end of its one link.
  private struct End {
    let transport: SecureTransport
    let connection: ConnectionID
  }

  private func end(of index: Int) throws -> End {
    try #require(
      try fleet.nodes[index].engine.ask { engine in
        guard let id = engine.links.table.links.keys.first, let transport = engine.transport else { return nil }
        return End(transport: transport, connection: ConnectionID(id))
      })
  }

  /// Messages that receivers skip, until neither the kernel nor the transport takes more.
  private func fillQueue(of end: End) {
    let optional: [UInt8] = [0x82, 0x18, 64, 0x5a, 0, 0x0f, 0, 0] + [UInt8](repeating: 0, count: 0x0f_0000)
    #expect(waitUntil { end.transport.send(end.connection, optional) == .full })
  }

  /// Sends so many of the message, or as many as are taken until `stop`.
  private func flood(_ end: End, _ messages: Message..., count: Int, until stop: Flag) -> Thread {
    let frames = Array(repeatElement(messages.map { MessageCodec.encode($0) }, count: 1_000 / messages.count).joined())
    let thread = Thread {
      var sent = 0
      while sent < count, !stop.isRaised {
        switch end.transport.send(end.connection, frames) {
        case .queued: sent += frames.count
        case .full:
          _ = waitUntil(within: 1) { stop.isRaised || end.transport.queuedFrames(of: end.connection) ?? 0 < 10_000 }
        case .closed: return
        }
      }
    }
    thread.start()
    return thread
  }

  /// Local writes are answered, one after another.
  private func expectWrites(_ count: Int) throws {
    let (node, partition) = (fleet.nodes[0], partition)
    let answered = Mutex(0)
    Thread.detachNewThread {
      for number in 0..<count {
        try? node.put(partition, "c", Text("w\(number)"), body(["n": .int(Int64(number))]))
        answered.withLock { $0 += 1 }
      }
    }
    try #require(waitUntil { answered.withLock { $0 } == count }, "all writes are answered")
  }

  @Test(
    "300,000 pings of a member that reads nothing: it is paused, no pong waits for it, writes are answered; then all is well"
  )
  func pings() throws {
    let (honest, flooder) = (try end(of: 0), try end(of: 1))
    flooder.transport.pauseReading(flooder.connection)
    fillQueue(of: honest)
    let before = try view()
    let stop = Flag()
    _ = flood(flooder, .ping(nonce: 1), count: 300_000, until: stop)
    defer { stop.raise() }
    try eventually("reading from it is paused") { try view().isHeldUp }
    try expectWrites(20)
    let during = try view()
    #expect(during.isConnected)
    // The writes were announced to it, and nothing else.
    #expect(during.heldFrames <= 40)
    #expect(during.queuedFrames <= before.queuedFrames + 40)
    stop.raise()
    flooder.transport.resumeReading(flooder.connection)
    let digests = { try self.fleet.nodes.map { try $0.digest(self.partition) } }
    try eventually("what was written reaches it") {
      let digests = try digests()
      return digests[0] != nil && digests[0] == digests[1]
    }
  }

  @Test(
    "questions with other answers than pongs pause the reading, too; what is held stays below its bound or the peer is cut off"
  )
  func questions() throws {
    try fleet.nodes[0].put(partition, "c", "a", body(["n": .int(1)]))
    let (honest, flooder) = (try end(of: 0), try end(of: 1))
    flooder.transport.pauseReading(flooder.connection)
    fillQueue(of: honest)
    let stop = Flag()
    // Each time what is held of the partition is told anew.
    let id = try fleet.nodes[0].engine.ask { [partition] in $0.state.identity.id(of: partition) }
    let wish = Interest(partitions: [id])
    _ = flood(
      flooder, .interestChange(added: Interest(), removed: wish), .interestChange(added: wish, removed: Interest()),
      count: 300_000, until: stop)
    defer { stop.raise() }
    try eventually("reading from it is paused") { try view().isHeldUp }
    try expectWrites(20)
    let during = try view()
    #expect(during.heldFrames <= HeldFrames.frameLimit)
    #expect(during.queuedBytes <= TransportConfiguration().sendQueueByteLimit + 1024 * 1024)
  }

  @Test("a pause of reading ends by itself, so that two nodes never wait for one another")
  func pauseEnds() throws {
    let nodes = fleet.nodes
    let isPaused = try nodes[0].engine.ask { engine in
      guard let id = engine.links.table.links.keys.first else { return false }
      return engine.links.pauseReading(of: id)
    }
    #expect(isPaused)
    try nodes[1].put(partition, "c", "a", body(["n": .int(1)]))
    try eventually("it goes on reading") {
      let digests = try nodes.map { try $0.digest(partition) }
      return digests[0] != nil && digests[0] == digests[1]
    }
  }
}

extension NodeEngine {
  fileprivate var transport: SecureTransport? { (links.port as? NodeLinks)?.transport }
}

/// Tells a thread to stop.
private final class Flag: Sendable {
  private let state = Mutex(false)
  var isRaised: Bool { state.withLock { $0 } }
  func raise() { state.withLock { $0 = true } }
}
