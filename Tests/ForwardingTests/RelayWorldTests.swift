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
