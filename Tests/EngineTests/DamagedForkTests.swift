import Replication
import Testing
import Wire

@testable import Engine

/// A run that the disk does not give as it was written lies on a branch of a forked chain.
@Suite struct DamagedForkTests {
  private let room: PartitionName
  private let bench: EngineBench
  private let chain: ReplicaID
  /// Nodes whose branch counts, and does not.
  private let winner: Int
  private let loser: Int
  private var node: BenchNode { bench.nodes[1] }

  /// Node 0 and its copy have each written two runs behind a common one, and nodes 1 and 2 have both branches.
  init() throws {
    let (room, bench) = (try PartitionName("room=1"), try EngineBench(3))
    (self.room, self.bench) = (room, bench)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("before"))
    for slot in 1..<3 { bench.cut(bench.meet(0, slot)) }
    let chain = try #require(bench.nodes[0].state.own.replica).id
    self.chain = chain
    let copies = [0, try bench.clone(0)]
    for slot in copies {
      for number in 1...2 { try bench.nodes[slot].write(room, Put(Text("\(slot)-\(number)"), BenchNode.number)) }
    }
    let runs = try copies.map { try #require(bench.nodes[$0].rows(room, chain).dropFirst().first) }
    let reader = RunReader(bench.nodes[0].state.identity)
    let partition = bench.nodes[0].id(of: room)
    let hashes = try runs.map { try reader.decode($0, in: partition).hashAtLast }
    (winner, loser) = hashes[0] < hashes[1] ? (copies[0], copies[1]) : (copies[1], copies[0])
  }

  private func allMeet(_ times: Int = 3) {
    for _ in 0..<times { for slot in [0, 3, 2] { bench.cut(bench.meet(slot, 1)) } }
    for slot in [0, 3] { bench.cut(bench.meet(slot, 2)) }
  }

  private func log(_ slot: Int) throws -> PartitionLog {
    try #require(bench.nodes[slot].state.mesh.partitions[bench.nodes[slot].id(of: room)]).log
  }

  /// The run of one branch at a sequence.
  private func flip(_ slot: Int, _ sequence: UInt64, at damaged: BenchNode) throws {
    let run = try #require(try bench.nodes[slot].rows(room, chain).first { $0.last == sequence })
    try damaged.flip(room, chain) { $0.body == run.body }
  }

  private func expectAlike(_ a: Int, _ b: Int) throws {
    let (one, two) = (try log(a), try log(b))
    #expect(one.accepted == two.accepted && one.received == two.received)
    #expect(one.forkPoints == two.forkPoints && one.forkProofs == two.forkProofs && one.held == two.held)
    for slot in [0, 3] {
      for id in ["before", Text("\(slot)-1"), Text("\(slot)-2")] {
        #expect(try bench.nodes[a].stored(room, id) == bench.nodes[b].stored(room, id), "\(id)")
        #expect(try bench.nodes[a].shown(room, id) != nil, "\(id)")
      }
    }
    for slot in [a, b] {
      let node = bench.nodes[slot]
      #expect(node.state.damagedRuns.isEmpty && node.state.quarantine.count == 0)
      #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
      #expect(try log(slot).incompleteChains.isEmpty && log(slot).unreadTrunks.isEmpty)
      #expect(try node.store.ownFacts().understanding == node.state.identity.cryptography.formats.understanding)
    }
  }

  @Test(
    "a start opens, and the run comes anew, of whichever branch it is, and whether its device has issued it again",
    arguments: [false, true], [2, 3] as [UInt64])
  func start(isLost: Bool, sequence: UInt64) throws {
    allMeet()
    let rows = try node.count("runs")
    try flip(isLost ? loser : winner, sequence, at: node)
    for _ in 0..<2 { try bench.restart(1) }
    #expect(node.engine.storeFailure == nil && node.state.damagedRuns.count == 1)
    try node.write(room, Put("goes on"))
    bench.meet(1, 2)
    bench.catchUp(200)
    try expectAlike(1, 2)
    #expect(try node.count("runs") == rows + 1)
    try bench.restart(1)
    try expectAlike(1, 2)
  }

  @Test(
    "the same of runs that do not decode, in rows without a sum, behind one another and behind a damaged one",
    arguments: [([], [2]), ([], [3]), ([2], [3])] as [(Set<UInt64>, Set<UInt64>)], [false, true])
  func withoutSums(sequences: (flipped: Set<UInt64>, short: Set<UInt64>), isLost: Bool) throws {
    // By what follows a run it is known again.
    for slot in [winner, loser] { try bench.nodes[slot].write(room, Put("last", BenchNode.number)) }
    let bodies = Set(try bench.nodes[isLost ? loser : winner].rows(room, chain).map(\.body))
    allMeet()
    let rows = try node.count("runs")
    let branch = Set(try node.rows(room, chain).filter { bodies.contains($0.body) }.map(\.arrival))
    try node.cutShort(room, chain) { sequences.short.contains($0.last) && branch.contains($0.arrival) }
    try node.flip(room, chain) { sequences.flipped.contains($0.last) && branch.contains($0.arrival) }
    for _ in 0..<2 { try bench.restart(1) }
    let count = sequences.flipped.count + sequences.short.count
    #expect(node.engine.storeFailure == nil && node.state.damagedRuns.count == count)
    bench.meet(1, 2)
    bench.catchUp(200)
    try expectAlike(1, 2)
    #expect(try node.count("runs") == rows && node.state.mesh.sessions.count == 1)
    #expect(!node.journal.lines.contains { $0.message.contains("links") }, "\(node.journal.lines.map(\.message))")
  }

  @Test("without a start it comes anew as well", arguments: [false, true], [2, 3] as [UInt64])
  func running(isLost: Bool, sequence: UInt64) throws {
    allMeet()
    let rows = try node.rows(room, chain)
    try flip(isLost ? loser : winner, sequence, at: node)
    let late = try bench.addMember()
    try bench.nodes[late].subscribe("room=*")
    bench.meet(1, late)
    bench.catchUp(40)
    #expect(node.state.damagedRuns.count == 1)
    // What lies before it is shown.
    if isLost, sequence == 3 { #expect(try log(late).forkPoints == log(1).forkPoints) }
    bench.meet(1, 2)
    bench.catchUp(300)
    #expect(try node.rows(room, chain) == rows)
    try expectAlike(1, 2)
    try expectAlike(late, 2)
  }

  @Test("with nobody who has it everything else goes on, and nothing of the log is lost", arguments: [false, true])
  func nobodyHasIt(isLost: Bool) throws {
    allMeet()
    try flip(isLost ? loser : winner, 2, at: node)
    let rows = try node.count("runs")
    for _ in 0..<2 { try bench.restart(1) }
    let late = try bench.addMember()
    try bench.nodes[late].subscribe("room=*")
    bench.meet(1, late)
    bench.catchUp(100)
    try bench.restart(1)
    #expect(node.engine.storeFailure == nil && node.state.damagedRuns.count == 1)
    #expect(try node.count("runs") == rows)
    let elsewhere = try PartitionName("room=2")
    try node.write(elsewhere, Put("goes on"))
    bench.meet(1, late)
    bench.catchUp(2)
    #expect(try bench.nodes[late].shown(room, "before") != nil)
    #expect(try bench.nodes[late].shown(elsewhere, "goes on") != nil)
  }

  @Test(
    "a run of another branch does not take the place of one with its numbers, which comes anew whatever was met meanwhile",
    arguments: [[2], [3], [2, 3]] as [Set<UInt64>], [false, true])
  func rival(sequences: Set<UInt64>, isWinner: Bool) throws {
    let (first, rival) = isWinner ? (winner, loser) : (loser, winner)
    bench.cut(bench.meet(first, 1))
    bench.cut(bench.meet(first, 2))
    try bench.say(try bench.grant(.read, ends: try bench.ends([room: [chain: 1]])), to: 1)
    let written = try node.rows(room, chain)
    try node.flip(room, chain) { sequences.contains($0.last) }
    for _ in 0..<2 { try bench.restart(1) }
    #expect(try log(1).incompleteChains == [chain])
    let session = bench.meet(rival, 1)
    bench.catchUp(100)
    bench.cut(session)
    try bench.restart(1)
    #expect(node.engine.storeFailure == nil && node.state.damagedRuns.count == sequences.count)
    for run in written {
      let place = RunPlace(last: run.last, arrival: run.arrival)
      #expect(try node.store.isWritten(run.body[...], at: place, of: node.chain(room, chain)), "\(run.last)")
    }
    bench.cut(bench.meet(rival, 2))
    try bench.say(try bench.grant(.write), to: 1)
    bench.meet(1, 2)
    bench.catchUp(200)
    allMeet()
    try bench.restart(1)
    try expectAlike(1, 2)
    let rows = try node.rows(room, chain)
    #expect(rows.count == 5 && written.allSatisfy(rows.contains), "each once, where it was")
  }

  @Test(
    "an opening finds what does not read of a fork also where the chain's marks were written since",
    arguments: [false, true])
  func marksWritten(isLost: Bool) throws {
    let (damaged, other) = isLost ? (loser, winner) : (winner, loser)
    bench.cut(bench.meet(damaged, 1))
    bench.cut(bench.meet(other, 2))
    bench.cut(bench.meet(1, 2))
    try flip(damaged, 2, at: node)
    try bench.restart(1)
    // Its device knows of no fork, and goes on.
    try bench.nodes[other].write(room, Put("more"))
    bench.cut(bench.meet(other, 1))
    #expect(try node.count("runs") == 6)
    for _ in 0..<2 { try bench.restart(1) }
    #expect(node.engine.storeFailure == nil && node.state.damagedRuns.count == 1)
    bench.cut(bench.meet(1, 2))
    bench.meet(1, 2)
    bench.catchUp(200)
    allMeet()
    try expectAlike(1, 2)
    #expect(try node.rows(room, chain).count == 6)
  }

  @Test("a fork that is shown where the branch that is here does not read is known once that has come anew")
  func forkOfDamaged() throws {
    bench.cut(bench.meet(loser, 1))
    bench.cut(bench.meet(loser, 2))
    try flip(loser, 2, at: node)
    bench.cut(bench.meet(winner, 1))
    #expect(node.engine.storeFailure == nil && node.state.damagedRuns.count == 1)
    bench.cut(bench.meet(winner, 2))
    bench.meet(1, 2)
    bench.catchUp(100)
    try bench.restart(1)
    allMeet()
    try expectAlike(1, 2)
  }

  @Test(
    "a device goes on without what it cannot issue again, and issues it when it has come anew",
    arguments: [false, true])
  func ownBranch(isLost: Bool) throws {
    bench.cut(bench.meet(winner, 1))
    let chains = bench.nodes[1].accepted(room).sorted.map { Statement.ChainEnd(replica: $0, position: $1) }
    let ends = [Statement.PartitionEnds(partition: room.text, chains: chains)]
    let revoked = try bench.grant(.read, ends: ends)
    node.engine.turn([.call { $0.add([revoked]) }])
    allMeet()
    let owing = bench.nodes[loser]
    #expect(try owing.count("reissues") == 0)
    try flip(isLost ? loser : winner, 2, at: owing)
    let granted = try bench.grant(.write)
    owing.engine.turn([.call { $0.add([granted]) }])
    #expect(owing.engine.failure == nil && owing.engine.storeFailure == nil && owing.state.damagedRuns.count == 1)
    #expect(try owing.count("reissues") == (isLost ? 0 : 2), "the branch that counts is not read for it")
    try owing.write(try PartitionName("room=2"), Put("goes on"))
    bench.meet(loser, 2)
    bench.catchUp(200)
    #expect(try owing.count("reissues") == 2 && owing.state.damagedRuns.isEmpty)
    allMeet()
    try expectAlike(1, 2)
  }
}
