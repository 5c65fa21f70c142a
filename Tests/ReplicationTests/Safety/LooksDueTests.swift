import TestSupport
import Testing

@testable import Replication

/// When it is looked at whether a word is worth its bytes.
@Suite("Looks at what is unspoken")
struct LooksDueTests {
  private let megabyte = 1 << 20

  /// Looks at what is held, in all ticks of so long a time.
  private func looks(_ bench: inout HoldingsBench, in milliseconds: UInt64) -> Int {
    let before = bench.nodes[0].asked.count
    bench.pass(milliseconds)
    return bench.nodes[0].asked.count - before
  }

  @Test("what is worth less than any word takes is not looked at again before there is more")
  func little() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 1, byteCount: 5_000)
    bench.pass(1_000)
    #expect(bench.nodes[0].exchange.looks.count == 0)
    bench.hold(0, 2, byteCount: megabyte)
    bench.pass(1_000)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
  }

  @Test("a word that is too dear is reckoned once in its time, and when there is more to say")
  func dear() {
    var bench = HoldingsBench(6)
    for peer in 1...5 { bench.link(0, peer) }
    // Enough for three who would be told.
    for chain in 1...20 as ClosedRange<UInt64> { bench.hold(0, 1, chain: chain, byteCount: 9_000) }
    #expect(looks(&bench, in: 60_000) == 1)
    bench.hold(0, 2, byteCount: 9_000)
    #expect(looks(&bench, in: 60_000) == 1)
    #expect(bench.word(of: 0, at: 0) == nil)
    #expect(looks(&bench, in: 600_000) == 1)
    bench.hold(0, 3, byteCount: megabyte)
    bench.pass(1_000)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
  }

  @Test("what nobody would be told is said when somebody is there who takes it, and not looked at before")
  func unheard() {
    var bench = HoldingsBench(3)
    let wanted = bench.nodes[1].wanted
    bench.nodes[1].wanted = []
    bench.link(0, 1)
    bench.hold(0, 1, byteCount: megabyte)
    #expect(looks(&bench, in: 60_000) == 1)
    bench.nodes[1].wanted = wanted
    bench.nodes[0].exchange.scopeMoved()
    bench.pass(1_000)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
    bench.unlinkAll()
    bench.nodes[1].wanted = []
    bench.link(0, 1, 1)
    bench.hold(0, 2, byteCount: megabyte)
    bench.pass(700_000)
    #expect(bench.word(of: 0, at: 0)?.vector != bench.nodes[0].vector)
    bench.link(0, 2, 1)
    bench.pass(1_000)
    #expect(bench.word(of: 0, at: 2)?.vector == bench.nodes[0].vector)
  }

  @Test("what was said a moment ago is looked at again when its time is over")
  func resting() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 1, byteCount: megabyte)
    bench.pass(1_000)
    bench.hold(0, 2, byteCount: megabyte)
    #expect(looks(&bench, in: 590_000) == 0)
    bench.pass(20_000)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
    bench.pass(600_000)
    #expect(bench.nodes[0].exchange.looks.count == 0)
  }

  @Test("a word of this device that a copy of it said is looked at once it stands, however long the disk takes")
  func keptLate() throws {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 3, byteCount: 0)
    let (name, here) = (HoldingsBench.partition, bench.nodes[0].vector)
    bench.with(0) { $0.readBack(name, here, $1) }
    bench.pass(1_000)
    let said = try #require(bench.word(of: 0, at: 0, .backend))
    #expect(said.vector == here)
    var more = here
    more[ReplicaID(high: 0, low: 2)] = ChainPosition(sequence: 4, tip: TipHash(high: 2, low: 4))
    let sight = bench.sight(0)
    let copied = Holdings(
      fleet: said.fleet, device: said.device, partition: name, number: said.number + 1, vector: more, kind: .backend,
      ownLast: nil)
    let signed = SignedHoldings(copied, signature: sight.sign(sight.signedBytes(of: copied)))
    let id = try #require(bench.links.keys.first)
    bench.nodes[0].stores = false
    bench.with(0) { $0.received(id, .records([signed.item(after: nil, known: nil)]), $1) }
    bench.pass(1_000)
    bench.nodes[0].stores = true
    let kept = KeptHoldings(signed, heard: bench.nodes[0].wall)
    bench.with(0) { $0.kept([(kept, id)], $1) }
    #expect(bench.word(of: 0, at: 0, .backend)?.vector == more)
    bench.pass(10_000)
    #expect(bench.word(of: 0, at: 0, .backend)?.vector == here)
  }
}
