import Dispatch
import Replication
import Synchronization
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh
@testable import Transport

/// What a node answers while its engine does not.
@Suite(.serialized) struct BusyEngineTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  /// Holds up the engine until it is let go.
  private final class Obstacle: Sendable {
    private let gate = DispatchSemaphore(value: 0)

    init(_ node: Node) throws {
      let begun = DispatchSemaphore(value: 0)
      let isTaken = node.engine.inbox.put(
        .event(
          .call { [gate] _ in
            begun.signal()
            gate.wait()
          }))
      try #require(isTaken)
      begun.wait()
    }

    func remove() { gate.signal() }
  }

  @Test("status, peers, doctor and metrics answer while the engine hangs, and count what was acknowledged before")
  func answersOfAHungEngine() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    for index in 0..<3 { try node.put(room, "c", Text("\(index)"), body(["n": .int(1)])) }
    let obstacle = try Obstacle(node)
    defer { obstacle.remove() }
    let status = try node.status()
    #expect(status.documents == 3 && status.changes == 3 && status.fleetName == "test")
    #expect(status.ageMilliseconds > 0)
    #expect(status.lostIfWiped == nil, "nobody has judged what came since the last look")
    #expect(try node.peers().isEmpty)
    #expect(try node.doctor().allSatisfy { $0.level != .problem })
    #expect(try node.metrics().contains("\nseamesh_documents 3\n"))
  }

  @Test("a status is of now where the engine answers, and shows what a user has just changed")
  func freshStatus() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    try node.put(room, "c", "a", body(["n": .int(1)]))
    #expect(try node.status().lostIfWiped == 1)
    try node.subscribe("boat=*")
    let obstacle = try Obstacle(node)
    let done = DispatchSemaphore(value: 0)
    let shown = Mutex<UInt64?>(nil)
    DispatchQueue.global().async {
      let lost = try? node.status().lostIfWiped
      shown.withLock { $0 = lost }
      done.signal()
    }
    #expect(
      done.wait(timeout: .now() + .milliseconds(Int(EngineBoard.patienceMilliseconds) * 4)) == .timedOut,
      "the latest look is older than what the user was told since")
    obstacle.remove()
    try eventually { shown.withLock { $0 } == 1 }
  }

  @Test("a look that began without what would be lost is no answer to who wants to know that, and the next one is")
  func lookBegunWithout() throws {
    let fleet = try TestFleet(1)
    let (without, with) = try fleet.nodes[0].engine.ask { engine in
      (EngineView(engine, judgesWipe: false), EngineView(engine, judgesWipe: true))
    }
    let board = EngineBoard()
    var isAskedOfTheNext = false
    let shown = board.view(judgesWipe: true) {
      board.publish(without, judgesWipe: false)
      isAskedOfTheNext = board.isWipeAsked
      board.publish(with, judgesWipe: true)
      return true
    }
    #expect(isAskedOfTheNext && !board.isWipeAsked)
    #expect(shown?.status.lostIfWiped == 0)
  }

  @Test("a look that is not asked what would be lost takes that from nobody, and puts off no look that is")
  func lookWithoutBehind() throws {
    let fleet = try TestFleet(1)
    let (without, with) = try fleet.nodes[0].engine.ask { engine in
      (EngineView(engine, judgesWipe: false), EngineView(engine, judgesWipe: true))
    }
    let board = EngineBoard()
    board.publish(without, judgesWipe: false)
    #expect(board.isDue)
    // Of two looks that wait the first is an answer to both who asked.
    board.publish(with, judgesWipe: true)
    board.publish(without, judgesWipe: false)
    #expect(!board.isDue)
    try eventually { ElapsedClock.now() > with.taken }
    let later = try fleet.nodes[0].engine.ask { EngineView($0, judgesWipe: false) }
    board.publish(later, judgesWipe: false)
    let shown = board.view(judgesWipe: true) { true }
    #expect(shown?.status.lostIfWiped == 0, "nobody looks")
    #expect(shown?.taken == later.taken)
  }

  @Test("who waits too long for the engine hears that it may still be done, and it is done")
  func unanswered() throws {
    let fleet = try TestFleet(1) { $0.reads.replyMilliseconds = 50 }
    let node = fleet.nodes[0]
    let obstacle = try Obstacle(node)
    let error = #expect(throws: NodeError.self) { try node.put(room, "c", "a", body(["n": .int(1)])) }
    #expect(error?.code == .unanswered)
    #expect(error?.message.contains("may still be done") == true)
    obstacle.remove()
    try eventually { try node.status().documents == 1 }
  }

  @Test("a key whose insert nobody waits for any more makes no second document with another body")
  func keyInDoubt() throws {
    let fleet = try TestFleet(1) { $0.reads.replyMilliseconds = 50 }
    let node = fleet.nodes[0]
    let (first, second) = (body(["n": .int(1)]), body(["n": .int(2)]))
    let obstacle = try Obstacle(node)
    for content in [first, second, second] {
      let error = #expect(throws: NodeError.self) { try node.insert(content, under: "k", room, "c") }
      #expect(error?.code == .unanswered)
    }
    obstacle.remove()
    try eventually { (try? node.insert(first, under: "k", room, "c"))?.receipt.created == [false] }
    try eventually {
      do throws(NodeError) { _ = try node.insert(second, under: "k", room, "c") } catch {
        return error.code == .unprocessable
      }
      return false
    }
    var count = 0
    try node.export(room, collection: "c") { _, _ in
      count += 1
      return true
    }
    #expect(count == 1)
  }

  @Test("a second backup to a file that one is on its way to is refused as busy")
  func backupTwice() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let path = fleet.path(of: 0) + "/a.backup"
    var codes: [NodeError.Code] = []
    try node.backup(to: path) { _, _ in
      do throws(NodeError) { try node.backup(to: path) { _, _ in } } catch { codes.append(error.code) }
    }
    #expect(!codes.isEmpty && codes.allSatisfy { $0 == .busy })
  }

  @Test("doctor tells of an engine that has not answered for seconds, and of no moment's silence")
  func silentEngine() {
    #expect(Doctor.finding(engineSilentFor: Doctor.busyMilliseconds) == nil)
    let finding = Doctor.finding(engineSilentFor: 90_500)
    #expect(finding?.level == .problem && finding?.code == "engine-busy")
    #expect(finding?.message.contains("90 s") == true)
  }

  @Test("what users ask is taken before what peers sent, and each in its order")
  func lanes() {
    let inbox = Inbox()
    inbox.put(.event(.networkChanged))
    inbox.put(.event(.call { _ in }))
    inbox.put(.event(.passagesMoved))
    inbox.put(.stop)
    inbox.wait(milliseconds: .max)
    let asked = inbox.take(.users)
    guard asked.count == 2, case .event(.call) = asked[0], case .stop = asked[1] else {
      Issue.record("the users' lane holds \(asked)")
      return
    }
    let sent = inbox.take(.peers)
    guard sent.count == 2, case .event(.networkChanged) = sent[0], case .event(.passagesMoved) = sent[1] else {
      Issue.record("the peers' lane holds \(sent)")
      return
    }
    #expect(inbox.take(.users).isEmpty && inbox.take(.peers).isEmpty)
  }

  // MARK: Memory of frames

  @Test("frames of many connections share one budget, and a connection alone has its own")
  func budget() {
    var frames = WaitingFrames()
    let size = 1024 * 1024 - WaitingFrames.messageByteCount
    let connections = (1...64).map { ConnectionID(number: $0) }
    var paused = 0
    for round in 0..<8 {
      for connection in connections where frames.byteCount <= WaitingFrames.byteLimit || round == 0 {
        if frames.add(size, of: connection) { paused += 1 }
      }
    }
    #expect(frames.byteCount <= WaitingFrames.byteLimit + connections.count * 1024 * 1024)
    #expect(paused >= 1, "64 connections with more than 1 MiB each are above the budget")
    // What was paused goes on once its own frames are taken up.
    var resumed = 0
    for connection in connections {
      while frames.holds(connection) { if frames.take(size, of: connection) { resumed += 1 } }
    }
    #expect(resumed == paused && frames.byteCount == 0)
    var alone = WaitingFrames()
    let pauses = (0..<9).map { _ in alone.add(size, of: connections[0]) }
    #expect(pauses.firstIndex(of: true) == 8, "8 MiB of one connection")
    alone.remove(connections[0])
    #expect(alone.byteCount == 0)
  }

  // MARK: Threads that hang

  @Test("a thread counts as hung that stays at one step, and none that rests or goes on")
  func hangs() {
    var watch = HangWatch(2)
    for step in 0..<20 { #expect(watch.look([nil, UInt64(step)], limit: 3) == nil) }
    #expect(watch.look([7, 21], limit: 3) == nil, "the first look at a step")
    #expect(watch.look([7, 22], limit: 3) == nil)
    #expect(watch.look([7, 23], limit: 3) == nil)
    #expect(watch.look([7, 24], limit: 3) == 0)
    #expect(watch.look([7, 25], limit: 3) == nil, "told once")
    for _ in 0..<3 { #expect(watch.look([9, nil], limit: 3) == nil) }
    #expect(watch.look([9, nil], limit: 3) == 0, "another step")
  }

  @Test("the watchdog names an engine that hangs, and says nothing of a node at rest")
  func watchdog() throws {
    let said = Mutex<[String]>([])
    let fleet = try TestFleet(1) {
      ($0.watch.lookMilliseconds, $0.watch.lookLimit) = (5, 20)
      $0.watch.end = { sentence in said.withLock { $0.append(sentence) } }
    }
    let node = fleet.nodes[0]
    try node.put(room, "c", "a", body(["n": .int(1)]))
    #expect(said.withLock { $0.isEmpty })
    let obstacle = try Obstacle(node)
    defer { obstacle.remove() }
    try eventually { said.withLock { !$0.isEmpty } }
    #expect(said.withLock { $0.first?.contains("of the engine") } == true)
  }
}
