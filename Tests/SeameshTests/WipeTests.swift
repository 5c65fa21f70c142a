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
  }

  @Test("one other device is not enough; that could take it is named")
  func one() throws {
    let fleet = try fleet(2)
    let report = try judge(fleet.nodes[0])
    withExtendedLifetime(fleet) {}
    #expect(
      !report.isSafe && report.losses.first?.reachable == ["node 1"] && report.evidence.map(\.label) == ["node 1"])
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
    try FileManager.default.removeItem(atPath: aside)
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
