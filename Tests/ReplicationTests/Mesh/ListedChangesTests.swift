import Testing

@testable import Replication

/// What changes while two compare what they hold, in a partition that was level between them.
@Suite struct ListedChangesTests {
  /// Four in a row; all hold the first change of each of the first three, and no stream is open.
  private func level() throws -> (bench: MeshBench, sessions: [SessionID]) {
    let bench = try MeshBench([0, 1, 2, 3])
    let links = (0..<3).map { bench.connected($0, $0 + 1) }
    for slot in 0..<3 { try bench.nodes[slot].write(1) }
    bench.pass(10_000)
    links.forEach(bench.cut)
    let sessions = (0..<3).map { bench.connected($0, $0 + 1) }
    bench.pass(3_000)
    for slot in 0..<4 { try #require(bench.nodes.prefix(3).allSatisfy { bench.nodes[slot].holds($0) == 1 }) }
    return (bench, sessions)
  }

  @Test("what comes behind the question and before partitions are listed goes out at the end")
  func beforeListing() throws {
    let (bench, sessions) = try level()
    func session(at slot: Int) -> LiveSession? { bench.nodes[slot].mesh.sessions[sessions[1]]?.live }
    func isUnderWay(_ slot: Int) -> Bool { session(at: slot)?.comparison.isUnderWay == true }
    for _ in 0..<4_000 where !isUnderWay(1) && !isUnderWay(2) {
      bench.run()
      for slot in 0..<4 { bench.tick(slot, after: 20) }
    }
    let (node, peer) = isUnderWay(1) ? (1, 2) : (2, 1)
    try #require(isUnderWay(node) && session(at: node)?.streams.isEmpty == true)
    // From beyond the two. The peer has something new as well, so that they come to list partitions.
    let author = bench.nodes[node == 1 ? 0 : 3]
    try author.write(2)
    try bench.nodes[peer].write(2)
    bench.pass(1_000)
    #expect(bench.nodes[peer].holds(author) == (node == 1 ? 2 : 1))
    #expect(!isUnderWay(1) && !isUnderWay(2))
  }
}
