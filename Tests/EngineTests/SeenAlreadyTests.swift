import Identity
import Replication
import Testing

@testable import Engine
@testable import Replication
@testable import Storage

/// A node whose store was put back to an earlier state writes under numbers that others have seen already. Where a full device
/// has made everything that others had seen optional, that may count here before the earlier history is shown.
@Suite struct SeenAlreadyTests {
  private let room: PartitionName
  private let bench: EngineBench
  private let author: HostileAuthor
  private var node: BenchNode { bench.nodes[0] }

  init() throws {
    room = try PartitionName("room=1")
    bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("*") }
    author = HostileAuthor(bench, slot: 2)
  }

  /// A change of the author's, at a node that has one change of its own, which has seen so many of these.
  private func take(seeing count: UInt64) throws {
    try node.write(room, Put("h", 1))
    let own = try #require(node.state.own.replica?.id)
    let session = bench.meet(2, 0)
    for said in try author.declare(AdmittedStatements.limit + 1).map(\.encoded).inSteps(of: 100) {
      author.say([.statements(said)], to: 0, on: session)
    }
    let seen = VersionVector([own: ChainPosition(sequence: count, tip: TipHash(high: 1, low: 1))])
    author.offer(room, [try author.run(room, try #require(author.replicas.first), seen: seen)], to: 0, on: session)
    bench.cut(session)
    try #require(node.accepted(room).entries.count == 2)
  }

  /// Another node, to which all of it comes from this one, shows the same.
  private func expectAgreement(_ shown: ValueMap) throws {
    bench.meet(0, 1)
    #expect(try node.shown(room, "h") == shown)
    #expect(try node.stored(room, "h") == bench.nodes[1].stored(room, "h"))
  }

  @Test("an own change that something has seen before it was there loses to that at once", arguments: [false, true])
  func seen(isStartedAgain: Bool) throws {
    try take(seeing: 2)
    if isStartedAgain { try bench.restart(0) }
    let receipt = try node.write(room, Put("h", 5))
    #expect(receipt.dot?.sequence == 2 && receipt.etags == [nil])
    try expectAgreement(map([:]))
  }

  @Test("the next change of the transaction is made upon what came of it")
  func oneAfterTheOther() throws {
    try take(seeing: 2)
    let jobs = [5, 5].map { node.job(room, [Put("h", $0)]) }
    node.engine.turn(jobs.map { .write($0.0) })
    #expect(try jobs.map { try $0.1.get().dot?.sequence } == [2, 3])
    try expectAgreement(map(["n": .int(5)]))
  }

  @Test("so does a change of somebody who read elsewhere")
  func readElsewhere() throws {
    try take(seeing: 2)
    let state = try node.stored(room, "h").map { try DocumentState(encoded: $0) }
    let answer = BenchNode.Answer<ChangeReceipt>()
    let reading = EarlierReading(state: state, wall: WallTime(milliseconds: 1), extensions: [])
    node.engine.turn([
      .write(LocalWriteJob(partition: room, edits: [Put("h", 5)], reading: reading) { answer.take($0) })
    ])
    #expect(try answer.get().dot?.sequence == 2)
    try expectAgreement(map([:]))
  }

  @Test("what nobody has seen is merged as ever, and nothing is built anew for it")
  func unseen() throws {
    try take(seeing: 1)
    let before = node.store.store.end.rebuilds
    let receipt = try node.write(room, Put("h", 5))
    #expect(receipt.etags.compactMap(\.self).count == 1 && node.store.store.end.rebuilds == before)
    try expectAgreement(map(["n": .int(5)]))
  }
}

extension Array {
  fileprivate func inSteps(of count: Int) -> [[Element]] {
    stride(from: 0, to: self.count, by: count).map { Array(dropFirst($0).prefix(count)) }
  }
}
