import Foundation
import Identity
import Replication
import Storage
import TestSupport
import Testing
import Wire

@testable import Engine
@testable import Seamesh

/// Whether a node may be wiped, by nodes of one fleet.
@Suite("Safe to wipe", .serialized)
struct WipeTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("agency=W") }

  private func fleet(_ count: Int) throws -> TestFleet {
    let fleet = try TestFleet(count)
    for node in fleet.nodes { try node.subscribe("agency=W") }
    for index in 0..<4 { _ = try fleet.nodes[0].put(partition, "reports", Text("r\(index)"), body(["n": .int(1)])) }
    let large = String(repeating: "a long report ", count: 5_000)
    _ = try fleet.nodes[0].put(partition, "reports", "large", body(["text": .string(Text(large))]))
    for node in fleet.nodes {
      try eventually { try node.read(partition, "reports", id: .string("large")) != nil }
    }
    return fleet
  }

  private func judge(_ node: Node, asking: Bool = true) throws -> WipeReport {
    try node.safeToWipe(WipeRules(), asking: asking)
  }

  @Test("one device alone says no, and names what would be lost and that nobody is there")
  func alone() throws {
    let fleet = try fleet(1)
    let report = try judge(fleet.nodes[0])
    withExtendedLifetime(fleet) {}
    #expect(!report.isSafe && report.changes == 5 && report.lostChanges == 5 && report.lostPartitions == 1)
    let loss = try #require(report.losses.first)
    #expect(loss.partition == "agency=W" && loss.documents.count == 3 && loss.reachable.isEmpty)
    #expect(loss.documents.first == WipeReport.Document(collection: "reports", id: .string("r0")))
    #expect(report.notes.contains { $0.contains("root key") })
    #expect(report.nowhereChanges == 5)
    #expect(report.obstacles.count == 1 && report.obstacles[0].contains("alone in its fleet"))
  }

  @Test("who is in reach and could take it, or does not subscribe to it, is told beside the one that has it")
  func takers() throws {
    let fleet = try TestFleet(3)
    for node in fleet.nodes.prefix(2) { try node.subscribe("agency=W") }
    _ = try fleet.nodes[0].put(partition, "reports", "r", body(["n": .int(1)]))
    var loss: WipeReport.Loss?
    try eventually {
      loss = try judge(fleet.nodes[0]).losses.first
      return loss?.holders == ["node 1"]
    }
    #expect(loss?.reachable == [])
    #expect(loss?.hindrances.count == 1 && loss?.hindrances.first?.contains("node 2; it takes a subscription") == true)
    _ = try fleet.nodes[0].unsubscribe("agency=W")
    let unheard = try judge(fleet.nodes[0], asking: false).losses.first
    #expect(unheard?.holders == [] && unheard?.hindrances.first?.contains("seamesh subscribe agency=W") == true)
    withExtendedLifetime(fleet) {}
  }

  @Test("a device that was ended says that no waiting makes a yes of its no, and how it was ended")
  func ended() throws {
    let fleet = try fleet(3)
    try fleet.restart(1, peers: [])
    _ = try fleet.nodes[1].put(partition, "reports", "late", body(["n": .int(1)]))
    _ = try fleet.nodes[0].change(RightsChange(.retire(device: "node 1"), isConfirmed: true))
    try fleet.restart(1)
    try eventually { try !fleet.nodes[1].status().endedBy.isEmpty }
    let report = try judge(fleet.nodes[1])
    #expect(!report.isSafe && report.obstacles.count == 1, "\(report.obstacles)")
    #expect(report.obstacles.first?.contains("no member any more, retired by node 0, ") == true, "\(report.obstacles)")
  }

  @Test("a store from before a restore and records put aside are named by doctor and status, as what is not checked")
  func setAside() throws {
    let fleet = try fleet(3)
    let node = fleet.nodes[0]
    try eventually { try judge(node).isSafe }
    #expect(try node.doctor().map(\.code) == ["healthy"] && node.status().setAside.isEmpty)
    let store = fleet.path(of: 0) + "/seamesh.db.before-restore-20260101T000000Z"
    let records = fleet.path(of: 0) + "/import-aside-20260101T000000Z-1.jsonl"
    for name in [store, records] { try Data("{}\n".utf8).write(to: URL(fileURLWithPath: name)) }
    #expect(try node.status().setAside == [store, records])
    let findings = try node.doctor()
    #expect(findings.map(\.code) == ["store-set-aside", "records-set-aside"], "\(findings)")
    try #require(findings.count == 2)
    #expect(findings.map(\.level) == [.warning, .warning])
    #expect(findings[0].message.contains("\(store) is the store from before a restore. It is not checked"))
    #expect(findings[1].message.contains(records))
    // Of a store that had lost its database only the log was there to be set aside.
    for name in [store, records] { try FileManager.default.removeItem(atPath: name) }
    try Data([1]).write(to: URL(fileURLWithPath: store + "-wal"))
    let report = try judge(node)
    #expect(!report.isSafe && report.obstacles.first?.hasPrefix(store + "-wal is the store") == true)
  }

  @Test("one other device is not enough; it is named as the one that has it, and not as one that could take it")
  func one() throws {
    let fleet = try fleet(2)
    let report = try judge(fleet.nodes[0])
    withExtendedLifetime(fleet) {}
    #expect(
      !report.isSafe && report.losses.first?.holders == ["node 1"] && report.evidence.map(\.label) == ["node 1"])
    #expect(report.losses.first?.reachable == [])
    #expect(report.obstacles.count == 1 && report.obstacles[0].contains("has 1 other device, and 2 are asked for"))
    #expect(report.lostChanges == 5 && report.nowhereChanges == 0, "all of it is on one other device")
  }

  @Test(
    "with two that hold it it is yes with their ages, and no once one of them is revoked, or retired",
    arguments: [true, false])
  func two(isRevoked: Bool) throws {
    let fleet = try fleet(3)
    let node = fleet.nodes[0]
    #expect(try !judge(node, asking: false).isSafe, "nobody has said so yet")
    let report = try judge(node)
    #expect(report.isSafe && report.lostChanges == 0 && report.losses.isEmpty)
    #expect(report.evidence.map(\.label) == ["node 1", "node 2"])
    #expect(report.evidence.allSatisfy { $0.ageMilliseconds.map { $0 < 60_000 } ?? false })
    let device = fleet.nodes[1].files.device.text
    let action: RightsChange.Action =
      isRevoked ? .revoke(device: device, isCompromised: false, at: nil) : .retire(device: device)
    _ = try node.change(RightsChange(action, isConfirmed: true))
    let after = try judge(node, asking: false)
    #expect(!after.isSafe && after.lostChanges == 5)
    #expect(after.evidence.map(\.label) == ["node 2"] && after.uncounted.map(\.flaw) == ["ended"])
  }

  @Test("a write makes it no until others have said that they hold it as well, and so do records that were put aside")
  func later() throws {
    let fleet = try fleet(3)
    let node = fleet.nodes[0]
    #expect(try judge(node).isSafe)
    _ = try node.put(partition, "reports", "r9", body(["n": .int(1)]))
    #expect(try !judge(node, asking: false).isSafe)
    try eventually { try judge(node).isSafe }
    let path = fleet.path(of: 0) + "/import-aside-20260101T000000Z-1.jsonl"
    try Data("{\"record\":1}\n{\"record\":2}\n".utf8).write(to: URL(fileURLWithPath: path))
    let report = try judge(node)
    #expect(!report.isSafe && report.lostChanges == 0)
    #expect(report.asideFiles == [WipeReport.AsideFile(path: path, records: 2)])
    try Data().write(to: URL(fileURLWithPath: path))
    #expect(try judge(node).isSafe)
    let aside = fleet.path(of: 0) + "/seamesh.db.before-restore-20260101T000000Z"
    for name in [aside, aside + "-wal"] { try Data([1]).write(to: URL(fileURLWithPath: name)) }
    let beside = try judge(node)
    #expect(!beside.isSafe && beside.obstacles.count == 1 && beside.obstacles.first?.contains(aside) == true)
    for name in [aside, aside + "-wal"] { try FileManager.default.removeItem(atPath: name) }
    #expect(try judge(node).isSafe)
  }

  @Test("what a device held that said yes is byte for byte on the others when it is gone")
  func wiped() throws {
    let fleet = try fleet(3)
    _ = try fleet.nodes[1].put(partition, "reports", "other", body(["n": .int(2)]))
    try eventually { try fleet.nodes[0].read(partition, "reports", id: .string("other")) != nil }
    try eventually { try judge(fleet.nodes[0]).isSafe }
    let held = try content(fleet.nodes[0])
    #expect(held.runs.count >= 2 && held.payloads.count == 1)
    fleet.nodes[0].stop()
    try FileManager.default.removeItem(atPath: fleet.path(of: 0))
    for other in fleet.nodes.dropFirst() {
      let there = try content(other)
      #expect(there.runs.isSuperset(of: held.runs) && there.payloads.isSuperset(of: held.payloads))
    }
  }

  private struct Content {
    var runs: Set<[UInt8]>
    var payloads: Set<[UInt8]>
  }

  private func content(_ node: Node) throws -> Content {
    try node.readStore { store in
      let all = try store.runs(cameAfter: 0, within: ArrivalLimits(bytes: .max, changes: .max)) { _, _, _, _ in true }
      let payloads = try all.runs.compactMap { arrived in
        try RunCodec.apartPayload(of: arrived.run.body[...]).flatMap { try store.largePayload($0) }
      }
      return Content(runs: Set(all.runs.map(\.run.body)), payloads: Set(payloads))
    }
  }
}
