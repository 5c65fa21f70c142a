import Forwarding
import Replication
import Testing

@testable import Simulation

/// A mark that one relay had set is another's behind a batch: as a ledger has it, and as one has it that breaks the rule.
@Suite("The onlooker looks at what a relay held when it spoke") struct RelayWordTests {
  private let world: World
  private let relay: SimulatedNode
  private let full: NodeBook
  private let (before, after): (ModelLedger, ModelLedger)

  init() throws {
    var options = SimulationOptions()
    (options.nodes, options.partitions, options.faults) = (2...2, 1...1, [])
    (options.troubledMilliseconds, options.hasRelays, options.usesDisk) = (6_000, true, true)
    world = World(seed: 3, options)
    try #require(world.run().violations.isEmpty)
    let shore = try #require(world.shore)
    relay = world.nodes[try #require(shore.relays.first)]
    full = relay.directory.book
    var (before, after) = (shore.ledger, shore.ledger)
    let (chain, mark) = try #require(before.marks.first { $0.value.position.sequence > 0 })
    before.marks[chain] = ModelLedger.Mark(position: mark.position, judge: DeviceID(.zero))
    after.marks[chain] = ModelLedger.Mark(position: mark.position, judge: relay.key.device)
    (self.before, self.after) = (before, after)
  }

  private func violations(holding book: NodeBook) -> [String] {
    world.oracle.shore.words.check(before, after, by: relay, holding: book)
    return world.report.violations.map(\.rule)
  }

  @Test("who held all that the ledger has may replace another's word, and may do so late when its store has gone back")
  func knewAll() {
    relay.directory.book = NodeBook()
    #expect(violations(holding: full) == [])
  }

  @Test("who lacked a statement breaks I9, though it came to the store meanwhile")
  func lackedStatement() throws {
    var book = full
    let lacking = try #require(full.statements.values.first { $0.isOfFleet && after.statements[$0.id] != nil })
    book.statements[lacking.id] = nil
    #expect(violations(holding: book) == ["I9"])
  }

  @Test("who lacked a change breaks I9, though it came to the store meanwhile")
  func lackedChange() {
    var book = full
    book.partitions = [:]
    #expect(violations(holding: book) == ["I9"])
  }

  @Test("a call that comes late is held against what its relay held when it was lost")
  func late() {
    var late = LateCalls(of: SimulationRandom(seed: 1))
    while !late.keep(LedgerBatch(), by: relay, at: 0) {}
    relay.directory.book = NodeBook()
    #expect(late.take(at: .max).map(\.book.statements.count) == [full.statements.count])
  }
}
