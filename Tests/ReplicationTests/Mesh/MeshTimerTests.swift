import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: what time brings") struct MeshTimerTests {
  private func said(_ bench: MeshBench, _ start: Int) -> [String] { bench.said(from: 0, to: 1, since: start) }

  @Test(
    "after fifteen seconds of silence one ping goes out, half a second sooner of who was asked last, after thirty the session is given up"
  )
  func silence() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let start = bench.transcript.count
    bench.tick(0, after: 14_499)
    #expect(said(bench, start) == [])
    bench.tick(0, after: 1)
    #expect(said(bench, start) == ["ping"])
    for _ in 0..<29 { bench.tick(0, after: 500) }
    #expect(said(bench, start) == ["ping"], "one in fifteen seconds")
    bench.tick(0, after: 500)
    #expect(said(bench, start) == ["ping", "ping"])
    bench.tick(0, after: 500)
    #expect(bench.nodes[0].mesh.sessions[id] != nil)
    bench.tick(0, after: 1)
    #expect(bench.nodes[0].mesh.sessions[id] == nil && bench.messages(from: 0, to: 1).last == .goodbye(.stopping))
  }

  private func isQuestion(_ message: Message) -> Bool {
    switch message {
    case .ping: true
    case .summary(let summary): if case .digest = summary.step { true } else { false }
    default: false
    }
  }

  @Test("two who have nothing to say ask one another once in fifteen seconds, in turn, comparisons among it")
  func rest() throws {
    for seed in 0..<4 {
      let bench = try MeshBench([0, 1])
      let id = bench.connected(0, 1)
      bench.nodes[seed % 2].mesh.sessions[id]?.live?.comparison.hasten(bench.now)
      // Their ticks fall apart by chance.
      bench.pass(UInt64(60_000 + seed * 61))
      let start = bench.transcript.count
      bench.pass(240_000)
      let said = [(0, 1), (1, 0)].flatMap { bench.said(from: $0.0, to: $0.1, since: start) }
      // A question and its answer each.
      #expect((2 * 15...2 * 17).contains(said.count), "\(said.count) messages")
      #expect(said.count { $0 == "summary" } >= 2 * 6)
      for (asker, peer) in [(0, 1), (1, 0)] {
        #expect((7...9).contains(bench.messages(from: asker, to: peer, since: start).count(where: isQuestion)))
      }
    }
  }

  @Test("whoever is heard is not pinged and not given up, and runs are heard, too", arguments: [true, false])
  func heard(byRuns: Bool) throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let start = bench.transcript.count
    for _ in 0..<8 {
      bench.tick(0, after: 5_000)
      let runs = Message.runs(RunBatch(name: bench.name, stream: 99, entries: []))
      bench.nodes[0].receive(byRuns ? runs : .pong(nonce: 0), on: id)
    }
    #expect(bench.nodes[0].mesh.sessions[id] != nil && !said(bench, start).contains("ping"))
  }

  @Test("the round trip is the time from the last ping to its answer")
  func roundTrip() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    bench.tick(0, after: 15_000)
    bench.now = bench.now.advanced(byMilliseconds: 70)
    bench.run()
    #expect(bench.nodes[0].mesh.sessions[id]?.pulse.roundTripMilliseconds == 70)
  }

  @Test("summaries are compared again and again, one at a time, about every thirty seconds")
  func comparisons() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let start = bench.transcript.count
    func summaries() -> Int { said(bench, start).count { $0 == "summary" } }
    bench.pass(28_000)
    #expect(summaries() == 0)
    bench.pass(3_000)
    #expect(summaries() == 1)
    bench.pass(90_000)
    #expect((3...5).contains(summaries()))
    bench.loseMessages()
    let count = summaries()
    for _ in 0..<200 {
      bench.tick(0, after: 500)
      bench.loseMessages()
      bench.nodes[0].receive(.pong(nonce: 0), on: id)
    }
    #expect((2...5).contains(summaries() - count), "no more often where none is answered")
  }

  private func anySummary(_ digest: UInt64) -> Message {
    .summary(Summary(digest, .digest(digest)))
  }

  @Test("a summary too many does not go to and fro for ever, whether it shows a difference or not")
  func surplusSummary() throws {
    for isEqual in [true, false] {
      let bench = try MeshBench([0, 1])
      try bench.nodes[0].write(0)
      let id = bench.connected(0, 1)
      let start = bench.transcript.count
      func counts() -> [Int] {
        [(0, 1), (1, 0)].map { bench.said(from: $0.0, to: $0.1, since: start).count { $0 == "summary" } }
      }
      let surplus = isEqual ? try #require(bench.messages(from: 1, to: 0).last(where: isSummary)) : anySummary(1)
      for _ in 0..<3 { bench.post(surplus, from: 1, on: id) }
      bench.run()
      let bounded = Comparison.earlyLimit
      try #require(counts()[0] <= bounded && counts()[1] <= bounded + 3, "\(counts())")
      let before = counts()
      bench.pass(95_000)
      #expect(zip(counts(), before).allSatisfy { (2...4).contains($0 - $1) }, "compared as ever")
      try bench.nodes[0].write(1)
      bench.run()
      #expect(bench.nodes[1].holds(bench.nodes[0]) == 2)
    }
  }

  private func isSummary(_ message: Message) -> Bool { if case .summary = message { true } else { false } }

  @Test("of a peer's summaries long before the next is due a few are answered, of those that are due all")
  func earlySummaries() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    func answered(after milliseconds: UInt64) -> Bool {
      bench.now = bench.now.advanced(byMilliseconds: milliseconds)
      let start = bench.transcript.count
      bench.nodes[0].receive(anySummary(0), on: id)
      bench.loseMessages()
      return said(bench, start) == ["summary"]
    }
    let limit = Comparison.earlyLimit
    #expect((0..<limit + 2).map { _ in answered(after: 0) } == (0..<limit + 2).map { $0 < limit })
    #expect(!answered(after: 14_999))
    #expect((0..<20).allSatisfy { _ in answered(after: 15_000) })
    #expect((0..<limit + 1).map { _ in answered(after: 14_999) } == (0..<limit + 1).map { $0 < limit })
  }

  @Test("a peer whose early summary was not answered is, by the next comparison, which begins its portion anew")
  func unansweredSummary() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let limit = Comparison.earlyLimit
    for _ in 0..<limit + 1 { bench.nodes[0].receive(anySummary(0), on: id) }
    bench.loseMessages()
    let start = bench.transcript.count
    for wait in [29_000, 16_001] as [UInt64] {
      bench.nodes[0].receive(.pong(nonce: 0), on: id)
      bench.tick(0, after: wait)
    }
    bench.loseMessages()
    guard case .summary(let question)? = bench.messages(from: 0, to: 1).last else { return #expect(Bool(false)) }
    bench.nodes[0].receive(.summary(Summary(question.number, .equal)), on: id)
    for _ in 0..<limit + 2 { bench.nodes[0].receive(anySummary(0), on: id) }
    #expect(said(bench, start).count { $0 == "summary" } == 1 + limit)
  }

  @Test("what was missed on the way comes with the next comparison")
  func missed() throws {
    let bench = try MeshBench([0, 1])
    _ = bench.connected(0, 1)
    try bench.nodes[0].write(1)
    bench.loseMessages()
    bench.pass(80_000)
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 1)
  }

  // MARK: Relays

  /// Node 1 is connected with node 0, which writes, and node 2, to which it passes on; all streams are open.
  private func chain() throws -> (MeshBench, SessionID) {
    let bench = try MeshBench([0, 1, 2])
    _ = bench.connected(0, 1)
    let second = bench.connected(1, 2)
    try bench.nodes[0].write(0)
    bench.pass(100)
    try #require(bench.nodes[2].holds(bench.nodes[0]) == 1)
    return (bench, second)
  }

  private func relayed(_ bench: MeshBench, _ start: Int) -> Int {
    bench.said(from: 1, to: 2, since: start).count { $0 == "runs" }
  }

  @Test("a run is passed on exactly when its wait is over, counted from the first of those that wait")
  func relay() throws {
    let (bench, _) = try chain()
    let start = bench.transcript.count
    try bench.nodes[0].write(1)
    bench.run()
    let due = bench.now.advanced(byMilliseconds: 40)
    #expect(bench.nodes[1].mesh.nextRelay == due)
    bench.tick(1, after: 39)
    try bench.nodes[0].write(2)
    bench.run()
    #expect(bench.nodes[1].mesh.nextRelay == due && relayed(bench, start) == 0)
    bench.tick(1, after: 1)
    bench.run()
    #expect(relayed(bench, start) == 1 && bench.nodes[2].holds(bench.nodes[0]) == 3)
    #expect(bench.nodes[1].mesh.nextRelay == nil)
  }

  @Test("the shell is told of the earliest relay of all sessions")
  func earliest() throws {
    let bench = try MeshBench([0, 1, 2, 3])
    _ = bench.connected(0, 1)
    let toSecond = bench.connected(2, 1)
    _ = bench.connected(3, 1)
    try bench.nodes[0].write(0)
    bench.pass(100)
    let due = bench.now.advanced(byMilliseconds: 40)
    try bench.nodes[0].write(1)
    bench.run()
    // One of the two asked anew meanwhile, and what is due to it has waited less.
    let held = try #require(bench.nodes[1].state?.clipped)
    bench.nodes[1].receive(.pull(stream: 9, PartitionVector(name: bench.name, vector: held)), on: toSecond)
    bench.now = bench.now.advanced(byMilliseconds: 7)
    try bench.nodes[0].write(2)
    bench.run()
    #expect(bench.nodes[1].mesh.nextRelay == due)
  }

  @Test("a peer that says in time that it has a run is not sent it")
  func announced() throws {
    let (bench, second) = try chain()
    let start = bench.transcript.count
    try bench.nodes[0].write(1)
    bench.run()
    let held = try #require(bench.nodes[1].state?.clipped)
    bench.nodes[1].receive(.have(PartitionVector(name: bench.name, vector: held)), on: second)
    bench.tick(1, after: 100)
    #expect(relayed(bench, start) == 0 && bench.nodes[1].mesh.nextRelay == nil)
  }

  @Test("an own run does not overtake runs of others that it has seen and that wait to be passed on")
  func overtaking() throws {
    let (bench, _) = try chain()
    try bench.nodes[0].write(1)
    bench.run()
    try bench.nodes[1].write(2)
    bench.pass(100)
    #expect(bench.nodes[2].log.map(\.replica).suffix(2) == [bench.nodes[0].replica, bench.nodes[1].replica])
    #expect(bench.nodes[2].mesh.sessions.count == 1)
  }

  @Test("a relay goes with the stream that it is due on")
  func closedStream() throws {
    let (bench, second) = try chain()
    try bench.nodes[0].write(1)
    bench.run()
    bench.nodes[1].receive(.interestChange(added: Interest(), removed: bench.fleet.interest("*")), on: second)
    #expect(bench.nodes[1].mesh.nextRelay == nil)
  }

  @Test("a new pull takes the place of a relay that is due")
  func pulled() throws {
    // By who lacks the run, and by who has it from elsewhere.
    for slot in [2, 1] {
      let (bench, second) = try chain()
      try bench.nodes[0].write(1)
      bench.run()
      let held = try #require(bench.nodes[slot].state?.clipped)
      bench.nodes[1].receive(.pull(stream: 9, PartitionVector(name: bench.name, vector: held)), on: second)
      #expect(bench.nodes[1].mesh.nextRelay == nil)
    }
  }
}
