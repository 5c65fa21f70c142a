import Identity
import Replication
import Storage
import Testing

@testable import Engine

/// What the end of a device lists that was stolen: how far its chains had come by a moment, whatever came since.
@Suite struct StandingListTests {
  private let room: PartitionName
  private let bench: EngineBench
  private let chain: ReplicaID
  /// After six changes of node 1 had come to the admin's node.
  private let moment: Int64

  private var admin: BenchNode { bench.nodes[0] }
  private var author: StatementAuthor { StatementAuthor(key: admin.key.publicKey, sign: admin.key.sign) }

  init() throws {
    (room, bench) = (try PartitionName("room=1"), try EngineBench(2))
    for node in bench.nodes { try node.subscribe("room=*") }
    for number in 1...6 { try bench.nodes[1].write(room, Put(Text("good\(number)"))) }
    bench.cut(bench.meet(1, 0))
    moment = bench.clock.wallMilliseconds
    bench.advance(1_000)
    chain = try #require(bench.nodes[1].state.own.replica).id
  }

  // MARK: What comes

  private func honest(_ sequence: UInt64) throws -> Digest {
    let runs = try LogReader(bench.nodes[1].state).summaries(bench.nodes[1].id(of: room), chain, from: sequence)
    return try #require(runs.lazy.compactMap { $0.hash(at: sequence) }.first)
  }

  private func position(_ sequence: UInt64) throws -> ChainPosition {
    ChainPosition(sequence: sequence, tip: try honest(sequence).tip)
  }

  private func goOn(_ ids: Text...) throws {
    for id in ids { try bench.nodes[1].write(room, Put(id)) }
    bench.cut(bench.meet(1, 0))
  }

  // MARK: What is listed

  private func arrived(before moment: Int64? = nil) throws -> ArrivedBefore {
    try admin.store.store.arrived(before: moment ?? self.moment)
  }

  private func plan(_ before: ArrivedBefore, _ manner: RightsRequest.EndManner = .compromised) throws -> RightsPlan {
    try admin.engine.plan(.end(bench.nodes[1].key.publicKey, manner, before), authors: [author])
  }

  private func listed(_ plan: RightsPlan) throws -> [ChainPosition] {
    guard case .end(let end)? = plan.statements.first?.body else { return [] }
    return end.listing.ends.flatMap(\.chains).filter { $0.replica == chain }.map(\.position)
  }

  private func fall(_ plan: RightsPlan) throws -> PartitionFall { try #require(plan.falls.first { $0.name == room }) }

  private func shows(_ id: Text) throws -> Bool { try admin.shown(room, id) != nil }

  // MARK: Since the log was read

  @Test("what comes between the reading of the log and the plan came after the moment")
  func between() throws {
    let (before, end) = (try arrived(), try position(6))
    try goOn("late7")
    #expect(try shows("late7"))
    let plan = try plan(before)
    #expect(try listed(plan) == [end] && fall(plan).lostChanges == 1)
  }
}
