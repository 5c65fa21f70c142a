import Identity
import Replication
import Testing

@testable import Engine

/// Own writes while peers claim or show what this device did not write.
@Suite struct OwnChainTests {
  private let room: PartitionName
  private let other: PartitionName
  init() throws { (room, other) = (try PartitionName("room=1"), try PartitionName("room=2")) }

  /// Two that know one another, the first with changes of its own.
  private func met() throws -> (EngineBench, SessionID) {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    for name in [room, other] { try bench.nodes[0].write(name, Put("a")) }
    return (bench, bench.meet(0, 1))
  }

  /// The peer claims more of node 0's own chain than it has written.
  private func claim(_ bench: EngineBench, _ session: SessionID, _ sequence: UInt64 = 9) throws {
    let replica = try #require(bench.nodes[0].state.own.replica?.id)
    let vector = VersionVector([replica: ChainPosition(sequence: sequence, tip: TipHash(high: 1, low: 2))])
    bench.nodes[0].engine.turn([
      .message(session, .have(PartitionVector(name: room, vector: vector)), byteCount: 10)
    ])
  }

  @Test("own writes of the partition wait for a claim, in order, for two seconds; those of others do not wait")
  func waits() throws {
    let (bench, session) = try met()
    let node = bench.nodes[0]
    let replica = node.state.own.replica
    try claim(bench, session)
    let jobs = ["b", "c"].map { node.job(room, [Put($0)]) }
    for (job, _) in jobs { node.engine.turn([.write(job)]) }
    #expect(jobs.allSatisfy { $0.1.count == 0 })
    #expect(try node.write(other, Put("b")).dot?.sequence == 2)
    bench.advance(OwnChainClaims.holdMilliseconds - 1)
    #expect(jobs.allSatisfy { $0.1.count == 0 })
    #expect(node.engine.nextWake <= bench.clock.now.advanced(byMilliseconds: 1))
    bench.advance(1)
    #expect(try jobs.map { try $0.1.get().dot?.sequence } == [2, 3])
    #expect(node.state.own.replica == replica && !node.state.own.isRenewalDue)
    // The device that claimed is not waited for again.
    try claim(bench, bench.meet(0, 1))
    #expect(try node.write(room, Put("d")).dot?.sequence == 4)
    #expect(node.state.own.replica == replica && node.mark.discards == 0)
  }

  @Test("no write waits longer than that, however many claims follow on one another")
  func waitsOnce() throws {
    let bench = try EngineBench(4)
    for node in bench.nodes { try node.subscribe("room=*") }
    let node = bench.nodes[0]
    try node.write(room, Put("a"))
    let sessions = (1...3).map { bench.meet(0, $0) }
    try claim(bench, sessions[0])
    bench.advance(1_500)
    let (job, answer) = node.job(room, [Put("b")])
    node.engine.turn([.write(job)])
    bench.advance(499)
    #expect(answer.count == 0)
    bench.clock.advance(1)
    // The next claim comes with the end of the first, before the write had its turn.
    let replica = try #require(node.state.own.replica?.id)
    let vector = VersionVector([replica: ChainPosition(sequence: 9, tip: .zero)])
    let claims = sessions.dropFirst().map {
      EngineEvent.message($0, .have(PartitionVector(name: room, vector: vector)), byteCount: 10)
    }
    node.engine.turn(claims)
    node.engine.turn([])
    for _ in 0..<3 where answer.count == 0 {
      bench.advance(500)
      node.engine.turn(claims)
    }
    #expect(try answer.get().dot?.sequence == 2)
  }

  @Test("after the state was read anew no open claim is waited for, and nobody again who claimed in vain")
  func outlastsReadingAgain() throws {
    let (bench, session) = try met()
    let node = bench.nodes[0]
    /// Runs that the disk does not take cut all sessions, and the core begins again from what is stored.
    func beginAgain(_ lost: Text) throws {
      try node.refuse("INSERT", on: "runs")
      try bench.nodes[1].write(other, Put(lost))
      bench.run()
      try node.allow("runs")
      #expect(node.state.mesh.sessions.isEmpty)
    }
    try claim(bench, session)
    #expect(!node.state.mesh.ownChainClaims.isEmpty)
    try beginAgain("first")
    #expect(node.state.mesh.ownChainClaims.isEmpty)
    // It had no time to show what it claimed, so it is waited for; then no more.
    try claim(bench, bench.meet(0, 1))
    #expect(!node.state.mesh.ownChainClaims.isEmpty)
    bench.advance(OwnChainClaims.holdMilliseconds)
    #expect(node.state.mesh.sessions.isEmpty && node.state.mesh.ownChainClaims.isEmpty)
    bench.meet(0, 1)
    try beginAgain("second")
    try claim(bench, bench.meet(0, 1))
    #expect(node.state.mesh.ownChainClaims.isEmpty)
    #expect(try node.write(room, Put("b")).dot?.sequence == 2)
    #expect(node.journal.lines.count { $0.message.contains("begins again") } == 2)
  }

  @Test("what is written when the waiting has just ended goes behind what waited")
  func behindWhatWaited() throws {
    let (bench, session) = try met()
    let node = bench.nodes[0]
    try claim(bench, session)
    let jobs = ["b", "c"].map { node.job(room, [Put($0)]) }
    node.engine.turn([.write(jobs[0].0)])
    bench.clock.advance(OwnChainClaims.holdMilliseconds)
    node.engine.turn([.write(jobs[1].0)])
    #expect(try jobs.map { try $0.1.get().dot?.sequence } == [2, 3])
  }

  @Test("the engine wakes for a write whose waiting ends where nobody's claim does")
  func wakes() throws {
    let (bench, session) = try met()
    bench.cut(session)
    let node = bench.nodes[0]
    node.engine.keeper.demandRenewal(.peer, in: node.id(of: room))
    try node.write(room, Put("b"))
    node.engine.keeper.demandRenewal(.peer, in: node.id(of: room))
    // Beside the ticks: those would wake it as well.
    bench.advance(Mesh.tickMilliseconds)
    bench.advance(100)
    let (job, answer) = node.job(room, [Put("c")])
    node.engine.turn([.write(job)])
    bench.advance(OwnChainClaims.holdMilliseconds - 100)
    try #require(answer.count == 0)
    #expect(node.engine.nextWake.millisecondsSince(bench.clock.now) <= 100)
    bench.advance(100)
    #expect(answer.count == 1)
  }

  @Test("what waits is written when the node stops")
  func stops() throws {
    let (bench, session) = try met()
    let node = bench.nodes[0]
    try claim(bench, session)
    let (job, answer) = node.job(room, [Put("b")])
    node.engine.turn([.write(job)])
    node.engine.finish()
    #expect(try answer.get().dot?.sequence == 2)
  }

  @Test("a copy's signed runs end the waiting, and the write goes on under a new replica")
  func evidence() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("a"))
    let copy = try bench.clone(0)
    try bench.nodes[copy].write(room, Put("b"))
    bench.cut(bench.meet(copy, 1))
    let node = bench.nodes[0]
    let old = node.state.own.replica
    bench.connect(0, 1)
    bench.run { !node.state.mesh.ownChainClaims.isEmpty }
    let (job, answer) = node.job(room, [Put("c")])
    node.engine.turn([.write(job)])
    #expect(answer.count == 0)
    bench.run()
    #expect(try answer.get().dot?.sequence == 1)
    #expect(node.state.own.replica != old)
    #expect(try node.shown(room, "b") != nil)
  }

  @Test("a replica is renewed once a minute: till then nothing is written where it is contested, all goes on elsewhere")
  func onceAMinute() throws {
    let (bench, _) = try met()
    let node = bench.nodes[0]
    node.engine.keeper.demandRenewal(.peer, in: node.id(of: room))
    try node.write(room, Put("b"))
    let renewed = node.state.own.replica
    try node.write(other, Put("b"))
    node.engine.keeper.demandRenewal(.peer, in: node.id(of: room))
    bench.advance(10_000)
    let (job, answer) = node.job(room, [Put("c")])
    node.engine.turn([.write(job)])
    #expect(answer.count == 0)
    #expect(try node.write(other, Put("c")).dot?.replica == renewed?.id)
    bench.advance(OwnChainClaims.holdMilliseconds)
    #expect(throws: EngineError.renewedLately(room, seconds: 48)) { try answer.get() }
    #expect(try node.shown(room, "c") == nil)
    bench.advance(48_000)
    #expect(try node.write(room, Put("c")).dot?.sequence == 1)
    #expect(node.state.own.replica != renewed)
  }

  @Test("a cause that is no peer's holds everywhere until a renewal may be")
  func otherCauses() throws {
    let (bench, _) = try met()
    let node = bench.nodes[0]
    for name in [room, other] {
      node.engine.keeper.demandRenewal(.corruption)
      let (job, answer) = node.job(name, [Put("b")])
      node.engine.turn([.write(job)])
      bench.advance(OwnChainClaims.holdMilliseconds)
      if name == room {
        #expect(try answer.get().dot?.sequence == 1)
      } else {
        #expect(throws: EngineError.renewedLately(other, seconds: 56)) { try answer.get() }
      }
    }
  }
}
