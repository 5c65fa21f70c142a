import Identity
import Replication
import Testing

@testable import Engine

/// A write that a fork put aside and its re-issue are one write to documents, whichever of them counts (rule M17).
@Suite struct ReissueMergeTests {
  private let room: PartitionName
  private let bench: EngineBench
  /// The copy whose branch counts, and the one whose branch is lost.
  private let winner, loser: Int
  /// What both wrote under, and the lost branch's end.
  private let replica: ReplicaID
  private let lostEnd: ChainPosition

  /// The document that the lost branch made.
  private static let id: Value = .string("lost")

  /// Changes the document with the hints of a list and a set.
  private struct Change: DocumentEdit {
    let change: @Sendable (inout ValueMap) -> Void
    var id: Value { ReissueMergeTests.id }
    var collection: Text { Put.collection }

    func outcome(on present: PresentDocument) -> DocumentOutcome {
      var body = present.body ?? ValueMap()
      change(&body)
      return .body(body, hints: WriteHints([([.key("list")], .list(key: nil)), ([.key("set")], .set)]))
    }
  }

  /// Nodes 1 and 2 hold what was written before the fork, and nobody knows of it yet.
  init() throws {
    room = try PartitionName("room=1")
    let (room, bench) = (room, try EngineBench(3))
    self.bench = bench
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("before"))
    for slot in [1, 2] { bench.cut(bench.meet(0, slot)) }
    replica = try #require(bench.nodes[0].state.own.replica?.id)
    let copies = [0, try bench.clone(0)]
    for slot in copies { try bench.nodes[slot].write(room, Put(Text("by\(slot)"))) }
    let tips = try copies.map { try #require(bench.nodes[$0].state.own.tip(in: bench.nodes[$0].id(of: room))) }
    let (winner, loser) = tips[0] < tips[1] ? (copies[0], copies[1]) : (copies[1], copies[0])
    (self.winner, self.loser) = (winner, loser)
    try bench.nodes[loser].write(
      room,
      Change { body in
        body["list"] = .array([.map(map(["name": .string("a")]))])
        body["set"] = .array([.int(1), .int(2)])
      })
    let node = bench.nodes[loser]
    let tip = try #require(node.state.own.tip(in: node.id(of: room))).tip
    lostEnd = ChainPosition(sequence: node.state.own.sequence(in: node.id(of: room)), tip: tip)
  }

  private func write(_ slot: Int, _ change: @escaping @Sendable (inout ValueMap) -> Void) throws {
    try bench.nodes[slot].write(room, Change(change: change))
  }

  private func settle() {
    for _ in 0..<3 { for slot in bench.nodes.indices where slot != 1 { bench.cut(bench.meet(slot, 1)) } }
  }

  /// The root ends the forked replica where the lost branch does: that one counts then.
  private func bringOriginalBack() throws {
    let end = Statement.PartitionEnds(
      partition: room.text, chains: [Statement.ChainEnd(replica: replica, position: lostEnd)])
    let statement = try bench.statement(
      .end(
        Statement.End(reason: .retire, target: .replica(replica), listing: Statement.Listing(ends: [end]))))
    bench.nodes[1].engine.turn([.call { $0.add([statement]) }])
    settle()
    #expect(bench.nodes.allSatisfy { $0.accepted(room)[replica] == lostEnd })
  }

  /// What every node shows and how, also one that comes last and takes it all in at once.
  private func expectEverywhere(_ body: ValueMap, _ comment: Comment) throws {
    let late = try bench.addMember()
    try bench.nodes[late].subscribe("room=*")
    settle()
    let key = DocumentKey(collection: Put.collection, id: Self.id)
    var states: Set<DocumentState?> = []
    for node in bench.nodes {
      let state = try node.store.document(key, in: node.id(of: room)).map { try DocumentState(encoded: $0.state) }
      #expect(state?.shown() == body, comment)
      #expect(state?.inbox() == [], comment)
      states.insert(state)
    }
    #expect(states.count == 1, comment)
    #expect(Set(bench.nodes.map { $0.accepted(room) }).count == 1, comment)
  }

  /// The other copy learns of the fork and issues its branch again; of all that, this one gets the re-issues alone.
  private func bringReissuesAlone(to node: BenchNode) throws {
    for slot in [winner, loser, loser] { bench.cut(bench.meet(slot, 1)) }
    let other = bench.nodes[loser]
    let reissuer = try #require(other.state.own.replica?.id)
    try #require(reissuer != replica)
    node.engine.turn([.call { [statements = Array(other.state.mesh.authority.fleetStatements)] in $0.add(statements) }])
    try node.take(runsOf: reissuer, of: other, in: room)
    try #require(node.accepted(room).sequence(of: reissuer) == 2)
    try #require(node.state.mesh.partitions[node.id(of: room)]?.log.forkPoints.isEmpty == true)
  }

  private static let item: Value = .map(map(["name": .string("a")]))

  @Test("what was removed in sight of a re-issue stays removed when the original comes to count again")
  func removedAfterReissue() throws {
    settle()
    try write(1) { $0["set"] = .array([.int(2)]) }
    settle()
    let body = map(["list": .array([Self.item]), "set": .array([.int(2)])])
    try expectEverywhere(body, "the re-issue counts")
    try bringOriginalBack()
    try expectEverywhere(body, "the original counts")
  }

  @Test("what was removed in sight of a branch that is lost stays removed when it is issued again")
  func removedBeforeReissue() throws {
    bench.cut(bench.meet(loser, 2))
    try write(2) { $0["set"] = .array([.int(2)]) }
    settle()
    try expectEverywhere(map(["list": .array([Self.item]), "set": .array([.int(2)])]), "the re-issue counts")
  }

  @Test("what a lost branch did to a list element of its own is issued again behind the element")
  func laterOnTheBranch() throws {
    let item = Value.map(map(["name": .string("a"), "n": .int(1)]))
    try write(loser) { $0["list"] = .array([item]) }
    // So the loser learns of the other branch, and has all of its own to issue.
    for slot in [winner, loser] { bench.cut(bench.meet(slot, 1)) }
    let reissues = try bench.nodes[1].store.reissues(in: bench.nodes[1].id(of: room)).sorted { $0.dot < $1.dot }
    #expect(reissues.map(\.origin.dot.sequence) == [2, 3, 4])
    settle()
    try expectEverywhere(map(["list": .array([item]), "set": .array([.int(1), .int(2)])]), "both are issued again")
  }

  @Test("a list element that was edited under the re-issue's name and under the original's is one")
  func oneElement() throws {
    bench.cut(bench.meet(loser, 2))
    try write(2) { $0["list"] = .array([.map(map(["name": .string("a"), "two": .int(2)]))]) }
    bench.cut(bench.meet(winner, 1))
    bench.cut(bench.meet(loser, 1))
    try write(1) { $0["list"] = .array([.map(map(["name": .string("a"), "one": .int(1)]))]) }
    settle()
    try bringOriginalBack()
    let item = Value.map(map(["name": .string("a"), "one": .int(1), "two": .int(2)]))
    let body = map(["list": .array([item]), "set": .array([.int(1), .int(2)])])
    try expectEverywhere(body, "the original counts")
    // The next run of a node is not built anew but folded in.
    try write(2) { $0["list"] = .array([.map(map(["name": .string("b"), "one": .int(1), "two": .int(2)]))]) }
    settle()
    let renamed = Value.map(map(["name": .string("b"), "one": .int(1), "two": .int(2)]))
    try expectEverywhere(map(["list": .array([renamed]), "set": .array([.int(1), .int(2)])]), "and goes on")
  }

  @Test("a copy with re-issues of what it never wrote goes on under another replica, and its removals hold everywhere")
  func reissuesAlone() throws {
    let node = bench.nodes[winner]
    try bringReissuesAlone(to: node)
    // The next change of its chain has the number of the lost one that made the list.
    try #require(node.state.own.sequence(in: node.id(of: room)) + 1 == lostEnd.sequence)
    try write(winner) { $0["list"] = .array([.map(map(["name": .string("a")])), .map(map(["name": .string("b")]))]) }
    #expect(node.state.own.replica?.id != replica)
    try write(winner) { $0["list"] = .array([.map(map(["name": .string("a")]))]) }
    settle()
    try expectEverywhere(map(["list": .array([Self.item]), "set": .array([.int(1), .int(2)])]), "it goes on")
  }
}
