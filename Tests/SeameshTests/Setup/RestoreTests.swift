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

  @Test("what is no backup, or a damaged or absent one, is refused by its name, and the present store stays")
  func damaged() throws {
    let fleet = try TestFleet(1)
    try fleet.nodes[0].put(partition, "reports", "r", body(["n": .int(1)]))
    let backup = fleet.path(of: 0) + "/good.backup"
    try fleet.nodes[0].backup(to: backup) { _, _ in }
    fleet.nodes[0].stop()
    let whole = try Data(contentsOf: URL(fileURLWithPath: backup))
    let path = fleet.path(of: 0) + "/bad.backup"
    for content in [Data(), Data("no backup".utf8), Data(whole.prefix(whole.count / 2))] {
      try content.write(to: URL(fileURLWithPath: path))
      let error = #expect(throws: NodeError.self) { try NodeSetup.restore(fleet.path(of: 0), from: path) { _, _ in } }
      #expect(error?.message == "\(path) is damaged, or no backup of seamesh; the present store stays as it is")
    }
    for (place, code) in [(fleet.path(of: 0) + "/none", NodeError.Code.notFound), (fleet.path(of: 0), .unprocessable)] {
      let error = #expect(throws: NodeError.self) { try NodeSetup.restore(fleet.path(of: 0), from: place) { _, _ in } }
      #expect(error?.code == code && error?.message.contains(place) == true, "\(error?.message ?? "")")
    }
    let empty = #expect(throws: NodeError.self) {
      try NodeSetup.restore(fleet.path(of: 0) + "-none", from: backup) { _, _ in }
    }
    #expect(empty?.message.contains("device.key and fleet.id") == true)
    try fleet.restart(0)
    #expect(try fleet.nodes[0].read(partition, "reports", id: .string("r")) != nil)
  }

  @Test("a backup that cannot be written is the place's fault, not the node's")
  func unwritable() throws {
    let fleet = try TestFleet(1)
    let directory = fleet.path(of: 0)
    for place in ["\(directory)/none/b", "\(directory)/fleet.id/b", "\(directory)/fleet.id"] {
      let error = #expect(throws: NodeError.self) { try fleet.nodes[0].backup(to: place) { _, _ in } }
      #expect(error?.code == .unprocessable && error?.message.contains(place) == true, "\(error?.message ?? "")")
    }
  }
}
