import Engine
import Replication
import Testing

@testable import Simulation

@Suite("The onlooker holds what a write asked for against what is shown") struct IntentTests {
  private let world: World
  private let process: NodeProcess
  private let partition: PartitionName

  init() throws {
    var options = SimulationOptions()
    (options.nodes, options.faults, options.troubledMilliseconds, options.usesDisk) = (2...2, [], 1_000, false)
    world = World(seed: 1, options)
    try #require(world.run().violations.isEmpty)
    process = try #require(world.nodes[0].process)
    partition = try #require(world.plan.partitions.first)
  }

  private static let hints = WriteHints([([.key("set")], .set)])

  private func kept(_ wanted: Intent.Wanted, _ state: DocumentState?, job: Int = 1) -> KeptIntent {
    let key = DocumentKey(collection: "c", id: .int(1))
    return KeptIntent(intent: Intent(job: job, partition: partition, key: key, wanted: wanted), state: state)
  }

  private func violations(_ transaction: [KeptIntent], written: Set<Int> = [1, 2]) -> [String] {
    world.oracle.check(transaction, of: written, by: process)
    return world.report.violations.map(\.rule)
  }

  private func written(
    _ state: DocumentState, _ replica: UInt64, seen: VersionVector = VersionVector(), _ write: DocumentWrite
  ) -> DocumentState {
    var state = state
    let dot = Dot(replica: ReplicaID(high: 0, low: replica), sequence: 1)
    let context = WriteContext(dot: dot, timestamp: HybridTimestamp(rawValue: replica), context: seen)
    state.apply(AcceptedWrite(context, write))
    return state
  }

  private func setting(_ number: Int64) -> DocumentWrite {
    let operation = Operation(.set, [.key("a")], value: .int(number))
    return DocumentWrite(collection: "c", id: .int(1), kind: .create, generation: 1, operations: [operation])
  }

  private func body(_ number: Int64) -> ValueMap {
    var body = ValueMap()
    body["a"] = .int(number)
    return body
  }

  @Test("the body that was asked for is none of its business, and any other one is", arguments: [1, 2] as [Int64])
  func otherBody(shown: Int64) {
    let state = written(DocumentState(), 1, setting(shown))
    #expect(violations([kept(.body(body(1), hints: .none), state)]) == (shown == 1 ? [] : ["own write"]))
  }

  @Test("a body that is not there at all is missed, and a deleted one that is there")
  func presence() {
    #expect(violations([kept(.body(body(1), hints: .none), nil)]) == ["own write"])
    #expect(violations([kept(.gone, nil)]).count == 1)
    #expect(violations([kept(.gone, written(DocumentState(), 1, setting(1)))]).count == 2)
  }

  @Test("a set reads in the order of its members, each once; a list as it was written", arguments: [true, false])
  func sets(isSet: Bool) {
    let operations = [1, 2].map { Operation(.setAdd, [.key("set")], value: .int($0)) }
    let state = written(
      DocumentState(), 1,
      DocumentWrite(collection: "c", id: .int(1), kind: .create, generation: 1, operations: operations))
    var body = ValueMap()
    body["set"] = .array([.int(2), .int(1), .int(2)])
    #expect(violations([kept(.body(body, hints: isSet ? IntentTests.hints : .none), state)]).isEmpty == isSet)
  }

  @Test("the last word of a transaction counts, and that of a refused job does not")
  func lastWord() {
    let state = written(DocumentState(), 1, setting(2))
    let transaction = [
      kept(.body(body(1), hints: .none), state, job: 1), kept(.body(body(2), hints: .none), state, job: 2),
      kept(.gone, state, job: 3),
    ]
    #expect(violations(transaction) == [])
    #expect(violations(transaction, written: [1]) == ["own write"])
  }

  @Test("a conflict that was closed is open no more, and what was shown stays", arguments: [true, false])
  func closed(isClosed: Bool) throws {
    let both = written(written(DocumentState(), 1, setting(1)), 2, setting(2))
    let conflict = try #require(both.inbox().first)
    var seen = VersionVector()
    for replica in [1, 2] as [UInt64] {
      seen[ReplicaID(high: 0, low: replica)] = ChainPosition(sequence: 1, tip: TipHash(high: 0, low: 0))
    }
    let keep = LocalWrite.keep("c", .int(1), state: both, closing: conflict)
    let state = isClosed ? written(both, 3, seen: seen, keep) : both
    #expect(violations([kept(.decided(both.shown(), closing: [conflict]), state)]) == (isClosed ? [] : ["own write"]))
    #expect(violations([kept(.decided(body(9), closing: [conflict]), state)]).count == (isClosed ? 1 : 2))
  }
}
