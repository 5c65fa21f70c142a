import Identity
import Replication
import TestSupport
import Testing

@testable import Engine

/// Forks as documents show them.
@Suite struct EngineForkTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  private func state(_ node: BenchNode, _ id: Text) throws -> [UInt8]? {
    try node.store.document(DocumentKey(collection: Put.collection, id: .string(id)), in: node.id(of: room))?.state
  }

  private func log(_ node: BenchNode) throws -> PartitionLog {
    try #require(node.state.mesh.partitions[node.id(of: room)]).log
  }

  /// Node 1 has seen the branch of node 0, node 2 that of its copy, and each has written on top of it; node 3 knew both
  /// branches before.
  private func seen() throws -> EngineBench {
    let bench = try EngineBench(4)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("doc", 0))
    for slot in 1..<4 { bench.cut(bench.meet(0, slot)) }
    let copy = try bench.clone(0)
    try bench.nodes[0].write(room, Put("doc", 10))
    try bench.nodes[copy].write(room, Put("doc", 20))
    bench.cut(bench.meet(0, 1))
    bench.cut(bench.meet(copy, 2))
    for slot in [0, copy] { bench.cut(bench.meet(slot, 3)) }
    try bench.nodes[1].write(room, Put("doc", 11))
    try bench.nodes[2].write(room, Put("doc", 21))
    return bench
  }

  @Test("what was written in sight of either branch comes to one state, whether the fork was known before or after it")
  func sameStates() throws {
    let bench = try seen()
    for slot in [1, 2, 1, 2] { bench.cut(bench.meet(slot, 3)) }
    #expect(Set((1..<4).map { bench.nodes[$0].accepted(room) }).count == 1)
    #expect(try Set((1..<4).map { try state(bench.nodes[$0], "doc") }).count == 1)
    // Rebuilt from the log it is the same again: what a start finds is what was there.
    for slot in 1..<4 { try bench.restart(slot) }
    for _ in 0..<3 { for slot in [0, 1, 2, 4] { bench.cut(bench.meet(slot, 3)) } }
    #expect(Set(bench.nodes.map { $0.accepted(room) }).count == 1)
    #expect(try Set(bench.nodes.map { try state($0, "doc") }).count == 1)
  }

  @Test("a long branch is shown in parts, the next when there is room for it, and all of it in the end")
  func longBranch() throws {
    let bench = try EngineBench(1)
    try bench.nodes[0].subscribe("room=*")
    try bench.nodes[0].write(room, Put("doc", 0))
    let copy = try bench.clone(0)
    for number in 0..<60 { try bench.nodes[0].write(room, Put(Text("\(number)"), byteCount: 16_000)) }
    try bench.nodes[copy].write(room, Put("doc", 20))
    let links = bench.nodes[0].links
    links.queueByteMark = 1 << 18
    func shown() -> Int {
      links.sent.reduce(0) { bytes, message in
        guard case .runs(let batch) = message, batch.isForkEvidence else { return bytes }
        return bytes + batch.entries.reduce(0) { $0 + $1.encoded.count }
      }
    }
    let deliver = links.deliver
    links.deliver = { frame, session in
      // From the first piece of evidence on the peer reads slowly.
      if shown() > 0 { links.queuedByteCount = 4 << 20 }
      deliver?(frame, session)
    }
    let session = bench.meet(0, copy)
    #expect(shown() > 0 && shown() < 600_000, "\(shown()) bytes for a peer that reads slowly")
    links.deliver = deliver
    links.queuedByteCount = 0
    bench.nodes[0].engine.turn([.drained(session)])
    bench.run()
    #expect(shown() > 900_000)
    for _ in 0..<8 { bench.advance(100) }
    #expect(bench.nodes[0].accepted(room) == bench.nodes[copy].accepted(room))
    #expect(try bench.nodes[copy].shown(room, "59") == bench.nodes[0].shown(room, "59"))
  }

  @Test(
    "a write in sight of one branch alone has seen no more of the other than what came before the fork",
    arguments: [0, 1])
  func ceilings(branch: Int) throws {
    let bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("doc", 0))
    for slot in 1..<3 { bench.cut(bench.meet(0, slot)) }
    let copy = try bench.clone(0)
    let ends = [0, copy]
    for slot in ends { try bench.nodes[slot].write(room, Put("doc", Int64(10 + slot))) }
    bench.cut(bench.meet(ends[branch], 1))
    // Node 2 knows of the fork before it hears of the write, node 1 after it.
    for slot in ends { bench.cut(bench.meet(slot, 2)) }
    try bench.nodes[1].write(room, Put("doc", 99))
    for _ in 0..<2 { bench.cut(bench.meet(1, 2)) }
    #expect(bench.nodes[1].accepted(room) == bench.nodes[2].accepted(room))
    #expect(try state(bench.nodes[1], "doc") == state(bench.nodes[2], "doc"))
  }

  @Test("what was written in sight of a lost branch, however long that is, comes to who has nothing of either")
  func inSightOfALongerBranch() throws {
    let bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("before"))
    for slot in 1..<3 { bench.cut(bench.meet(0, slot)) }
    let copies = [0, try bench.clone(0)]
    for slot in copies { try bench.nodes[slot].write(room, Put(Text("by\(slot)"))) }
    let tips = try copies.map { try #require(bench.nodes[$0].state.own.tip(in: bench.nodes[$0].id(of: room))) }
    let (winner, loser) = tips[0] < tips[1] ? (copies[0], copies[1]) : (copies[1], copies[0])
    for number in 0..<3 { try bench.nodes[loser].write(room, Put(Text("more\(number)"))) }
    // Node 2 writes before anybody knows of the other branch.
    bench.cut(bench.meet(loser, 2))
    try bench.nodes[2].write(room, Put("in sight"))
    for _ in 0..<3 { for slot in [winner, loser, 2] { bench.cut(bench.meet(slot, 1)) } }
    let late = try bench.addMember()
    try bench.nodes[late].subscribe("room=*")
    bench.cut(bench.meet(late, 1))
    #expect(try bench.nodes[late].shown(room, "in sight") != nil)
    #expect(bench.nodes[late].accepted(room) == bench.nodes[1].accepted(room))
  }

  @Test("what is known of a fork outlasts a restart without anybody telling it again")
  func restart() throws {
    let bench = try seen()
    for _ in 0..<2 { for slot in [0, 1, 2, 4] { bench.cut(bench.meet(slot, 3)) } }
    for slot in bench.nodes.indices {
      let before = try log(bench.nodes[slot])
      #expect(before.forkPoints.count == 1 && before.knownReissues.count == 1)
      try bench.restart(slot)
      let after = try log(bench.nodes[slot])
      #expect(after.forkPoints == before.forkPoints && after.forkProofs == before.forkProofs)
      #expect(after.held == before.held && after.knownReissues == before.knownReissues)
    }
  }

  @Test("where the disk takes nothing, what another build has to store waits, and the links stay") func fullDisk()
    throws
  {
    let bench = try seen()
    for slot in [0, 1, 2, 4] { bench.cut(bench.meet(slot, 3)) }
    try bench.restart(3, formats: TestBuild.earlier.formats)
    let node = bench.nodes[3]
    try #require(!node.state.moved.isEmpty)
    for table in ["chains", "partitions", "documents", "meta"] { try node.refuse("UPDATE", on: table) }
    let link = bench.meet(3, 1)
    for _ in 0..<20 { bench.advance(500) }
    #expect(!node.state.moved.isEmpty && node.state.mesh.sessions[link]?.phase == .live)
    for table in ["chains", "partitions", "documents", "meta"] { try node.allow(table) }
    for _ in 0..<12 { bench.advance(500) }
    #expect(node.state.moved.isEmpty && node.state.mesh.sessions[link]?.phase == .live)
  }

  @Test("runs of a forked chain are read with the hash that tells their branch, others without")
  func branchOfRuns() throws {
    let bench = try seen()
    bench.cut(bench.meet(1, 3))
    let node = bench.nodes[3]
    let forks = try log(node).forkPoints
    let (runs, _) = try LogReader(node.state).runs(node.id(of: room), lackedBy: VersionVector(), byteLimit: .max)
    #expect(Set(runs.map { forks[$0.replica] != nil }) == [true, false])
    #expect(runs.allSatisfy { ($0.hashAtLast != nil) == (forks[$0.replica] != nil) })
  }

  @Test("lost changes of one document are issued again in the order in which they were written")
  func orderOfReissue() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("before"))
    bench.cut(bench.meet(0, 1))
    let copy = try bench.clone(0)
    for slot in [0, copy] {
      let id = Text("doc\(slot)")
      for n in 1...3 as ClosedRange<Int64> { try bench.nodes[slot].write(room, Put(id, n)) }
      try bench.nodes[slot].write(room, Erase(id))
      try bench.nodes[slot].write(room, Put(id, 7))
    }
    for _ in 0..<3 { for slot in [0, copy] { bench.cut(bench.meet(slot, 1)) } }
    for node in bench.nodes {
      for slot in [0, copy] { #expect(try node.shown(room, Text("doc\(slot)")) == map(["n": .int(7)])) }
    }
    for slot in [0, copy] {
      #expect(try Set(bench.nodes.map { try state($0, Text("doc\(slot)")) }).count == 1)
    }
    let reissues = try bench.nodes[1].store.reissues(in: bench.nodes[1].id(of: room)).sorted { $0.dot < $1.dot }
    #expect(reissues.map(\.origin.dot.sequence) == [2, 3, 4, 5, 6])
  }

  @Test("of two branches that nobody issues again only the one that counts makes documents")
  func branchThatCounts() throws {
    let bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    let author = HostileAuthor(bench, slot: 2)
    let declared = try author.declare(1).map(\.encoded)
    let chain = ChainIdentity(
      fleet: author.identity.fleet, partition: author.identity.id(of: room), replica: author.replicas[0])
    let genesis = chain.genesis(author.identity.cryptography.hash)
    let branches = try [1, 2].map { try author.run(room, chain.replica, fork: (0, genesis, $0)) }
      .sorted { $0.record.hashAtLast < $1.record.hashAtLast }
    // Node 0 hears of the one that does not count first, node 1 never.
    for slot in 0..<2 {
      let session = bench.meet(2, slot)
      author.say([.statements(declared)], to: slot, on: session)
      author.offer(room, [branches[1 - slot]], to: slot, on: session)
      if slot == 0 { author.say([author.batch(room, [branches[0]], asEvidence: true)], to: 0, on: session) }
    }
    #expect(try bench.nodes.prefix(2).map { try $0.count("runs") } == [2, 1])
    #expect(bench.nodes[0].accepted(room) == bench.nodes[1].accepted(room))
    #expect(try state(bench.nodes[0], "h") == state(bench.nodes[1], "h"))
  }

  @Test("only its own device issues a lost change again, under one name, however many nodes learn of it")
  func ownOnly() throws {
    let bench = try seen()
    let commits = [1, 2, 3].map { bench.nodes[$0].state.own.commits }
    for _ in 0..<3 { for slot in [0, 1, 2, 4] { bench.cut(bench.meet(slot, 3)) } }
    for _ in 0..<130 { bench.advance(500) }
    #expect([1, 2, 3].map { bench.nodes[$0].state.own.commits } == commits)
    #expect(try bench.nodes.map { try $0.count("reissues") } == [1, 1, 1, 1, 1])
  }

  @Test("who may no longer write issues nothing again, also after a restart, and does so as soon as it may")
  func rightReturns() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("start"))
    bench.cut(bench.meet(0, 1))
    let copies = [0, try bench.clone(0)]
    for slot in copies { try bench.nodes[slot].write(room, Put(Text("by\(slot)"))) }
    // The lower hash counts, with and without the narrowing: what comes back with the right is the right alone.
    let tips = try copies.map { try #require(bench.nodes[$0].state.own.tip(in: bench.nodes[$0].id(of: room))) }
    let (winner, loser) = tips[0] < tips[1] ? (copies[0], copies[1]) : (copies[1], copies[0])
    bench.cut(bench.meet(winner, 1))
    let chains = bench.nodes[1].accepted(room).sorted.map { Statement.ChainEnd(replica: $0, position: $1) }
    let ends = [Statement.PartitionEnds(partition: room.text, chains: chains)]
    func say(_ statement: Statement, at slot: Int) { bench.nodes[slot].engine.turn([.call { $0.add([statement]) }]) }
    func allMeet() { for _ in 0..<3 { for slot in copies { bench.cut(bench.meet(slot, 1)) } } }

    say(try bench.grant(.read, ends: ends), at: 1)
    allMeet()
    try bench.restart(loser)
    allMeet()
    // What came before the fork, and both branches.
    #expect(try bench.nodes.map { try $0.count("runs") } == [3, 3, 3])
    #expect(try bench.nodes.map { try $0.count("reissues") } == [0, 0, 0])

    say(try bench.grant(.write), at: loser)
    #expect(try bench.nodes[loser].count("reissues") == 1)
    allMeet()
    for node in bench.nodes { #expect(try node.count("documents WHERE alive") == 3) }
    #expect(Set(bench.nodes.map { $0.accepted(room) }).count == 1)
  }

  @Test("a chain that forks again and again keeps every write")
  func again() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("start"))
    bench.cut(bench.meet(0, 1))
    let copy = try bench.clone(0)
    for slot in [0, copy] { try bench.nodes[slot].write(room, Put(Text("first\(slot)"))) }
    bench.cut(bench.meet(copy, 1))
    // The one that has not met anybody yet is copied with what it wrote.
    let third = try bench.clone(0)
    for slot in [0, third] { try bench.nodes[slot].write(room, Put(Text("second\(slot)"))) }
    for _ in 0..<4 { for slot in [0, copy, third] { bench.cut(bench.meet(slot, 1)) } }
    for slot in [0, copy, third] { try bench.nodes[slot].write(room, Put(Text("last\(slot)"))) }
    for _ in 0..<3 { for slot in [0, copy, third] { bench.cut(bench.meet(slot, 1)) } }
    for node in bench.nodes { #expect(try node.count("documents WHERE alive") == 8) }
    #expect(Set(bench.nodes.map { $0.accepted(room) }).count == 1)
    let states = try bench.nodes.map { node in
      try ["start", "first0", "first2", "second0", "second3"].map { try state(node, $0) }
    }
    #expect(Set(states).count == 1)
  }

  @Test("a re-issue that is lost with its branch is no write of its own: another of its original is enough")
  func reissueLost() throws {
    var lostReissues = 0
    for seed in 1...6 as ClosedRange<UInt64> {
      let bench = try EngineBench(2, seed: seed)
      for node in bench.nodes { try node.subscribe("room=*") }
      try bench.nodes[0].write(room, Put("start"))
      bench.cut(bench.meet(0, 1))
      let copies = [0, try bench.clone(0), try bench.clone(0)]
      for slot in copies { try bench.nodes[slot].write(room, Put(Text("by\(slot)"))) }
      // Of the third branch nobody knows yet. Node 0 goes on under a new replica id, and so does its copy.
      for slot in [0, copies[1], 0] { bench.cut(bench.meet(slot, 1)) }
      try bench.nodes[0].write(room, Put("renewed"))
      let twin = try bench.clone(0)
      try bench.nodes[twin].write(room, Put("by twin"))
      bench.cut(bench.meet(0, copies[2]))
      for _ in 0..<4 { for slot in copies + [twin] { bench.cut(bench.meet(slot, 1)) } }
      for node in bench.nodes { #expect(try node.count("documents WHERE alive") == 6, "seed \(seed)") }
      #expect(Set(bench.nodes.map { $0.accepted(room) }).count == 1)
      let log = try log(bench.nodes[1])
      let reissues = Set(log.knownReissues.map(\.hash))
      lostReissues += log.held.count { reissues.contains($0.hash) }
    }
    #expect(lostReissues > 0)
  }
}
