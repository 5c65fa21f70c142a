import Foundation
import Identity
import Replication
import Storage
import TestSupport
import Testing
import Transport
import Wire

@testable import Forwarding
@testable import Seamesh

/// A fleet with a history, all of it in a ledger: a relay, a vessel whose directory was copied so that its chain forks, a
/// device that was ended so that its work does not count, and a payload too large for its run.
final class LedgerFleet {
  let server: TestPostgreSQL
  let relay: ForwardingNode
  /// Directories of devices that are stopped.
  private(set) var vessel = ""
  private var directories: [String] = []

  /// - Parameter voids: one more device whose end lists nothing, so that its replica was never declared by a member.
  init(voids: Bool = false) throws {
    (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    _ = try PostgreSQLSetUp.perform(
      server.ownerAddress(), fleet: relay.node.fleet, granting: PostgreSQLGrants(relay: "relay", auditor: "auditor"),
      environment: [:])
    try relay.node.subscribe("agency=*")
    for index in 0..<4 { try relay.put("agency=\(index % 2)", "r\(index)") }
    try relay.put("agency=G", "large", String(repeating: "a long report ", count: 5_000))
    try fork()
    try endedDevice("ended", "bad")
    if voids { try endedDevice("void", "worse", at: "2020-01-01T00:00:00Z") }
    // Contexts that name all of them, each next to the one before.
    for index in 0..<6 { try relay.put("agency=G", "late\(index)") }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    _ = waitUntil { relay.forwarding?.status.lagChanges == 0 }
  }

  deinit {
    relay.stop()
    for path in directories { try? FileManager.default.removeItem(atPath: path) }
  }

  var auditorURL: String {
    "postgresql://auditor:s3cret@localhost:\(server.port)/fleet?sslrootcert=\(server.directory)/root.crt"
  }

  private func fork() throws {
    let (original, copy) = try relay.clonedMember()
    directories += [original, copy]
    vessel = original
    for (path, name) in [(original, "first"), (copy, "second")] {
      let alone = try ForwardingNode(directory: path)
      for index in 0..<3 { try alone.put("agency=G", "\(name)\(index)") }
      alone.stop()
      let meeting = try ForwardingNode(directory: path, peers: [relay.address])
      try expectShown(Text("\(name)2"))
      meeting.stop()
    }
  }

  /// What it wrote before the moment of its end stays, what it wrote after it falls.
  private func endedDevice(_ label: String, _ bad: String, at moment: String? = nil) throws {
    let path = NSTemporaryDirectory() + "seamesh-ended-" + String(UUID().uuidString.prefix(8))
    directories.append(path)
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let code = try relay.node.invite(InviteRequest(user: "eve@test.example", role: "officer", profile: ValueMap()))
    _ = try NodeSetup.join(path, code: code.code, label: Text(label), peers: [relay.address], usesDiscovery: false)
    let ended = try ForwardingNode(directory: path, peers: [relay.address])
    try ended.node.subscribe("agency=G")
    let partition = try PartitionName("agency=G")
    let came = try waitUntil { try ended.node.read(partition, "reports", id: .string("large")) != nil }
    #expect(came)
    try ended.put("agency=G", label)
    try expectShown(Text(label))
    let end = moment ?? LedgerFleet.now()
    try ended.put("agency=G", "large", "as it should not be")
    for index in 0..<3 { try ended.put("agency=G", "\(bad)\(index)") }
    try expectShown(Text("\(bad)2"))
    ended.stop()
    let outcome = try relay.node.change(
      RightsChange(.revoke(device: label, isCompromised: false, at: end), isConfirmed: true))
    #expect(outcome.isSigned)
    let fell = try waitUntil { try relay.node.read(partition, "reports", id: .string(Text("\(bad)2"))) == nil }
    #expect(fell)
  }

  /// A moment after all that has arrived, and before all that will.
  private static func now() -> String {
    let start = WallClock.milliseconds
    _ = waitUntil { WallClock.milliseconds > start }
    let text = String(decoding: CalendarTime.text(WallClock.milliseconds) ?? [], as: UTF8.self)
    let last = WallClock.milliseconds
    _ = waitUntil { WallClock.milliseconds > last }
    return text
  }

  private func expectShown(_ id: Text) throws {
    let came = try waitUntil {
      try relay.node.read(PartitionName("agency=G"), "reports", id: .string(id)) != nil
    }
    #expect(came, "\(id.string) did not come")
  }

  /// All of it in memory, to be spoilt.
  func picture() throws -> LedgerPicture {
    try LedgerPicture(PostgreSQLLedgerTables(server.ownerAddress(), environment: [:]))
  }
}

/// The tables of a ledger in memory.
final class LedgerPicture: LedgerTables {
  let name = "a picture"
  private(set) var rows: [LedgerTable: [LedgerRow]] = [:]

  init(_ tables: any LedgerTables) throws {
    for table in LedgerTable.allCases {
      var after: [RowValue]?
      while case let page = try tables.page(of: table, after: after, rows: 1_024), !page.isEmpty {
        rows[table, default: []] += page
        after = page.last?.key
      }
    }
  }

  var hasDocumentSums: Bool { rows[.documents] != nil }
  var hasDocumentNotes: Bool { rows[.documentPositions] != nil && rows[.documentSteps] != nil }

  /// With other rows in one table.
  func with(_ table: LedgerTable, _ change: (inout [LedgerRow]) -> Void) -> LedgerPicture {
    let copy = LedgerPicture(rows)
    change(&copy.rows[table, default: []])
    copy.rows[table]?.sort { $0.key.lexicographicallyPrecedes($1.key) }
    return copy
  }

  private init(_ rows: [LedgerTable: [LedgerRow]]) { self.rows = rows }

  func page(of table: LedgerTable, after key: [RowValue]?, rows limit: Int) throws -> [LedgerRow] {
    let all = rows[table] ?? []
    guard let key else { return Array(all.prefix(limit)) }
    // Small pages, so that every walk turns some.
    return Array(all.lazy.filter { key.lexicographicallyPrecedes($0.key) }.prefix(min(limit, 3)))
  }

  func row(of table: LedgerTable, _ key: [RowValue]) throws -> LedgerRow? { rows[table]?.first { $0.key == key } }

  func count(of table: LedgerTable) throws -> Int64 { Int64(rows[table]?.count ?? 0) }
}
