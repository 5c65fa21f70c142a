import Identity
import Testing
import Wire

@testable import Engine
@testable import Replication

/// A replica belongs to one membership for ever; the device's right may be that of another one (rule C20).
@Suite("A device whose present replica may not write") struct BoundedReplicaTests {
  private let room: PartitionName
  private let own: PartitionName
  init() throws { (room, own) = try (PartitionName("room=1"), PartitionName("room=2")) }

  /// Nobody but officers may write, in one room, and nobody but masters in the other. All know what the root has said.
  private func bench() throws -> EngineBench {
    let bench = try EngineBench(2)
    try tell(bench, bench.grant(.carry))
    for (role, room) in [("officer", own), ("master", room)] {
      try tell(
        bench,
        bench.statement(.grant(Statement.Grant(subject: .role(Text(role)), level: .write, pattern: room.text))))
    }
    for node in bench.nodes { try node.subscribe("room=*") }
    return bench
  }

  private func tell(_ bench: EngineBench, _ statement: Statement) {
    for node in bench.nodes { node.engine.turn([.call { $0.add([statement]) }]) }
  }

  @Test("what it writes by a right of another membership counts everywhere, under another replica id")
  func promoted() throws {
    let bench = try bench()
    let node = bench.nodes[1]
    try node.write(own, Put("before"))
    let first = try #require(node.state.own.replica).id
    #expect(throws: EngineError.self) { try node.write(room, Put("early")) }
    try tell(bench, bench.membership(of: node.key.publicKey, label: "master", role: "master"))
    try node.write(room, Put("after"))
    bench.meet(1, 0)
    bench.advance(2_000)
    #expect(node.state.own.replica?.id != first)
    for node in bench.nodes {
      #expect(node.accepted(room).entries.values.map(\.sequence) == [1])
      #expect(node.accepted(own).entries.values.map(\.sequence) == [1])
    }
    try node.write(room, Put("again"))
    #expect(node.state.own.sequence(in: node.id(of: room)) == 2, "and goes on under that one")
  }

  @Test("a commit that writes in several partitions closes what is open under the old replica id first") func several()
    throws
  {
    let bench = try bench()
    let node = bench.nodes[1]
    try node.write(own, Put("before"))
    try tell(bench, bench.membership(of: node.key.publicKey, label: "master", role: "master"))
    let (one, two) = (node.job(own, [Put("one")]), node.job(room, [Put("two")]))
    node.engine.turn([.write(one.0), .write(two.0)])
    for answer in [one.1, two.1] { _ = try answer.get() }
    bench.meet(1, 0)
    bench.advance(2_000)
    for node in bench.nodes {
      #expect(node.accepted(own).entries.values.map(\.sequence) == [2])
      #expect(node.accepted(room).entries.values.map(\.sequence) == [1])
    }
  }

  @Test("with rights of two memberships it writes here and there under two replica ids, and draws no other")
  func byTurns()
    throws
  {
    let bench = try bench()
    try bench.nodes[1].write(own, Put("before"))
    try tell(bench, bench.membership(of: bench.nodes[1].key.publicKey, label: "master", role: "master"))
    for turn in 0..<3 {
      for room in [room, own] { try bench.nodes[1].write(room, Put(Text("\(turn)"))) }
    }
    bench.meet(1, 0)
    for node in bench.nodes {
      #expect(node.accepted(room).entries.values.map(\.sequence) == [3])
      #expect(node.accepted(own).entries.values.map(\.sequence) == [4])
    }
    #expect(bench.nodes[1].mark.saved?.replica == bench.nodes[1].state.own.replica)
    try bench.restart(1)
    #expect(
      bench.nodes[1].state.own.causes.isEmpty && bench.nodes[1].state.own.sequence(in: bench.nodes[1].id(of: own)) == 4)
  }

  @Test("ten starts by turns, after as many losses of power, cost no other replica id") func byTurnsOverStarts() throws
  {
    let bench = try bench()
    try bench.nodes[1].write(own, Put("before"))
    try tell(bench, bench.membership(of: bench.nodes[1].key.publicKey, label: "master", role: "master"))
    for turn in 0..<10 {
      try bench.restart(1)
      try bench.nodes[1].write(turn % 2 == 0 ? room : own, Put(Text("\(turn)")))
    }
    #expect(replicaCount(bench) == 2)
    bench.meet(1, 0)
    for node in bench.nodes {
      #expect(node.accepted(room).entries.values.map(\.sequence) == [5])
      #expect(node.accepted(own).entries.values.map(\.sequence) == [6])
    }
  }

  /// It has written in both rooms, under an id each: that of the second is the present one. With whom it is linked.
  private func turned() throws -> (EngineBench, SessionID) {
    let bench = try bench()
    try bench.nodes[1].write(own, Put("before"))
    try tell(bench, bench.membership(of: bench.nodes[1].key.publicKey, label: "master", role: "master"))
    try bench.nodes[1].write(room, Put("before"))
    return (bench, bench.meet(1, 0))
  }

  /// The peer names more of the chain that the second node has in the room.
  private func claim(_ bench: EngineBench, _ session: SessionID, in name: PartitionName) throws {
    let replica = try #require(bench.nodes[1].accepted(name).entries.keys.first)
    let vector = VersionVector([replica: ChainPosition(sequence: 9, tip: TipHash(high: 1, low: 2))])
    bench.nodes[1].engine.turn([
      .message(session, .have(PartitionVector(name: name, vector: vector)), byteCount: 10)
    ])
  }

  @Test("whoever names more of what was written under an id that rests is waited for before it is gone on under")
  func claimOnResting() throws {
    let (bench, session) = try turned()
    try claim(bench, session, in: own)
    let (job, answer) = bench.nodes[1].job(own, [Put("after")])
    bench.nodes[1].engine.turn([.write(job)])
    #expect(answer.count == 0)
    try bench.nodes[1].write(room, Put("meanwhile"))
    bench.advance(OwnChainClaims.holdMilliseconds)
    #expect(try answer.get().dot?.sequence == 2)
  }

  @Test("what waits for a claim waits on where the device goes on under another of its ids meanwhile")
  func claimOverTurn() throws {
    let (bench, session) = try turned()
    try claim(bench, session, in: room)
    let (job, answer) = bench.nodes[1].job(room, [Put("after")])
    bench.nodes[1].engine.turn([.write(job)])
    try bench.nodes[1].write(own, Put("meanwhile"))
    bench.nodes[1].engine.turn([])
    #expect(answer.count == 0)
    bench.advance(OwnChainClaims.holdMilliseconds)
    #expect(try answer.get().dot?.sequence == 2)
    #expect(replicaCount(bench) == 2)
  }

  @Test("where a copy has gone on under an id that rests, this store goes on under none that it had")
  func copyUnderResting() throws {
    let (bench, session) = try turned()
    bench.cut(session)
    let copy = try bench.clone(1)
    let known = bench.nodes[1].state.mesh.authority.replicas(of: bench.nodes[1].key.publicKey)
    try bench.nodes[copy].write(own, Put("copy"))
    for slot in [copy, 1] { bench.cut(bench.meet(slot, 0)) }
    for name in [room, own] {
      try bench.nodes[1].write(name, Put("after"))
      #expect(try !known.contains(#require(bench.nodes[1].state.own.replica?.id)))
      bench.clock.advance(OwnReplica.renewalMilliseconds)
    }
    for name in [room, own] {
      let log = try #require(bench.nodes[1].state.mesh.partitions[bench.nodes[1].id(of: name)]?.log)
      #expect(log.forkPoints.isEmpty)
    }
  }

  private func replicaCount(_ bench: EngineBench) -> Int {
    bench.nodes[1].state.mesh.authority.replicas(of: bench.nodes[1].key.publicKey).count
  }

  @Test("where the disk takes nothing of such a turn, it may be tried again under the id that it had left")
  func refusedTurn() throws {
    let bench = try bench()
    try bench.nodes[1].write(own, Put("before"))
    try tell(bench, bench.membership(of: bench.nodes[1].key.publicKey, label: "master", role: "master"))
    try bench.nodes[1].write(room, Put("before"))
    try bench.nodes[1].refuse("INSERT", on: "runs")
    #expect(throws: (any Error).self) { try bench.nodes[1].write(own, Put("refused")) }
    try bench.nodes[1].allow("runs")
    try bench.nodes[1].write(own, Put("after"))
    try bench.restart(1)
    try bench.nodes[1].write(room, Put("after"))
    #expect(replicaCount(bench) == 2)
  }

  @Test(
    "an id that it had left is not gone on under where somebody else wrote under it meanwhile, also after a start",
    arguments: [false, true])
  func elsewhere(startsAgain: Bool) throws {
    let bench = try bench()
    try bench.nodes[1].write(own, Put("before"))
    let copy = try bench.clone(1)
    try tell(bench, bench.membership(of: bench.nodes[1].key.publicKey, label: "master", role: "master"))
    let first = bench.nodes[1].state.own.replica
    try bench.nodes[1].write(room, Put("one"))
    try bench.nodes[copy].write(own, Put("copy"))
    #expect(bench.nodes[copy].state.own.replica == first)
    for slot in [copy, 1] { bench.cut(bench.meet(slot, 0)) }
    bench.clock.advance(OwnReplica.renewalMilliseconds)
    if startsAgain { try bench.restart(1) }
    try bench.nodes[1].write(own, Put("two"))
    #expect(bench.nodes[1].state.own.replica != first)
    bench.meet(1, 0)
    bench.advance(2_000)
    #expect(bench.nodes[0].accepted(own).entries.values.map(\.sequence).sorted() == [1, 2])
  }

  @Test("within a minute of another renewal such a write is refused as one for which the node is busy") func often()
    throws
  {
    let bench = try bench()
    let (node, other) = (bench.nodes[1], try PartitionName("room=3"))
    try tell(
      bench,
      bench.statement(.grant(Statement.Grant(subject: .role("pilot"), level: .write, pattern: other.text))))
    try node.write(own, Put("before"))
    for role in ["master", "pilot"] as [Text] {
      try tell(bench, bench.membership(of: node.key.publicKey, label: role, role: role))
    }
    try node.write(room, Put("one"))
    #expect(throws: EngineError.otherMembershipLately(other, seconds: 60)) { try node.write(other, Put("two")) }
    bench.clock.advance(OwnReplica.renewalMilliseconds)
    try node.write(other, Put("two"))
    bench.meet(1, 0)
    bench.advance(2_000)
    #expect(bench.nodes[0].accepted(other).entries.values.map(\.sequence) == [1])
  }

  @Test("where the disk refuses the first of them, nothing is left of the new id's declaration") func refused() throws {
    let bench = try bench()
    try bench.nodes[1].write(own, Put("before"))
    bench.meet(1, 0)
    try tell(bench, bench.membership(of: bench.nodes[1].key.publicKey, label: "master", role: "master"))
    try bench.nodes[1].refuse("INSERT", on: "runs")
    #expect(throws: (any Error).self) { try bench.nodes[1].write(room, Put("refused")) }
    try bench.nodes[1].allow("runs")
    try bench.nodes[1].write(room, Put("after"))
    bench.run()
    try bench.restart(1)
    bench.meet(1, 0)
    for node in bench.nodes { #expect(node.accepted(room).entries.values.map(\.sequence) == [1]) }
  }

  @Test("a rule that lets it write its user's own document alone is no reason to stay under the present id")
  func ownDocument()
    throws
  {
    let bench = try EngineBench(2)
    let cards = try PartitionName("all-users=x")
    for node in bench.nodes { try node.subscribe("all-users=*") }
    let node = bench.nodes[1]
    try node.write(own, Put("before"))
    try tell(
      bench,
      bench.statement(
        .grant(Statement.Grant(subject: .role("master"), level: .write, pattern: "all-users=*"))))
    try tell(bench, bench.membership(of: node.key.publicKey, label: "master", role: "master"))
    try node.write(cards, Put("somebody"))
    bench.meet(1, 0)
    for node in bench.nodes { #expect(node.accepted(cards).entries.values.map(\.sequence) == [1]) }
  }

  @Test("a device that was let in again writes under its new membership, also where the end spared the old one")
  func again()
    throws
  {
    let bench = try bench()
    let (node, other) = (bench.nodes[1], try PartitionName("room=3"))
    for (role, room) in [("officer", other), ("master", other)] {
      try tell(
        bench,
        bench.statement(.grant(Statement.Grant(subject: .role(Text(role)), level: .write, pattern: room.text))))
    }
    try node.write(own, Put("before"))
    let authority = node.state.mesh.authority
    let first = try #require(authority.member(of: node.key.publicKey))
    let tip = try #require(authority.lastStatement(of: node.key.publicKey))
    let listing = Statement.Listing(tips: [
      Statement.ScopeTips(
        scope: "", tips: [Statement.Tip(issuer: node.key.publicKey, sequence: tip.sequence, id: tip.id)])
    ])
    try tell(
      bench, bench.statement(.end(Statement.End(reason: .retire, target: .membership(first.id), listing: listing))))
    try tell(bench, bench.membership(of: node.key.publicKey, label: "master", role: "master"))
    let before = try #require(node.state.own.replica).id
    try node.write(other, Put("after"))
    let now = try #require(node.state.own.replica).id
    #expect(before != now && node.state.mesh.authority.mayWriteOn(as: now, in: other))
  }

  @Test("a device whose statements are used up is told so, and nothing is acknowledged that would count nowhere")
  func full()
    throws
  {
    let bench = try bench()
    let node = bench.nodes[1]
    try node.write(own, Put("before"))
    try tell(bench, bench.membership(of: node.key.publicKey, label: "master", role: "master"))
    let author = HostileAuthor(bench, slot: 1)
    for statement in try author.declare(AdmittedStatements.limit) { tell(bench, statement) }
    #expect(throws: EngineError.tooManyStatements) { try node.write(room, Put("after")) }
    try node.write(own, Put("still"))
  }
}
