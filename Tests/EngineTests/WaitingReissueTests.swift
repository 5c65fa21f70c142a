import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// A device's own lost writes that it cannot issue again as they came, since a run of the log does not read.
@Suite struct WaitingReissueTests {
  private let room: PartitionName
  private let bench: EngineBench
  private let replica: ReplicaID

  /// All nodes have what node 0 wrote first, under the replica that forks.
  init() throws {
    (room, bench) = (try PartitionName("room=1"), try EngineBench(3))
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("before"))
    for slot in [1, 2] { bench.cut(bench.meet(0, slot)) }
    replica = try #require(bench.nodes[0].state.own.replica).id
  }

  /// A document with a list of maps, which are edited one by one.
  private struct Listed: DocumentEdit {
    let id: Value
    let item: ValueMap
    var collection: Text { Put.collection }

    init(_ id: Text, _ item: ValueMap) { (self.id, self.item) = (.string(id), item) }

    func outcome(on present: PresentDocument) -> DocumentOutcome {
      .body(map(["list": .array([.map(item)])]), hints: WriteHints([([.key("list")], .list(key: nil))]))
    }
  }

  private func tip(_ slot: Int) throws -> Digest {
    try #require(bench.nodes[slot].state.own.tip(in: bench.nodes[slot].id(of: room)))
  }

  private func issues(_ slot: Int) -> Int {
    bench.nodes[slot].journal.lines.count { $0.message.hasPrefix("issues again") }
  }

  // MARK: What waits

  /// Copies that each wrote a list under the first replica, by the hashes of what they wrote: the first one's counts.
  private func threeHistories() throws -> [Int] {
    let copies = [0, try bench.clone(0), try bench.clone(0)]
    for slot in copies {
      try bench.nodes[slot].write(room, Listed(Text("of\(slot)"), map(["n": .int(BenchNode.number)])))
    }
    let tips = try copies.map(tip)
    return zip(copies, tips).sorted { $0.1 < $1.1 }.map(\.0)
  }

  /// Copies of a node, of which each writes something of its own; the one whose write has the lowest hash.
  private func rival(of slot: Int) throws -> Int {
    let copies = try (0..<6).map { _ in try bench.clone(slot) }
    for copy in copies { try bench.nodes[copy].write(room, Put("rival", Int64(copy))) }
    let tips = try copies.map(tip)
    return try #require(zip(copies, tips).min { $0.1 < $1.1 }?.0)
  }

  @Test("what has to wait for a run that does not read is not looked at again and again, and goes in once that reads")
  func waiting() throws {
    let histories = try threeHistories()
    let (winner, own, third) = (histories[0], histories[1], histories[2])
    for slot in [winner, own] { bench.cut(bench.meet(slot, 1)) }
    try bench.nodes[own].write(room, Put("renewed"))
    let renewed = try #require(bench.nodes[own].state.own.replica).id
    try #require(renewed != replica)
    let rival = try rival(of: own)
    let node = bench.nodes[own]

    // Of the third history its device learns now, issues that again, and goes on from its list.
    bench.cut(bench.meet(third, 2))
    bench.cut(bench.meet(own, 2))
    let id = Text("of\(third)")
    try #require(try node.shown(room, id) != nil && node.state.own.replica?.id == renewed)
    try #require(try tip(rival) < tip(own))
    try node.write(room, Listed(id, map(["n": .int(BenchNode.number), "edited": .int(1)])))
    let body = try #require(try bench.nodes[third].rows(room, replica).last).body
    try node.flip(room, replica) { $0.body == body }

    // The re-issue is lost as well, with what stands on it.
    let late = try bench.addMember()
    try bench.nodes[late].subscribe("room=*")
    bench.cut(bench.meet(rival, late))
    bench.advance(OwnReplica.renewalMilliseconds)
    bench.cut(bench.meet(own, late))
    try node.write(room, Put("goes on"))
    try #require(node.state.own.replica?.id != renewed && !Reissue.owed(in: node.state).isEmpty)
    try bench.say(try bench.grant(.write), to: own)
    let (before, transactions) = (issues(own), node.trace.commits)
    for _ in 0..<20 { bench.advance(500) }
    #expect(issues(own) - before <= 1 && node.trace.commits - transactions <= 3)
    #expect(!Reissue.owed(in: node.state).isEmpty)

    bench.meet(own, 2)
    bench.catchUp(60)
    #expect(node.state.damagedRuns.isEmpty && Reissue.owed(in: node.state).isEmpty)
    let item = Value.map(map(["n": .int(BenchNode.number), "edited": .int(1)]))
    #expect(try node.shown(room, id) == map(["list": .array([item])]))
  }

  // MARK: In which order

  /// One that puts the number into the document, however it was before.
  private func append(_ id: Text, _ n: Int64, wall: Int64 = 0, to builder: inout RunBuilder) throws {
    let write = DocumentWrite(
      collection: Put.collection, id: .string(id), kind: .create, generation: 1,
      operations: [Operation(.set, [.key("n")], value: .int(n))])
    let payload = PayloadEncoder.encode([write], dot: builder.nextDot)
    let change = try ComposedChange(
      WriteContext(dot: builder.nextDot, timestamp: .zero, context: builder.context),
      wall: WallTime(milliseconds: wall), payload: payload, in: builder.chain, SHA256.hash)
    builder.append(payload: payload, keyHashes: change.keyHashes, timestamp: .zero, wall: change.wall)
  }

  private func deliver(_ builder: RunBuilder, to node: BenchNode) throws {
    let run = builder.close(sign: node.state.identity.cryptography.sign)
    let decoder = FrameDecoder(fleet: node.state.identity.fleet, node.state.identity.cryptography)
    let inspected = try decoder.inspect(
      RunCodec.encode(run), context: run.record.context, in: room, under: node.state.mesh.authority
    ) { _ in [] }
    node.engine.turn([.ledgerRun(room, inspected.delivered)])
  }

  private func say(_ statement: Statement, at node: BenchNode) { node.engine.turn([.call { $0.add([statement]) }]) }

  @Test("a change whose first run does not read is taken from a later one, and goes before what has seen it")
  func order() throws {
    let node = bench.nodes[0]
    try node.write(room, Put("counts"))
    let counts = try tip(0)
    let common = try RunReader(node.state.identity).decode(
      try #require(try node.rows(room, replica).first), in: node.id(of: room))
    say(try bench.grant(.read, ends: try bench.ends([room: [replica: 2]])), at: node)

    func behindCommon(_ wall: Int64) throws -> RunBuilder {
      var builder = RunBuilder(
        chain: common.chain, after: 1, hashBefore: common.hashAtLast, context: VersionVector(), hash: SHA256.hash)
      try append("doc", BenchNode.number, wall: wall, to: &builder)
      return builder
    }
    let first = try #require(try (1...64).lazy.map(behindCommon).first { $0.lastHash > counts })
    var both = first
    var newer = RunBuilder(
      chain: common.chain, after: 2, hashBefore: first.lastHash, context: VersionVector(), hash: SHA256.hash)
    try append("other", 1, to: &both)
    try append("doc", 2, to: &newer)
    for builder in [first, newer, both] { try deliver(builder, to: node) }
    let rows = try node.rows(room, replica).sorted { $0.arrival < $1.arrival }
    try #require(rows.map(\.last) == [1, 2, 2, 3, 3] && rows.map(\.first) == [1, 2, 2, 3, 2])
    try node.flip(room, replica) { $0.arrival == rows[2].arrival }

    say(try bench.grant(.write), at: node)
    let reissues = try node.store.reissues(in: node.id(of: room)).sorted { $0.dot < $1.dot }
    let origins = reissues.map(\.origin.hash)
    #expect(origins == [first.lastHash, both.lastHash, newer.lastHash])
    try node.overwrite(rows[2])
    bench.advance(LogScrub.passMilliseconds)
    bench.advance(500)
    #expect(try node.shown(room, "doc") == map(["n": .int(2)]))
  }
}
