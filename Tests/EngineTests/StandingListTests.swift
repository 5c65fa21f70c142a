import Identity
import Replication
import Storage
import Testing
import Wire

@testable import Engine

/// What the end of a device lists that was stolen: how far its chains had come by a moment, whatever came since.
@Suite struct StandingListTests {
  private let room: PartitionName
  private let bench: EngineBench
  private let chain: ReplicaID
  /// After six changes of node 1 had come to the admin's node.
  private let moment: Int64
  private let thief: HostileAuthor

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
    thief = HostileAuthor(bench, slot: 1)
  }

  // MARK: What comes

  private func honest(_ sequence: UInt64) throws -> Digest {
    let runs = try LogReader(bench.nodes[1].state).summaries(bench.nodes[1].id(of: room), chain, from: sequence)
    return try #require(runs.lazy.compactMap { $0.hash(at: sequence) }.first)
  }

  private func position(_ sequence: UInt64) throws -> ChainPosition {
    ChainPosition(sequence: sequence, tip: try honest(sequence).tip)
  }

  /// A run of the thief's beside honest changes.
  private func rival(after sequence: UInt64, count: Int = 2, isLower: Bool) throws -> Run {
    let (before, beside) = (try honest(sequence), try honest(sequence + 1))
    for word in 1...1_000 as ClosedRange<Int64> {
      let run = try thief.run(room, chain, count: count, fork: (sequence, before, word))
      if (run.hashes[0] < beside) == isLower { return run }
    }
    throw Unlucky()
  }

  private struct Unlucky: Error {}

  private func take(_ run: Run) throws {
    let decoder = FrameDecoder(fleet: admin.state.identity.fleet, admin.state.identity.cryptography)
    let inspected = try decoder.inspect(
      RunCodec.encode(run), context: run.record.context, in: room, under: admin.state.mesh.authority
    ) { _ in [] }
    admin.engine.turn([.ledgerRun(room, inspected.delivered)])
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

  private func carryOut(_ plan: RightsPlan) throws {
    let author = author
    let call = EngineEvent.call { engine in
      #expect(throws: Never.self) { try engine.carryOut(plan, authors: [author]) }
    }
    admin.engine.turn([call])
  }

  private func shows(_ id: Text) throws -> Bool { try admin.shown(room, id) != nil }

  // MARK: Forked

  @Test(
    "what a thief signs beside honest changes takes none of them, whichever branch counts, nor after a restart",
    arguments: [false, true], [false, true])
  func rival(isLower: Bool, restarts: Bool) throws {
    try take(try rival(after: 4, isLower: isLower))
    #expect(try shows("h") == isLower && shows("good5") != isLower)
    if restarts { try bench.restart(0) }
    let plan = try plan(try arrived())
    #expect(try listed(plan) == [try position(6)])
    let fall = try fall(plan)
    #expect(fall.lostChanges == (isLower ? 2 : 0) && fall.gainedChanges == (isLower ? 2 : 0))
    #expect(fall.documents == (isLower ? 3 : 0))
    try carryOut(plan)
    #expect(try !shows("h") && shows("good4") && shows("good5") && shows("good6"))
    #expect(admin.accepted(room)[chain] == (try position(6)))
    try bench.restart(0)
    #expect(admin.accepted(room)[chain] == (try position(6)))
  }

  @Test("what came since on the honest branch falls, and the preview counts no document of branches that never counted")
  func both() throws {
    let before = try position(6)
    try goOn("late7", "late8")
    try take(try rival(after: 6, count: 3, isLower: false))
    let plan = try plan(try arrived())
    #expect(try listed(plan) == [before])
    let fall = try fall(plan)
    #expect(fall.lostChanges == 2 && fall.gainedChanges == 0 && fall.documents == 2)
    try carryOut(plan)
    #expect(try shows("good6") && !shows("late7") && !shows("h"))
  }

  @Test("a run that says again what had come, and goes on otherwise, does not hide that it had")
  func repeated() throws {
    var builder = RunBuilder(
      chain: ChainIdentity(fleet: admin.state.identity.fleet, partition: admin.id(of: room), replica: chain), after: 4,
      hashBefore: try honest(4), context: VersionVector(), hash: admin.state.identity.cryptography.hash)
    let stored = try #require(bench.nodes[1].rows(room, chain).first { $0.last == 5 })
    let again = try RunReader(bench.nodes[1].state.identity).content(
      stored, in: admin.id(of: room), bench.nodes[1].store)
    let header = try #require(again.contents.first).header
    let payload = Array(try #require(again.contents.first).payload)
    for wall in [header.wall, WallTime(milliseconds: 7)] {
      builder.append(
        payload: payload, keyHashes: header.keyHashes, timestamp: header.timestamp, wall: wall, codec: .plain)
    }
    let run = builder.close(sign: bench.nodes[1].key.sign)
    try #require(try run.hashes[0] == honest(5))
    try take(run)
    #expect(try listed(try plan(try arrived())) == [try position(6)])
  }

  @Test("a chain of which nothing had come is listed at 0, forked or not", arguments: [false, true])
  func nothing(isForked: Bool) throws {
    if isForked { try take(try rival(after: 4, isLower: true)) }
    let before = try arrived(before: 1)
    #expect(try listed(try plan(before, .revoke)) == [.start])
    let plan = try plan(before)
    #expect(try listed(plan).allSatisfy { $0 == .start })
    #expect(try fall(plan).lostChanges == 6)
    try carryOut(plan)
    #expect(try !shows("good1") && !shows("h"))
  }

  @Test("a thief who closes the chain at his branch, or at one that had come, chooses none by that")
  func closed() throws {
    // Two histories had come; the one that counts has the lower hash.
    let rival = try rival(after: 4, isLower: false)
    try take(rival)
    let moment = bench.clock.wallMilliseconds
    bench.advance(1_000)
    let last = ChainPosition(sequence: rival.record.last, tip: rival.record.hashAtLast.tip)
    let ends = [
      Statement.PartitionEnds(
        partition: room.text, chains: [Statement.ChainEnd(replica: chain, position: last)])
    ]
    let close = try thief.sign(
      .end(Statement.End(reason: .close, target: .replica(chain), listing: Statement.Listing(ends: ends))))
    let session = bench.connect(1, 0)
    bench.run()
    thief.say([.statements([close.encoded])], to: 0, on: session)
    try #require(admin.accepted(room)[chain] == last)
    let plan = try plan(try arrived(before: moment))
    #expect(try listed(plan) == [try position(6)])
    try carryOut(plan)
    #expect(try shows("good6") && !shows("h"))
  }

  // MARK: Since the log was read

  @Test("what comes between the reading of the log and the plan came after the moment")
  func between() throws {
    let (before, end) = (try arrived(), try position(6))
    try goOn("late7")
    #expect(try shows("late7"))
    let plan = try plan(before)
    #expect(try listed(plan) == [end] && fall(plan).lostChanges == 1)
  }

  @Test("so did a branch, and a chain of which nothing had come before", arguments: [false, true])
  func branchBetween(isLower: Bool) throws {
    let (before, end) = (try arrived(), try position(6))
    let replica = try thief.declare(1)
    let session = bench.connect(1, 0)
    bench.run()
    thief.say([.statements(replica.map(\.encoded))], to: 0, on: session)
    try take(try thief.run(room, thief.replicas[0]))
    try take(try rival(after: 4, isLower: isLower))
    let plan = try plan(before, .revoke)
    #expect(try listed(plan) == [end])
    guard case .end(let content)? = plan.statements.first?.body else { return }
    let others = content.listing.ends.flatMap(\.chains).filter { $0.replica != chain }
    #expect(others.map(\.replica) == thief.replicas && others.allSatisfy { $0.position == .start })
  }
}
