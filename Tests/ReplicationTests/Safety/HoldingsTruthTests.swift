import Testing

@testable import Replication

/// Words that do not hold, or are nobody's.
@Suite("Truth of holdings")
struct HoldingsTruthTests {
  private let megabyte = 1 << 20

  /// Another store takes the place of the node's: what `stored` has, and no more of the log than `sequence`.
  private func putBack(_ bench: inout HoldingsBench, _ index: Int, to stored: [KeptHoldings], _ sequence: UInt64) {
    let old = bench.nodes[index]
    bench.unlinkAll()
    bench.nodes[index].exchange = HoldingsExchange(old.rules)
    bench.nodes[index].instance = UUIDValue(high: 8, low: old.instance.low)
    bench.nodes[index].stored = stored
    bench.nodes[index].vector = VersionVector()
    if sequence > 0 { bench.nodes[index].hold(sequence, chain: 1) }
    let sight = bench.sight(index)
    bench.nodes[index].exchange.restore(stored, sight)
  }

  @Test(
    "a store that was put back hears its own later word, and takes it back with a greater number",
    arguments: [0, -86_400_000])
  func rolledBack(wallMoves: Int64) {
    var bench = HoldingsBench(3)
    bench.link(0, 1)
    bench.hold(0, 3)
    bench.ask(1)
    let copy = bench.nodes[0].stored
    #expect(copy.count == 1)
    bench.hold(0, 9)
    bench.pass(10_000)
    bench.ask(1)
    #expect(bench.word(of: 0, at: 1)?.vector.sequence(of: ReplicaID(high: 0, low: 1)) == 9)
    putBack(&bench, 0, to: copy, 3)
    bench.nodes[0].wall += wallMoves
    // Over somebody who never met the node before.
    bench.link(1, 2, 1)
    bench.pass(60_000)
    bench.unlinkAll()
    bench.link(2, 0, 2)
    bench.pass(60_000)
    bench.link(1, 0, 3)
    bench.pass(60_000)
    for other in 0..<3 {
      #expect(bench.word(of: 0, at: other)?.vector.sequence(of: ReplicaID(high: 0, low: 1)) == 3)
    }
  }

  @Test("a store that was lost takes back what it said, and an own word that still holds may stand")
  func lost() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 4)
    bench.ask(1)
    let said = bench.word(of: 0, at: 1)
    putBack(&bench, 0, to: [], 0)
    bench.link(0, 1, 1)
    bench.pass(60_000)
    #expect(bench.word(of: 0, at: 1)?.vector.isEmpty == true)
    var other = HoldingsBench(2)
    other.link(0, 1)
    other.hold(0, 4)
    other.ask(1)
    putBack(&other, 0, to: [], 5)
    other.link(0, 1, 1)
    other.pass(60_000)
    #expect(other.word(of: 0, at: 0) == said && other.word(of: 0, at: 1) == said)
  }

  @Test("two copies of one device do not contradict each other without end")
  func copies() {
    var bench = HoldingsBench(3)
    // Node 1 has the device of node 0.
    let key = bench.nodes[0].device
    bench.nodes[1] = HoldingsNode(number: 1, bench.nodes[0].rules)
    bench.nodes[1].instance = UUIDValue(high: 9, low: 9)
    bench.nodes[1].members = bench.nodes[0].members
    #expect(bench.nodes[1].device == key)
    bench.link(0, 2)
    bench.link(1, 2)
    bench.hold(0, 5)
    bench.hold(1, 3)
    bench.hold(1, 3, chain: 2)
    bench.ask(2)
    bench.pass(600_000)
    #expect(bench.items.count <= 300, "at most one in five seconds and what passes it on")
  }

  @Test("a word of no member, out of scope, unsigned, changed or older is not kept")
  func refused() {
    var bench = HoldingsBench(3)
    bench.link(0, 1)
    bench.hold(0, 4)
    bench.ask(1)
    guard let id = bench.links.keys.first, let good = bench.items.first else {
      Issue.record("nothing was said")
      return
    }
    func item(_ number: UInt64, device: Int = 0, signer: Int? = nil, _ name: PartitionName = HoldingsBench.partition)
      -> HoldingsItem
    {
      let key = bench.nodes[device].device
      let holdings = Holdings(
        fleet: FleetID(.zero), device: key, partition: name, number: number, vector: bench.nodes[0].vector,
        kind: .received, ownLast: nil)
      let signature = HoldingsNode.signature(
        HoldingsNode.signedBytes(holdings), bench.nodes[signer ?? device].device)
      return HoldingsItem(
        partition: name, subject: holdings.subject, number: number, base: 0, entries: .full(holdings.vector),
        ownLast: nil, signature: signature)
    }
    guard let other = try? PartitionName("agency=Other") else { return }
    bench.nodes[1].members.remove(bench.nodes[2].device)
    let number = good.number
    for bad in [
      item(number + 1, device: 2), item(number + 1, device: 0, signer: 2), item(number - 1),
      item(number + 1, device: 0, signer: 0, other),
      HoldingsItem(
        partition: good.partition, subject: good.subject, number: number + 1, base: 0, entries: good.entries,
        ownLast: nil, signature: good.signature),
    ] {
      bench.with(0) { _, _ in [.send(id, .records([bad]))] }
      #expect(bench.nodes[1].stored.count == 1 && bench.word(of: 0, at: 1)?.number == number)
    }
    let fine = item(number + 1)
    bench.with(0) { _, _ in [.send(id, .records([fine]))] }
    #expect(bench.word(of: 0, at: 1)?.number == number + 1)
  }

  @Test("of one device so many entries are kept, and no more")
  func bounded() {
    var book = HoldingsBook()
    let device = PublicKey(Digest(words: (1, 2, 3, 4)))
    var taken = 0
    for number in 1...40 as ClosedRange<UInt64> {
      var vector = VersionVector()
      for low in 1...4_096 as ClosedRange<UInt64> {
        vector[ReplicaID(high: number, low: low)] = ChainPosition(sequence: 1, tip: .zero)
      }
      let holdings = Holdings(
        fleet: FleetID(.zero), device: device, partition: HoldingsBench.partition, number: 1, vector: vector,
        kind: .received, ownLast: nil)
      let signature = HoldingsNode.signature([], device)
      let isTaken = book.put(
        KeptHoldings(SignedHoldings(holdings, signature: signature), heard: 0),
        in: PartitionID(Digest(words: (number, 0, 0, 0)))
      ) { _, _ in true }
      if isTaken { taken += 1 }
    }
    #expect(taken == HoldingsBook.deviceEntryLimit / 4_096 && book.count == taken)
  }

  @Test("what was read back from the backend is said at once, less of it soon, more after ten minutes")
  func backend() {
    var bench = HoldingsBench(2)
    bench.link(0, 1)
    bench.hold(0, 4)
    let (whole, name) = (bench.nodes[0].vector, HoldingsBench.partition)
    bench.with(0) { $0.readBack(name, whole, $1) }
    #expect(bench.word(of: 0, at: 1, .backend)?.vector == whole)
    bench.with(0) { $0.readBack(name, VersionVector(), $1) }
    #expect(bench.word(of: 0, at: 1, .backend)?.vector == whole)
    bench.pass(6_000)
    #expect(bench.word(of: 0, at: 1, .backend)?.vector.isEmpty == true)
    bench.with(0) { $0.readBack(name, whole, $1) }
    bench.pass(590_000)
    #expect(bench.word(of: 0, at: 1, .backend)?.vector.isEmpty == true)
    bench.pass(20_000)
    #expect(bench.word(of: 0, at: 1, .backend)?.vector == whole)
  }
}
