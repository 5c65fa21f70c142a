import Identity
import Replication
import Testing

@testable import Engine

/// Two histories of one replica: a directory that was copied and ran twice.
@Suite struct ForkTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  /// Node 1 holds what was written before; node 0 and its copy, node 2, have each written since.
  private func forked(byteCount: Int = 100) throws -> EngineBench {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("before"))
    bench.cut(bench.meet(0, 1))
    let copy = try bench.clone(0)
    for slot in [0, copy] {
      for index in 0..<2 { try bench.nodes[slot].write(room, Put(Text("\(slot)-\(index)"), byteCount: byteCount)) }
    }
    return bench
  }

  private func ids(_ node: BenchNode) throws -> Int64 { try node.count("documents WHERE alive") }

  private func allMeet(_ bench: EngineBench) {
    for slot in [0, 2, 0, 2, 0] { bench.cut(bench.meet(slot, 1)) }
  }

  @Test("every acknowledged write of both copies stands on all nodes", arguments: [100, 40_000])
  func bothStand(byteCount: Int) throws {
    let bench = try forked(byteCount: byteCount)
    allMeet(bench)
    for node in bench.nodes { #expect(try ids(node) == 5) }
    #expect(bench.nodes[1].journal.says("two histories of one replica"))
    #expect(Set(bench.nodes.map { $0.accepted(room) }).count == 1)
    // Both go on under replicas of their own.
    for slot in [0, 2] { try bench.nodes[slot].write(room, Put(Text("after\(slot)"))) }
    allMeet(bench)
    for node in bench.nodes { #expect(try ids(node) == 7) }
    #expect(bench.nodes[0].state.own.replica != bench.nodes[2].state.own.replica)
  }

  @Test("who learns of its fork takes the mark away that would vouch for it, and sets one for the new replica")
  func mark() throws {
    let bench = try forked()
    allMeet(bench)
    let demanded = [0, 2].filter { bench.nodes[$0].mark.discards > 0 }
    #expect(!demanded.isEmpty)
    for slot in demanded {
      try bench.nodes[slot].write(room, Put("more"))
      #expect(bench.nodes[slot].mark.saved?.replica == bench.nodes[slot].state.own.replica)
    }
  }

  @Test("what was issued again stays so over a restart, and is not issued a second time")
  func restart() throws {
    let bench = try forked()
    allMeet(bench)
    let issued = try bench.nodes.map { try $0.count("reissues") }
    let runs = try bench.nodes.map { try $0.count("runs") }
    #expect(issued.allSatisfy { $0 > 0 })
    for slot in [0, 1, 2] { try bench.restart(slot) }
    allMeet(bench)
    #expect(try bench.nodes.map { try $0.count("reissues") } == issued)
    #expect(try bench.nodes.map { try $0.count("runs") } == runs)
    #expect(Set(bench.nodes.map { $0.accepted(room) }).count == 1)
  }

  @Test("an issue that the disk refuses leaves no trace, and comes once another commit has gone well")
  func refusedReissue() throws {
    let bench = try forked()
    for slot in [0, 2] { try bench.nodes[slot].refuse("INSERT", on: "reissues") }
    try bench.nodes[1].refuse("INSERT", on: "reissues")
    allMeet(bench)
    let losers = [0, 2].filter { !Reissue.owed(in: bench.nodes[$0].state).isEmpty }
    let loser = try #require(losers.first)
    let before = bench.nodes[loser].state.own.commits
    #expect(try bench.nodes[loser].count("reissues") == 0)
    for slot in [0, 1, 2] { try bench.nodes[slot].allow("reissues") }
    try bench.nodes[loser].write(room, Put("again"))
    #expect(Reissue.owed(in: bench.nodes[loser].state).isEmpty)
    // The write and the two that were put aside.
    #expect(bench.nodes[loser].state.own.commits == before + 3)
    allMeet(bench)
    for node in bench.nodes { #expect(try ids(node) == 6) }
  }

  @Test("an issue that the disk refused comes in time, too, where nothing else is committed")
  func refusedReissueInTime() throws {
    let bench = try forked()
    for slot in [0, 2] { try bench.nodes[slot].refuse("INSERT", on: "reissues") }
    try bench.nodes[1].refuse("INSERT", on: "reissues")
    allMeet(bench)
    let loser = try #require([0, 2].first { !Reissue.owed(in: bench.nodes[$0].state).isEmpty })
    for slot in [0, 1, 2] { try bench.nodes[slot].allow("reissues") }
    let node = bench.nodes[loser]
    for _ in 0..<node.state.options.millisecondsBetweenMarks / 500 + 2 { bench.advance(500) }
    #expect(Reissue.owed(in: node.state).isEmpty)
    #expect(try node.count("reissues") == 2)
  }

  @Test("an issue that the disk refuses keeps no other partition from its own") func refusedElsewhere() throws {
    let bench = try EngineBench(2)
    let rooms = try (1...2).map { try PartitionName(Text("room=\($0)")) }.sorted {
      bench.nodes[0].id(of: $0) < bench.nodes[0].id(of: $1)
    }
    for node in bench.nodes { try node.subscribe("room=*") }
    for room in rooms { try bench.nodes[0].write(room, Put("before")) }
    bench.cut(bench.meet(0, 1))
    let copies = [0, try bench.clone(0)]
    for slot in copies {
      for room in rooms { try bench.nodes[slot].write(room, Put(Text("\(slot)"))) }
      let first = "SELECT id FROM partitions WHERE name='\(rooms[0].text.string)'"
      try bench.nodes[slot].refuse("INSERT", on: "reissues", when: "NEW.partition = (\(first))")
    }
    allMeet(bench)
    let owed = copies.flatMap { Reissue.owed(in: bench.nodes[$0].state).map(\.name) }
    #expect(Set(owed) == [rooms[0]])
    #expect(bench.nodes[1].accepted(rooms[1]).entries.values.reduce(0) { $0 + $1.sequence } == 3)
  }
}
