import Foundation
import Replication
import Testing

@testable import Seamesh

@Suite(.serialized) struct RestoreTests {
  let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Galapagos") }

  @Test(
    "a restored node writes under a new replica id, gets back from its peer what the backup lacks, and loses nothing")
  func restore() throws {
    let fleet = try TestFleet(2)
    try fleet.nodes[1].subscribe("agency=*")
    try fleet.nodes[0].put(partition, "reports", "early", body(["n": .int(1)]))
    let before = try #require(try fleet.nodes[0].status().replica)
    let backup = fleet.path(of: 0) + "/monday.backup"
    try fleet.nodes[0].backup(to: backup) { _, _ in }
    try fleet.nodes[0].put(partition, "reports", "late", body(["n": .int(2)]))
    try eventually { try fleet.nodes[1].read(partition, "reports", id: .string("late")) != nil }

    fleet.nodes[0].stop()
    let aside = try NodeSetup.restore(fleet.path(of: 0), from: backup) { _, _ in }
    #expect(FileManager.default.fileExists(atPath: try #require(aside)))
    try fleet.restart(0, peers: [fleet.peerAddress(of: fleet.nodes[1])])
    try eventually { try fleet.nodes[0].read(partition, "reports", id: .string("late")) != nil }
    try fleet.nodes[0].put(partition, "reports", "after", body(["n": .int(3)]))
    try eventually { try fleet.nodes[1].read(partition, "reports", id: .string("after")) != nil }
    #expect(try fleet.nodes[0].status().replica != before)
    #expect(try fleet.nodes[0].digest(partition) == fleet.nodes[1].digest(partition))
  }

  @Test("a backup of another fleet is refused, and the present store stays")
  func foreign() throws {
    let (mine, other) = (try TestFleet(1), try TestFleet(1))
    try mine.nodes[0].put(partition, "reports", "r", body(["n": .int(1)]))
    let backup = other.path(of: 0) + "/other.backup"
    try other.nodes[0].backup(to: backup) { _, _ in }
    mine.nodes[0].stop()
    #expect(throws: NodeError.self) { try NodeSetup.restore(mine.path(of: 0), from: backup) { _, _ in } }
    try mine.restart(0)
    #expect(try mine.nodes[0].read(partition, "reports", id: .string("r")) != nil)
  }
}
