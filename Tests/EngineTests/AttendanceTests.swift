import Replication
import Synchronization
import Testing

@testable import Engine

/// Who uses a node waits for his own request, not for what peers hand over meanwhile.
@Suite struct AttendanceTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  /// What node 0 would send over a session for so many writes, as events for node 1.
  private func events(_ bench: EngineBench, _ session: SessionID, _ ids: Range<Int>) throws -> [EngineEvent] {
    var frames: [[UInt8]] = []
    let deliver = bench.nodes[0].links.deliver
    bench.nodes[0].links.deliver = { frame, id in if id == session { frames.append(frame) } }
    defer { bench.nodes[0].links.deliver = deliver }
    for index in ids { try bench.nodes[0].write(room, Put(Text("\(index)"))) }
    return frames.map { bench.event($0, session, 1) }
  }

  @Test("a write in the midst of what a peer hands over is answered before the rest of it is taken in")
  func writeAmongFrames() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    let node = bench.nodes[1]
    let events = try events(bench, session, 0..<20)
    let (job, answer) = node.job(room, [Put("mine")])
    var looks = 0
    var takenWithAnswer: UInt64?
    node.engine.turn(events) {
      defer { looks += 1 }
      if takenWithAnswer == nil, answer.count == 1 {
        takenWithAnswer = node.accepted(room).entries.values.reduce(0) { $0 + $1.sequence }
      }
      return looks == 5 ? [.write(job)] : []
    }
    let taken = try #require(takenWithAnswer)
    #expect(taken > 1 && taken < 10, "its own change, and those few that came before it")
    #expect(try answer.get().dot != nil)
    #expect(try node.shown(room, "19") != nil, "the rest is taken in afterwards")
  }

  @Test("while somebody writes on a node what peers hand over is stored in small transactions, and in large ones later")
  func smallTransactions() throws {
    let (bench, session) = try EngineBench.pair(in: room) {
      ($0.limits.attendedChanges, $0.limits.attendedMilliseconds) = (3, 10_000)
    }
    let node = bench.nodes[1]
    func commits(_ ids: Range<Int>) throws -> Int {
      let events = try events(bench, session, ids)
      node.trace.clear()
      node.engine.turn(events)
      return node.trace.commits
    }
    #expect(try commits(0..<12) == 1)
    try node.write(room, Put("mine"))
    bench.clock.advance(9_000)
    #expect(try commits(12..<24) >= 4)
    bench.clock.advance(1_001)
    #expect(try commits(24..<36) == 1)
  }

  @Test("a look at the engine waits for no commit, and brings none about")
  func look() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    let node = bench.nodes[1]
    let events = try events(bench, session, 0..<6)
    node.trace.clear()
    var looks = 0
    let seen = Mutex<[Int]>([])
    let trace = node.trace
    node.engine.turn(events) {
      looks += 1
      return looks == 4 ? [.look { [commits = trace.commits] _ in seen.withLock { $0.append(commits) } }] : []
    }
    #expect(seen.withLock { $0 } == [0])
    #expect(node.trace.commits == 1)
  }

  @Test("answers to peers come in turns, between which users are answered, and the next turn follows at once")
  func loadsByTurns() throws {
    let bench = try EngineBench(2) { $0.limits.loadsOfOneTurn = 2 }
    let rooms = try (0..<7).map { try PartitionName(Text("room=\($0)")) }
    for room in rooms { try bench.nodes[0].write(room, Put("a")) }
    let session = bench.meet(1, 0)
    let pulls = try pulls(bench, session)
    try #require(pulls.count == rooms.count)
    let node = bench.nodes[0]
    func looks(_ events: [EngineEvent]) -> Int {
      var looks = 0
      node.engine.turn(events) {
        looks += 1
        return []
      }
      return looks
    }
    #expect(looks(pulls) == 1 + pulls.count + 2 + 1, "at first, after each event, after each of two answers, and last")
    #expect(node.engine.nextWake == bench.clock.now)
    #expect(looks([]) == 1 + 2 + 1)
    // Each is read and sent, and the next one asked for when that is handed over.
    for _ in 0..<5 { node.engine.turn([]) }
    #expect(node.engine.nextWake > bench.clock.now)
    bench.run()
    for room in rooms { #expect(try bench.nodes[1].shown(room, "a") != nil) }
  }

  /// What node 1 asks when it wants all rooms, as events for node 0, which has not been handed it.
  private func pulls(_ bench: EngineBench, _ session: SessionID) throws -> [EngineEvent] {
    var pulls: [EngineEvent] = []
    let deliver = bench.nodes[1].links.deliver
    defer { bench.nodes[1].links.deliver = deliver }
    bench.nodes[1].links.deliver = { frame, id in
      let event = bench.event(frame, session, 0)
      if case .message(_, .pull, _) = event { pulls.append(event) } else { deliver?(frame, id) }
    }
    try bench.nodes[1].subscribe("room=*")
    bench.run()
    return pulls
  }
}
