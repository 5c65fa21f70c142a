import Identity
import Replication
import Storage
import Testing

@testable import Engine

/// What own and foreign changes become where a grant falls and comes back.
@Suite struct NarrowingTests {
  private let partition: PartitionName
  private let bench: EngineBench

  init() throws {
    partition = try PartitionName("room=1")
    bench = try EngineBench()
  }

  private func fill(_ ids: [Text]) throws { for id in ids { try bench.nodes[0].write(partition, Put(id)) } }

  /// The end of node 0's chain at a change of its own.
  private func end(at sequence: UInt64) throws -> Statement.PartitionEnds {
    let node = bench.nodes[0]
    let replica = try #require(node.state.own.replica?.id)
    let runs = try LogReader(node.state).summaries(node.id(of: partition), replica, from: 1)
    let run = try #require(runs.first { $0.first <= sequence && $0.last >= sequence })
    let position = ChainPosition(sequence: sequence, tip: run.hashes[Int(sequence - run.first)].tip)
    return Statement.PartitionEnds(
      partition: partition.text, chains: [Statement.ChainEnd(replica: replica, position: position)])
  }

  /// A member comes by who knows of the statement.
  private func say(_ statement: Statement) throws {
    let messenger = try bench.messenger(statement)
    bench.cut(bench.meet(messenger, 0))
  }

  private func shows(_ id: Text) throws -> Bool { try bench.nodes[0].shown(partition, id) != nil }

  @Test("after a restart an own chain goes on at its last change, also where that did not count")
  func ownChainGoesOn() throws {
    try fill(["a", "b", "c"])
    try say(try bench.grant(.read, ends: [try end(at: 2)]))
    #expect(try !shows("c"))
    try bench.restart(0)
    try say(try bench.grant(.write))
    #expect(try shows("c"))
    try fill(["d"])
    #expect(try shows("d"))
    #expect(bench.nodes[0].accepted(partition).sorted.map(\.position.sequence) == [4])
  }

  @Test("a node whose own last run does not read starts all the same, and writes under a new replica")
  func ownRunDoesNotRead() throws {
    try fill(["a"])
    let before = try #require(bench.nodes[0].state.own.replica)
    try bench.nodes[0].store.store.database.execute("UPDATE runs SET body=x'00'")
    try bench.restart(0)
    try fill(["b"])
    #expect(try shows("a") && shows("b"))
    #expect(bench.nodes[0].state.own.replica != before)
  }

  @Test("a statement and the documents that it takes away reach the disk together or not at all")
  func statementWithDocuments() throws {
    try fill(["a", "b", "c"])
    let narrowed = try bench.grant(.read, ends: [try end(at: 2)])
    try bench.nodes[0].refuse("DELETE", on: "documents")
    try say(narrowed)
    try bench.restart(0)
    let isStored = bench.nodes[0].state.mesh.authority[narrowed.id] != nil
    #expect(try isStored == !shows("c"))
    #expect(!isStored)
  }

  @Test("who follows commits hears of a narrowing: less counts, no run came, and what went is named")
  func record() throws {
    try fill(["a", "b", "c"])
    try say(try bench.grant(.read, ends: [try end(at: 2)]))
    let record = try #require(bench.nodes[0].feed.records.last)
    #expect(record.arrivals == nil)
    #expect(record.partitions.map(\.name) == [partition])
    #expect(record.partitions.first?.before.sorted.map(\.position.sequence) == [3])
    #expect(record.partitions.first?.accepted.sorted.map(\.position.sequence) == [2])
    #expect(record.ids == ["c"])
  }
}
