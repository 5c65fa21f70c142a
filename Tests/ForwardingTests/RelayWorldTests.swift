import Replication
import TestSupport
import Testing

@testable import Forwarding

@Suite("Two forwarders and one ledger in memory")
struct RelayWorldTests {
  @Test(
    "whatever fails, is refused, refuses the other's word or is put back, the ledger and its documents come to equal the stores",
    arguments: 0..<300)
  func faults(seed: Int) {
    var limits = ForwarderLimits()
    limits.batchChanges = 4
    var world = RelayWorld(seed: UInt64(seed), limits: limits)
    world.failuresOf100 = seed % 3 == 0 ? 0 : 12
    let mayGoBack = seed % 4 == 0
    world.ledger.rejects = { place, state in place.key.id == [1] && state.count % 3 == 1 }
    var copy = world.ledger
    for _ in 0..<150 {
      let relay = Int.random(in: 0...1, using: &world.random)
      switch Int.random(in: 0..<40, using: &world.random) {
      case 0..<6: world.write(at: relay, chain: UInt64(relay) + 2 * .random(in: 0...1, using: &world.random))
      // Behind a statement all documents are sent again, which hides much.
      case 6 where seed % 2 == 0: world.cut(at: relay)
      case 7..<10: world.meet()
      case 10: world.restart(relay)
      case 11 where mayGoBack: copy = world.ledger
      case 12 where mayGoBack: world.ledger = copy
      default: world.step(relay)
      }
    }
    world.failuresOf100 = 0
    if seed % 5 < 3 { stopOne(&world) }
    world.meet()
    // What went back without anything being written is noticed with the next connection.
    if mayGoBack { for relay in 0...1 { world.restart(relay) } }
    for _ in 0..<4 { world.look() }
    expectEqual(world, seed)
  }

  @Test("what a ledger that was put back between two batches of documents lost is sent again")
  func putBackBetweenDocuments() throws {
    var world = RelayWorld(seed: 1, limits: ForwarderLimits())
    world.documentRoom = 3
    world.relays[1].isStopped = true
    for chain in 0..<3 { for _ in 0..<3 { world.write(at: 0, chain: UInt64(chain)) } }
    func stepUntil(_ documents: Int) throws {
      for _ in 0..<100 where world.ledger.documents.count < documents { world.step(0) }
      try #require(world.ledger.documents.count == documents && world.ledger.positions.isEmpty)
    }
    try stepUntil(3)
    let dump = world.ledger
    try stepUntil(6)
    world.ledger = dump
    world.settle()
    world.look()
    #expect(world.ledger.documents.count == 9)
    #expect(world.relays[0].forwarder.state == .caughtUp)
  }

  @Test("statements that a ledger lost are sent again by whoever holds them, though nothing is written any more")
  func lostStatements() throws {
    var world = RelayWorld(seed: 1, limits: ForwarderLimits())
    world.write(at: 0, chain: 1)
    world.meet()
    world.settle()
    world.cut(at: 0)
    world.settle()
    world.meet()
    world.settle()
    try #require(world.ledger.store.cuts.count == 1)
    world.relays[0].isStopped = true
    // Of what the one that is left brought nothing is lost.
    world.ledger.store.cuts.removeAll()
    for _ in 0..<3 { world.look() }
    #expect(world.ledger.store.cuts == world.relays[1].store.cuts)
    #expect(world.relays[1].forwarder.state == .caughtUp)
  }

  @Test("a document that a relay brings which lacks something, where there is none, is set right by one that knows")
  func firstWordOfWhoLacks() throws {
    var world = RelayWorld(seed: 1, limits: ForwarderLimits())
    world.write(at: 0, chain: 1)
    world.meet()
    let run = try #require(world.relays[0].store.log.first)
    world.relays[0].store.cuts.append(ModelStore.Cut(number: 1, chain: run.chain, last: 0))
    world.relays[1].isStopped = true
    world.settle()
    #expect(world.ledger.documents.isEmpty)
    world.relays[1].isStopped = false
    world.settle()
    #expect(world.ledger.documents[ModelStore.place(run)]?.judge == 1, "for whoever lacks something it is there")
    for _ in 0..<4 { world.look() }
    #expect(world.ledger.documents[ModelStore.place(run)]?.state == [])
  }

  @Test(
    "what a copy of a relay's machine replaced is set right by the one that is left, though nothing is written any more"
  )
  func copyThatEnded() throws {
    var world = RelayWorld(seed: 1, limits: ForwarderLimits())
    world.relays[1].device = 0
    world.relays[1].isStopped = true
    for _ in 0..<4 { world.write(at: 0, chain: 1) }
    world.settle()
    let documents = world.ledger.documents.mapValues(\.state)
    world.relays[1].store.log = Array(world.relays[0].store.log.prefix(2))
    world.relays[1].isStopped = false
    world.settle()
    #expect(world.ledger.documents.mapValues(\.state) != documents)
    world.relays[1].isStopped = true
    for _ in 0..<4 { world.look() }
    #expect(world.ledger.documents.mapValues(\.state) == documents)
  }

  /// Each has something that the other lacks and sends it; then whoever is left sets right what the other has the word on.
  private func stopOne(_ world: inout RelayWorld) {
    for relay in 0...1 {
      world.write(at: relay, chain: UInt64(relay) + 2 * .random(in: 0...1, using: &world.random))
      if Bool.random(using: &world.random) { world.settle() }
    }
    world.settle()
    world.relays[.random(in: 0...1, using: &world.random)].isStopped = true
  }

  private func expectEqual(_ world: RelayWorld, _ seed: Int) {
    let (store, ledger) = (world.relays[0].store, world.ledger)
    #expect(ledger.store.log.count == store.log.count, "seed \(seed)")
    #expect(Set(ledger.store.log.map(\.hash)) == Set(store.log.map(\.hash)), "seed \(seed)")
    #expect(Set(ledger.store.cuts) == Set(store.cuts), "seed \(seed)")
    for chain in store.chains {
      #expect(ledger.marks[chain]?.position == store.accepted(chain), "seed \(seed)")
    }
    for place in Set(store.log.map(ModelStore.place)) {
      let (row, state) = (ledger.documents[place], store.state(place))
      #expect(row?.state ?? [] == state, "seed \(seed)")
      #expect((row?.refusal != nil) == (!state.isEmpty && ledger.rejects(place, state)), "seed \(seed)")
    }
    for relay in world.relays where !relay.isStopped { #expect(relay.forwarder.state == .caughtUp, "seed \(seed)") }
  }
}
