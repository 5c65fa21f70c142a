import Replication
import Testing
import Wire

@testable import Engine

/// A run that the disk does not give as it was written lies in the very chain of which statements take work away, or give it
/// back. The node opens and goes on without it, and all is as anywhere else once the run has come anew.
@Suite struct DamagedHeldChainTests {
  private let room: PartitionName
  private let other: PartitionName
  private let bench: EngineBench
  /// Of node 0.
  private let chain: ReplicaID
  /// Of node 1.
  private let own: ReplicaID
  private var node: BenchNode { bench.nodes[1] }

  /// Node 0 has written three runs, node 1 has them and has written itself, node 0 has that, and the two have parted.
  init() throws {
    (room, other) = (try PartitionName("room=1"), try PartitionName("room=2"))
    bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    for id in ["a", "b", "c"] as [Text] { try bench.nodes[0].write(room, Put(id, BenchNode.number)) }
    bench.cut(bench.meet(1, 0))
    try bench.nodes[1].write(room, Put("own"))
    try bench.nodes[1].write(room, Put("late"))
    try bench.nodes[1].write(other, Put("elsewhere"))
    bench.cut(bench.meet(1, 0))
    chain = try #require(bench.nodes[0].state.own.replica).id
    own = try #require(bench.nodes[1].state.own.replica).id
  }

  /// Takes the right to write away, and all of the chain behind a change with it.
  private func revoked(_ last: UInt64 = 1, own ownLast: UInt64 = 2) throws -> Statement {
    try bench.grant(.read, ends: try bench.ends([room: [chain: last, own: ownLast], other: [own: 1]]))
  }

  private func flip(_ sequences: ClosedRange<UInt64>) throws {
    try node.flip(room, chain) { sequences.contains($0.first) }
  }

  private func log(_ slot: Int) throws -> PartitionLog {
    try #require(bench.nodes[slot].state.mesh.partitions[bench.nodes[slot].id(of: room)]).log
  }

  /// Nodes 0 and 1 hold and show the same, also after a start, and nothing is left to be made anew.
  private func expectAlike() throws {
    for isRestarted in [false, true] {
      if isRestarted { try bench.restart(1) }
      for place in [room, other] {
        #expect(bench.nodes[0].accepted(place) == node.accepted(place))
        #expect(bench.nodes[0].received(place) == node.received(place))
        for id in ["a", "b", "c", "own", "late", "elsewhere", "goes on"] as [Text] {
          #expect(try bench.nodes[0].stored(place, id) == node.stored(place, id), "\(id)")
        }
      }
      #expect(try log(0).held == log(1).held)
      #expect(try log(1).unreadTrunks.isEmpty && log(1).incompleteChains.isEmpty)
      #expect(node.state.damagedRuns.isEmpty && node.state.quarantine.count == 0)
      #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
      #expect(try node.store.ownFacts().understanding == node.state.identity.cryptography.formats.understanding)
    }
    #expect(try node.rows(room, chain).map(\.body) == bench.nodes[0].rows(room, chain).map(\.body))
  }

  /// The node is named as damaged, and all but the chain goes on.
  private func expectGoesOn() throws {
    #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
    #expect(!node.state.damagedRuns.isEmpty)
    #expect(try node.shown(room, "own") != nil && node.shown(other, "elsewhere") != nil)
  }

  @Test(
    "a start under statements that take work of it away opens, and they have effect in it when it has come anew",
    arguments: [2...2, 3...3, 2...3] as [ClosedRange<UInt64>], [1, 2])
  func startUnderNewStatements(sequences: ClosedRange<UInt64>, starts: Int) throws {
    try flip(sequences)
    try bench.restart(1, [try revoked()])
    for _ in 1..<starts { try bench.restart(1) }
    try expectGoesOn()
    #expect(node.accepted(room).sequence(of: chain) == 3)
    bench.meet(1, 0)
    bench.catchUp(200)
    #expect(node.accepted(room).sequence(of: chain) == 1)
    try expectAlike()
    #expect(try node.shown(room, "a") != nil && node.shown(room, "b") == nil && node.shown(room, "c") == nil)
  }

  @Test("with nobody who has it a node runs on for ever, passes on all else, and drops nothing of the log")
  func nobodyHasIt() throws {
    try flip(2...2)
    try bench.restart(1, [try revoked(own: 2)])
    bench.meet(1, 2)
    bench.catchUp(100)
    try bench.restart(1)
    try expectGoesOn()
    #expect(try bench.nodes[2].shown(room, "a") != nil && bench.nodes[2].shown(other, "elsewhere") != nil)
    #expect(try node.count("runs") == 6)
    try say(.write)
    try node.write(other, Put("goes on"))
    bench.meet(1, 2)
    bench.catchUp(2)
    #expect(try bench.nodes[2].shown(other, "goes on") != nil)
  }

  private func say(_ level: AccessLevel) throws { try bench.say(try bench.grant(level), to: 1) }

  @Test(
    "a start opens that has to read what is held of it, and gets it anew, held as it was or given back meanwhile",
    arguments: [2...2, 3...3, 2...3] as [ClosedRange<UInt64>], [false, true])
  func startWithHeld(sequences: ClosedRange<UInt64>, comesBack: Bool) throws {
    try bench.say(try revoked(), to: 1)
    try #require(node.accepted(room).sequence(of: chain) == 1 && node.received(room).sequence(of: chain) == 3)
    try flip(sequences)
    for _ in 0..<2 { try bench.restart(1) }
    try expectGoesOn()
    #expect(node.received(room).sequence(of: chain) == sequences.lowerBound - 1)
    if comesBack { try say(.write) }
    if comesBack { try bench.restart(1) }
    bench.meet(1, 0)
    bench.catchUp(200)
    try expectAlike()
    #expect(try (node.shown(room, "c") != nil) == comesBack)
    #expect(node.accepted(room).sequence(of: chain) == (comesBack ? 3 : 1))
  }

  @Test(
    "a revocation has effect in all other chains at once, and in its own when it has come anew",
    arguments: [2...2, 2...3] as [ClosedRange<UInt64>], [false, true])
  func revocationWhileRunning(sequences: ClosedRange<UInt64>, isRestarted: Bool) throws {
    try flip(sequences)
    try bench.say(try revoked(own: 1), to: 1)
    if isRestarted { for _ in 0..<2 { try bench.restart(1) } }
    try expectGoesOn()
    #expect(node.accepted(room).sequence(of: own) == 1 && node.accepted(room).sequence(of: chain) == 3)
    #expect(try node.store.ownFacts().understanding == KnownFormats.owing)
    // Who was revoked gains nothing by it.
    try bench.nodes[0].write(room, Put("more"))
    bench.meet(1, 0)
    bench.catchUp(200)
    #expect(node.accepted(room).sequence(of: chain) == 1)
    try expectAlike()
    #expect(try node.shown(room, "a") != nil && node.shown(room, "b") == nil && node.shown(room, "late") == nil)
  }

  @Test("where the disk gives it again by itself, a start makes good what a revocation left undone")
  func readsAgain() throws {
    let row = try #require(try node.rows(room, chain).first { $0.first == 2 })
    try flip(2...2)
    try bench.say(try revoked(), to: 1)
    #expect(try node.store.ownFacts().understanding == KnownFormats.owing)
    try #require(try node.shown(room, "b") != nil)
    try node.overwrite(row)
    try bench.restart(1)
    bench.catchUp(10)
    #expect(try node.accepted(room).sequence(of: chain) == 1 && node.shown(room, "b") == nil)
    bench.cut(bench.meet(1, 0))
    try expectAlike()
  }

  @Test("where it is held it comes anew without a start", arguments: [2...2, 3...3, 2...3] as [ClosedRange<UInt64>])
  func heldWhileRunning(sequences: ClosedRange<UInt64>) throws {
    try bench.say(try revoked(), to: 1)
    try flip(sequences)
    bench.cut(bench.meet(1, 2))
    bench.catchUp(2)
    #expect(node.state.damagedRuns.count > 0)
    bench.meet(1, 0)
    bench.catchUp(300)
    try expectAlike()
    bench.meet(1, 2)
    bench.catchUp(10)
    #expect(bench.nodes[2].received(room) == node.received(room))
  }

  @Test("one that comes anew in the turn in which its chain is given back is shown, as anywhere else")
  func givenBackMeanwhile() throws {
    try bench.say(try revoked(), to: 1)
    try flip(2...2)
    bench.cut(bench.meet(1, 2))
    bench.catchUp(2)
    try #require(try node.state.damagedRuns.count > 0 && node.shown(room, "b") == nil)
    let grant = try bench.grant(.write)
    var isAnswered = false
    bench.companions = { event, slot in
      guard !isAnswered, slot == 1, case .runs(let session, let batch, _, _) = event, batch.isForkEvidence
      else { return [] }
      isAnswered = true
      return [.message(session, .statements([grant.encoded]), byteCount: grant.encoded.count)]
    }
    bench.meet(1, 0)
    bench.catchUp(300)
    #expect(isAnswered)
    try bench.say(grant, to: 0)
    bench.catchUp(40)
    try expectAlike()
    #expect(try node.shown(room, "b") != nil && node.accepted(room).sequence(of: chain) == 3)
  }

  @Test("who lacks a run of its own chain writes on under another id: no number is spent twice")
  func ownChain() throws {
    for id in ["mine", "more"] as [Text] { try node.write(room, Put(id, BenchNode.number)) }
    bench.cut(bench.meet(1, 0))
    let before = try node.rows(room, own).count
    try bench.say(try revoked(own: 2), to: 1)
    try node.flip(room, own) { $0.first == 3 }
    try bench.restart(1)
    #expect(node.received(room).sequence(of: own) == 2 && node.state.own.causes == [.corruption])
    try say(.write)
    try node.write(room, Put("under another id"))
    let now = try #require(node.state.own.replica).id
    #expect(now != own)
    bench.meet(1, 0)
    bench.catchUp(200)
    #expect(try node.rows(room, own).count == before)
    try expectAlike()
    #expect(try bench.nodes[0].shown(room, "mine") != nil && bench.nodes[0].shown(room, "under another id") != nil)
  }
}
