import TestSupport
import Testing

@testable import Replication

@Suite("Exchange of holdings")
struct HoldingsExchangeTests {
  private let megabyte = 1 << 20

  @Test("an own word goes out when the changes it newly speaks of are worth it, and not again for ten minutes")
  func budget() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 1, byteCount: 5_000)
    bench.pass(30_000)
    #expect(bench.word(of: 0, at: 0) == nil, "5,000 bytes are not worth a word")
    bench.hold(0, 2, byteCount: megabyte)
    bench.pass(1_000)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
    bench.hold(0, 3, byteCount: megabyte)
    bench.pass(590_000)
    #expect(bench.word(of: 0, at: 1)?.vector != bench.nodes[0].vector)
    bench.pass(20_000)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
  }

  @Test(
    "over a day of changes words take no more than a fiftieth of their bytes", arguments: [1, 2, 5],
    [40, 2_000, 90_000])
  func share(peers: Int, changeBytes: Int) {
    var bench = HoldingsBench(peers + 1)
    for peer in 1...peers { bench.link(0, peer) }
    var (bytes, generator) = (0, SplitMix64(seed: UInt64(changeBytes)))
    for step in 1...1_440 as ClosedRange<UInt64> {
      let size = 1 + Int(generator.next() % UInt64(2 * changeBytes))
      bytes += size * peers
      bench.hold(0, step, chain: generator.next() % 8, byteCount: size)
      bench.milliseconds += 60_000
      bench.tick(0)
    }
    let words = bench.items.reduce(0) { $0 + $1.byteCount + HoldingsRules.messageBytes }
    #expect(words * 50 <= bytes)
    #expect(changeBytes < 2_000 || words > 0)
  }

  @Test("who asks hears at once, however little there is to say, and not twice within five seconds")
  func asked() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 1, byteCount: 10)
    bench.ask(1)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
    let number = bench.word(of: 0, at: 1)?.number ?? 0
    bench.hold(0, 2, byteCount: 10)
    bench.pass(2_000)
    bench.ask(1)
    #expect(bench.word(of: 0, at: 1)?.number == number)
    bench.pass(4_000)
    bench.ask(1)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
    // Nothing has changed, but that the device is there is news after a while.
    let second = bench.word(of: 0, at: 1)?.number ?? 0
    bench.ask(1)
    #expect(bench.word(of: 0, at: 1)?.number == second)
    bench.pass(60_000)
    bench.ask(1)
    #expect(bench.word(of: 0, at: 1).map { $0.number > second } == true)
  }

  private func read(_ bench: inout HoldingsBench, _ sequence: UInt64) {
    var vector = VersionVector()
    if sequence > 0 {
      vector[ReplicaID(high: 0, low: 1)] = ChainPosition(sequence: sequence, tip: TipHash(high: 1, low: sequence))
    }
    bench.with(0) { $0.readBack(HoldingsBench.partition, vector, $1) }
  }

  private func said(_ bench: HoldingsBench) -> UInt64? {
    bench.word(of: 0, at: 1, .backend)?.vector.sequence(of: ReplicaID(high: 0, low: 1))
  }

  @Test("what the backend has is said at once, more of it after ten minutes, and taken back within seconds")
  func backend() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 9)
    read(&bench, 0)
    #expect(said(bench) == nil, "an empty backend is worth no word, and delays none")
    read(&bench, 5)
    #expect(said(bench) == 5)
    bench.pass(10_000)
    read(&bench, 7)
    #expect(said(bench) == 5)
    bench.pass(595_000)
    #expect(said(bench) == 7)
    bench.pass(10_000)
    read(&bench, 3)
    #expect(said(bench) == 3)
  }

  @Test("a word about the backend never is younger than the reading that it rests on")
  func oldReading() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 9)
    read(&bench, 5)
    let number = bench.word(of: 0, at: 1, .backend)?.number
    bench.pass(120_000)
    bench.ask(1)
    #expect(bench.word(of: 0, at: 1, .backend)?.number == number, "nothing was read since")
    read(&bench, 5)
    bench.ask(1)
    #expect(bench.word(of: 0, at: 1, .backend).map { $0.number > number ?? 0 } == true)
    // Read, and not said before it was long ago.
    read(&bench, 6)
    bench.milliseconds += 2_000_000
    bench.ask(1)
    bench.pass(10_000)
    #expect(said(bench) == 5)
  }

  @Test("questions without end are answered a few times only")
  func allowance() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 1)
    for _ in 0..<500 {
      bench.with(1) { exchange, _ in exchange.peers.keys.map { .send($0, .question(.sum(9, isAnswer: false))) } }
    }
    #expect(bench.sent.count { $0.from == 0 } <= HoldingsRules().allowance)
  }

  @Test("others' words come over peers who have none of their own, and what is level costs one question")
  func spreading() {
    var bench = HoldingsBench(4)
    for index in 0..<3 { bench.link(index, index + 1) }
    for index in 0..<4 { bench.hold(index, UInt64(index) + 1, byteCount: megabyte) }
    bench.pass(300_000)
    for index in 0..<4 {
      for other in 0..<4 { #expect(bench.word(of: other, at: index)?.vector == bench.nodes[other].vector) }
    }
    bench.forgetSent()
    bench.pass(300_000)
    #expect(bench.sent.isEmpty, "nothing is new")
    bench.unlinkAll()
    bench.link(0, 1, 1)
    bench.pass(60_000)
    #expect(bench.sent.count == 2 && bench.questions == 2, "a sum and its answer")
  }

  @Test("who heard nothing for a while is brought level when it is back, and whoever was not there before")
  func reconnecting() {
    var bench = HoldingsBench(3)
    bench.link(0, 1)
    bench.hold(0, 1, byteCount: megabyte)
    bench.pass(60_000)
    bench.unlinkAll()
    for round in 2...4 as ClosedRange<UInt64> {
      bench.hold(0, round, byteCount: megabyte)
      bench.link(0, 2, round)
      bench.pass(700_000)
      bench.unlinkAll()
    }
    bench.link(1, 2, 9)
    bench.pass(60_000)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
  }

  @Test("a word travels as what differs from the one before, where the peer has that, and the whole is what is signed")
  func increments() {
    var bench = HoldingsBench(3)
    bench.link(0, 1)
    for chain in 1...20 as ClosedRange<UInt64> { bench.hold(0, 5, chain: chain, byteCount: megabyte) }
    bench.pass(1_000)
    #expect(bench.items.map(\.base) == [0])
    bench.forgetSent()
    bench.hold(0, 6, chain: 3, byteCount: megabyte)
    bench.pass(610_000)
    #expect(bench.items.map(\.entryCount) == [1] && bench.items.first?.base != 0)
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
    // Who has an earlier one, or none, gets the whole.
    bench.forgetSent()
    bench.link(0, 2)
    bench.pass(60_000)
    #expect(bench.items.map(\.base) == [0] && bench.word(of: 0, at: 2)?.vector == bench.nodes[0].vector)
  }

  @Test("an increment to what is not here is left out, and the next comparison brings the whole")
  func missingBase() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 1, byteCount: megabyte)
    for chain in 2...9 as ClosedRange<UInt64> { bench.hold(0, 1, chain: chain) }
    bench.nodes[1].stores = false
    bench.pass(1_000)
    bench.nodes[1].stores = true
    bench.hold(0, 2, byteCount: megabyte)
    bench.pass(601_000)
    #expect(bench.items.map { $0.base == 0 } == [true, false, true])
    #expect(bench.word(of: 0, at: 1)?.vector == bench.nodes[0].vector)
  }

  @Test("a word that could not be stored is told to nobody, and its number never used again")
  func notStored() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 1, byteCount: megabyte)
    bench.nodes[0].stores = false
    bench.nodes[0].wall = 5
    var numbers: [UInt64] = []
    for _ in 0..<3 {
      bench.with(1) { $0.ask([HoldingsBench.partition], $1) }
      bench.milliseconds += 10_000
      let id = bench.nodes[0].id(of: HoldingsBench.partition)
      numbers.append(bench.nodes[0].exchange.words[id]?[.received]?.number ?? 0)
    }
    #expect(bench.items.isEmpty && numbers == numbers.sorted() && Set(numbers).count == 3)
  }
}
