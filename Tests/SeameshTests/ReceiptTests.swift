import Foundation
import Identity
import Replication
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh

/// How safe a document is, on nodes of one fleet.
@Suite("Receipts", .serialized)
struct ReceiptTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("agency=W") }

  private func fleet(_ count: Int, role: Text = "officer") throws -> TestFleet {
    let fleet = try TestFleet(count, role: role)
    for node in fleet.nodes { try node.subscribe("agency=W") }
    _ = try fleet.nodes[0].put(partition, "reports", "r1", body(["n": .int(1)]))
    for node in fleet.nodes {
      try eventually { try node.read(partition, "reports", id: .string("r1")) != nil }
    }
    return fleet
  }

  private func report(_ node: Node, _ id: String = "r1", asking: Bool = false) throws -> ReceiptReport {
    try node.receipts(partition, "reports", id: .string(Text(id)), asking: asking)
  }

  @Test("asked, those who hold a document say so, and a later change takes it back until they have that as well")
  func asking() throws {
    let fleet = try fleet(3)
    let node = fleet.nodes[0]
    #expect(try report(node).holders.isEmpty, "nobody was asked yet")
    let first = try report(node, asking: true)
    #expect(Set(first.holders.map(\.label)) == ["node 1", "node 2"] && first.changes.map(\.sequence) == [1])
    #expect(first.holders.allSatisfy { $0.ageMilliseconds < 60_000 && $0.standing == .member })
    #expect(first.relays.isEmpty && first.forwarders.isEmpty)
    for other in fleet.nodes.dropFirst() { other.stop() }
    _ = try node.put(partition, "reports", "r1", body(["n": .int(2)]))
    let second = try report(node, asking: true)
    #expect(second.holders.isEmpty && second.words.filter { !$0.isSelf }.map(\.lacking) == [1, 1])
    _ = try node.put(partition, "reports", "r2", body(["n": .int(2)]))
    #expect(try report(node, "r2").holders.isEmpty && node.receipts(partition, asking: false).holders.isEmpty)
  }

  @Test(
    "a receipt that is watched is told again when a word comes, when the document changes, and when a device is ended")
  func watching() throws {
    let fleet = try fleet(2)
    let node = fleet.nodes[0]
    let document = ReceiptPlace.Document("reports", id: .string("r1"))
    let quiet = try node.watchReceipts(ReceiptPlace(partition, document), asking: false)
    let asking = try node.watchReceipts(ReceiptPlace(partition, document), asking: true)
    func next(_ watch: any ReceiptSubscription) throws -> ReceiptReport? { try watch.next(timeoutMilliseconds: 30_000) }
    #expect(try next(quiet)?.holders.isEmpty == true && next(asking)?.changes.map(\.sequence) == [1])
    // The peer is asked by one of them, and both hear what it says.
    try eventually { try asking.next(timeoutMilliseconds: 1_000)?.holders.map(\.label) == ["node 1"] }
    try eventually { try quiet.next(timeoutMilliseconds: 1_000)?.holders.map(\.label) == ["node 1"] }
    _ = try node.put(partition, "reports", "r1", body(["n": .int(2)]))
    let changed = try next(quiet)
    #expect(changed?.changes.map(\.sequence) == [2] && changed?.holders.isEmpty == true)
    try eventually { try asking.next(timeoutMilliseconds: 1_000)?.holders.map(\.label) == ["node 1"] }
    let device = fleet.nodes[1].files.device.text
    _ = try node.change(RightsChange(.revoke(device: device, isCompromised: false, at: nil), isConfirmed: true))
    try eventually {
      try quiet.next(timeoutMilliseconds: 1_000)?.words.contains { !$0.isSelf && $0.standing == .ended } == true
    }
    for watch in [quiet, asking] { watch.cancel() }
    node.stop()
    #expect(throws: NodeError.self) {
      _ = try node.watchReceipts(ReceiptPlace(partition), asking: false).next(timeoutMilliseconds: 0)
    }
  }

  private func noteBackend(_ node: Node) throws {
    let partition = partition
    try node.engine.ask { engine in
      let id = engine.state.identity.id(of: partition)
      engine.noteBackend(partition, has: engine.state.mesh.partitions[id]?.log.accepted ?? VersionVector())
    }
  }

  @Test("a member whose role is no forwarder's cannot say for all that a document is in the backend; an admin can")
  func witness() throws {
    let fleet = try fleet(2)
    try noteBackend(fleet.nodes[1])
    try eventually { try report(fleet.nodes[0]).words.contains { $0.isOfBackend } }
    let word = try #require(try report(fleet.nodes[0]).words.first { $0.isOfBackend })
    #expect(word.standing == .unentitled && word.lacking == 0 && !word.counts)
    #expect(try report(fleet.nodes[0]).forwarders.isEmpty && report(fleet.nodes[1]).forwarders.isEmpty)
    try noteBackend(fleet.nodes[0])
    try eventually { try report(fleet.nodes[1]).forwarders.map(\.label) == ["node 0"] }
  }

  @Test(
    "what a relay or the office has read back is the rung of the backend, for everybody",
    arguments: ["relay", "office"])
  func backend(role: String) throws {
    let fleet = try fleet(2, role: Text(role))
    try noteBackend(fleet.nodes[1])
    try eventually { try report(fleet.nodes[0]).forwarders.map(\.label) == ["node 1"] }
    #expect(
      try report(fleet.nodes[0]).holders.isEmpty, "that it is in the backend does not say that it is on the device")
  }

  @Test("the word of a device that was ended is shown and does not count")
  func standing() throws {
    let fleet = try fleet(2)
    #expect(try report(fleet.nodes[0], asking: true).holders.count == 1)
    let device = fleet.nodes[1].files.device.text
    _ = try fleet.nodes[0].change(
      RightsChange(.revoke(device: device, isCompromised: false, at: nil), isConfirmed: true))
    let ended = try report(fleet.nodes[0])
    #expect(ended.holders.isEmpty && ended.words.filter { !$0.isSelf }.map(\.standing) == [.ended])
    #expect(ended.words.filter { !$0.isSelf }.map(\.lacking) == [0])
  }

  @Test("a deleted document is as safe as everything in its partition; one that never was is not found")
  func deleted() throws {
    let fleet = try fleet(2)
    _ = try fleet.nodes[0].put(partition, "reports", "r2", body(["n": .int(2)]))
    _ = try fleet.nodes[0].write(
      partition, [DocumentRequest(collection: "reports", id: .string("r1"), action: .delete)])
    let report = try report(fleet.nodes[0], asking: true)
    #expect(report.isOfWholePartition && report.changes.map(\.sequence) == [3])
    let node = fleet.nodes[0]
    for ask in [
      { try node.receipts(partition, "reports", id: .string("no"), asking: false) },
      { try node.receipts(PartitionName("agency=V"), asking: false) },
    ] {
      let error = #expect(throws: NodeError.self) { _ = try ask() }
      #expect(error?.code == .notFound)
    }
  }
}
