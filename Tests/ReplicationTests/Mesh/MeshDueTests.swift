import Testing

@testable import Replication
@testable import Simulation

@Suite("What is done between two ticks")
struct MeshDueTests {
  /// Node 1 is linked with both others, which are not linked with one another.
  private func chain() throws -> (MeshBench, SessionID) {
    let bench = try MeshBench([0, 1, 2])
    let first = bench.connected(0, 1)
    _ = bench.connected(1, 2)
    try bench.nodes[0].write(0)
    bench.pass(3_000)
    try #require(bench.nodes[2].holds(bench.nodes[0]) == 1)
    return (bench, first)
  }

  /// At the earliest time at which node 1 has something to say by itself. Answers what it says, to node 0 and to node 2.
  private func due(_ bench: MeshBench) throws -> [[String]] {
    let start = bench.transcript.count
    let deadline = try #require(bench.nodes[1].mesh.nextDeadline)
    bench.now = max(bench.now, deadline)
    bench.nodes[1].deliver(.due)
    bench.run()
    return [0, 2].map { bench.said(from: 1, to: $0, since: start) }
  }

  @Test("what has waited is passed on, and then announced to who brought it, each at its time and without a tick")
  func inTime() throws {
    let (bench, _) = try chain()
    let start = bench.now
    try bench.nodes[0].write(1)
    bench.run()
    #expect(try due(bench) == [[], ["runs"]])
    #expect(bench.now == start.advanced(byMilliseconds: bench.nodes[1].mesh.configuration.relayMilliseconds))
    #expect(try due(bench) == [["have"], []])
    #expect(bench.now == start.advanced(byMilliseconds: bench.nodes[1].mesh.configuration.gatherMilliseconds))
  }

  @Test("a deadline that is done with is none any more, so that nobody wakes for it again")
  func doneWith() throws {
    let (bench, _) = try chain()
    try bench.nodes[0].write(1)
    bench.run()
    var wakes = 0
    while bench.nodes[1].mesh.nextDeadline != nil, wakes < 10 {
      _ = try due(bench)
      wakes += 1
    }
    #expect(wakes == 3, "passed on, announced to who brought it, and to the other")
  }

  @Test("what is not due yet is not done, and silence is for ticks to notice")
  func nothingElse() throws {
    let (bench, _) = try chain()
    try bench.nodes[0].write(1)
    bench.run()
    let start = bench.transcript.count
    bench.nodes[1].deliver(.due)
    #expect(bench.said(from: 1, to: 0, since: start).isEmpty && bench.said(from: 1, to: 2, since: start).isEmpty)
    _ = try (due(bench), due(bench), due(bench))
    bench.now = bench.now.advanced(byMilliseconds: bench.nodes[1].mesh.configuration.pingMilliseconds)
    let silent = bench.transcript.count
    bench.nodes[1].deliver(.due)
    #expect(bench.said(from: 1, to: 0, since: silent).isEmpty)
    bench.nodes[1].deliver(.tick)
    #expect(!bench.said(from: 1, to: 0, since: silent).isEmpty)
  }
}
