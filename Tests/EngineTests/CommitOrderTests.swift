import Identity
import Replication
import Testing

@testable import Engine

/// Durable before sent, and told in order.
@Suite struct CommitOrderTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  private func pair() throws -> (EngineBench, SessionID) {
    let (bench, session) = try EngineBench.pair(in: room)
    for node in bench.nodes { node.trace.clear() }
    return (bench, session)
  }

  @Test("an own run is sent after its commit, and after those who follow commits were told")
  func ownRun() throws {
    let (bench, session) = try pair()
    try bench.nodes[0].write(room, Put("a"))
    #expect(bench.nodes[0].trace.entries == [.began, .committed, .told, .sent(session, "runs")])
  }

  @Test("a peer hears that its run is held once it is on disk")
  func remoteRun() throws {
    let (bench, session) = try pair()
    try bench.nodes[0].write(room, Put("a"))
    bench.run()
    #expect(bench.nodes[1].trace.entries == [.began, .committed, .told])
    bench.advance(1_000)
    #expect(bench.nodes[1].trace.entries == [.began, .committed, .told, .sent(session, "have")])
  }

  @Test("who writes is answered after the commit, and a caller sees all that came before it durable")
  func answers() throws {
    let (bench, _) = try pair()
    let node = bench.nodes[0]
    let (job, answer) = node.job(room, [Put("a")])
    let seen = BenchNode.Answer<Int>()
    node.engine.turn([
      .write(job),
      .call { engine in
        seen.take(.success(answer.count))
        #expect(engine.state.own.commits == 2)
      },
    ])
    #expect(try seen.get() == 1)
    #expect(try answer.get().dot?.sequence == 2)
  }

  @Test("statements that the disk does not take reach nobody, and come again once it takes them")
  func refusedStatements() throws {
    let bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    bench.meet(1, 0)
    bench.meet(2, 0)
    let known = bench.nodes[2].state.mesh.authority.count
    try bench.nodes[0].refuse("INSERT", on: "statements")
    try bench.nodes[1].write(room, Put("a"))
    bench.run()
    #expect(bench.nodes[2].state.mesh.authority.count == known)
    #expect(bench.nodes[0].state.mesh.authority.count == known)
    // What it took in is ahead of the disk: every session begins anew.
    #expect(bench.nodes[0].state.mesh.sessions.isEmpty)
    try bench.nodes[0].allow("statements")
    bench.meet(1, 0)
    bench.meet(2, 0)
    #expect(bench.nodes[2].state.mesh.authority.count == known + 1)
    #expect(try bench.nodes[2].shown(room, "a") != nil)
  }

  @Test("runs that the disk does not take are not held by memory either, and come with a new session")
  func refusedRuns() throws {
    let (bench, _) = try pair()
    let before = bench.nodes[1].accepted(room)
    try bench.nodes[1].refuse("INSERT", on: "runs")
    try bench.nodes[0].write(room, Put("a"))
    bench.run()
    #expect(bench.nodes[1].trace.commits == 0)
    #expect(bench.nodes[1].accepted(room) == before)
    #expect(bench.nodes[1].state.mesh.sessions.isEmpty)
    #expect(bench.nodes[1].journal.says("writing the store failed"))
    try bench.nodes[1].allow("runs")
    bench.meet(1, 0)
    #expect(try bench.nodes[1].shown(room, "a") != nil)
    #expect(bench.nodes[1].accepted(room) == bench.nodes[0].accepted(room))
  }

  @Test("much at once is written as a backlog, a few changes are not")
  func backlog() throws {
    let bench = try EngineBench(2) { $0.limits.backlogChanges = 10 }
    try bench.nodes[1].subscribe("room=*")
    let jobs = (0..<20).map { bench.nodes[0].job(room, [Put(Text("\($0)"))]).0 }
    bench.nodes[0].engine.turn(jobs.map { .write($0) })
    bench.meet(1, 0)
    #expect(bench.nodes[1].accepted(room).entries.values.map(\.sequence) == [20])
    #expect(bench.nodes[1].store.backlogs.contains(true))
    try bench.nodes[0].write(room, Put("last"))
    bench.run()
    #expect(bench.nodes[1].store.backlogs.last == false)
  }

  @Test("more writes than one transaction holds are several, each answered")
  func fullBatch() throws {
    let node = try EngineBench(1) { $0.limits.writes = 4 }.nodes[0]
    let jobs = (0..<10).map { node.job(room, [Put(Text("\($0)"))]) }
    node.trace.clear()
    node.engine.turn(jobs.map { .write($0.0) })
    #expect(node.trace.commits == 3)
    #expect(try jobs.map { try $0.1.get().dot?.sequence } == (1...10).map { UInt64($0) })
    #expect(node.feed.records.map { $0.arrivals?.count } == [1, 1, 1])
  }
}
