import Foundation
import Identity
import Replication
import Storage
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Seamesh
@testable import SeameshCommand

@Suite(
  "A ledger is verified back to the root", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct VerifyLedgerTests {
  private func finding(_ tables: any LedgerTables, _ fleet: FleetID? = nil) throws -> LedgerFinding? {
    var verifier = LedgerVerifier(tables, folding: false, ledgerCryptography)
    do {
      _ = try verifier.verify(expecting: fleet)
      return nil
    } catch let finding as LedgerFinding {
      return finding
    }
  }

  @Test("each of 1,000 altered bytes, alone, is found, and the row that it is in, or the hole that this left, is named")
  func alteredBytes() throws {
    let fleet = try LedgerFleet()
    let whole = try fleet.picture()
    var verifier = LedgerVerifier(whole, ledgerCryptography)
    let tally = try verifier.verify(expecting: fleet.relay.node.fleet)
    #expect(tally.forkedChains == 1 && tally.payloads == 1 && tally.incompleteChains == 0 && tally.marks >= 3)
    #expect(tally.documents == whole.rows[.documents]?.count && tally.documents ?? 0 > 10)
    #expect(tally.changes == whole.rows[.changes]?.count && tally.runs == whole.rows[.runs]?.count)
    let hasDifferences = try whole.rows[.runs]?.contains { row in
      if case .increments = try LedgerRun(row).contextForm() { true } else { false }
    }
    #expect(hasDifferences == true)

    var random = SplitMix64(seed: 8)
    var perTable: [LedgerTable: Int] = [:]
    for number in 0..<1_000 {
      guard let table = LedgerTable.verified.randomElement(using: &random),
        let index = whole.rows[table]?.indices.randomElement(using: &random), let before = whole.rows[table]?[index]
      else { continue }
      var after = before
      let columns = table.columns.indices.filter { !table.columns[$0].isNote }
      guard let column = columns.randomElement(using: &random) else { continue }
      after.values[column] = RowValue.altered(before.values[column], &random)
      let what = "\(number): \(table.columns[column].name) of \(before.finding(""))"
      let found = try finding(whole.with(table) { $0[index] = after })
      guard let found else {
        Issue.record("not found: \(what)")
        continue
      }
      #expect(names(found, before, after), "\(what): \(found)")
      perTable[table, default: 0] += 1
    }
    #expect(perTable.count == LedgerTable.verified.count && perTable.values.reduce(0, +) == 1_000)
  }

  /// The row by its key as it is or as it was, or a change that the row's run no longer holds.
  private func names(_ finding: LedgerFinding, _ before: LedgerRow, _ after: LedgerRow) -> Bool {
    if finding.table == before.table { return [before.key, after.key].contains(finding.key) }
    guard before.table == .runs, finding.table == .changes, finding.key.prefix(2) == before.key.prefix(2),
      case .integer(let sequence) = finding.key[2], case .integer(let last) = before.values[2],
      case .integer(let first) = before.values[4]
    else { return false }
    return (first...last).contains(sequence)
  }

  @Test("a row that is missing in the middle, bodies that changed places, and a mark that names no change are found")
  func structure() throws {
    let fleet = try LedgerFleet()
    let whole = try fleet.picture()
    for table in [LedgerTable.runs, .changes, .partitions, .payloads, .forks] {
      for index in try #require(whole.rows[table]).indices {
        let row = try #require(whole.rows[table]?[index])
        let found = try finding(whole.with(table) { $0.remove(at: index) })
        #expect(found != nil, "without \(row.finding(""))")
      }
    }
    let cryptography = ledgerCryptography(fleet.relay.node.fleet)
    let statements = try #require(whole.rows[.statements]).compactMap {
      cryptography.statement((try? $0.bytes("encoded")) ?? []).statement
    }
    let continued = Set(statements.compactMap(\.previous))
    #expect(statements.count == whole.rows[.statements]?.count && continued.count > 3)
    for id in continued {
      let found = try finding(whole.with(.statements) { $0.removeAll { $0.key == [.bytes(id.bytes)] } })
      #expect(found?.table == .statements)
    }

    let runs = try #require(whole.rows[.runs])
    let body = try #require(LedgerTable.runs.columns.firstIndex { $0.name == "body" })
    let swapped = try finding(
      whole.with(.runs) { ($0[0].values[body], $0[1].values[body]) = (runs[1].values[body], runs[0].values[body]) })
    #expect(swapped?.table == .runs && swapped?.key == runs[0].key)

    let mark = try #require(whole.rows[.accepted]?.firstIndex { $0.values[2] > .integer(1) })
    let forged = try finding(whole.with(.accepted) { $0[mark].values[2] = .integer(1_000) })
    #expect(forged?.sentence.contains("names no change") == true && forged?.key == whole.rows[.accepted]?[mark].key)

    let change = try #require(whole.rows[.changes]?.last)
    let added = try finding(
      whole.with(.changes) { rows in
        var row = change
        row.values[3] = .bytes([UInt8](repeating: 7, count: 32))
        rows.append(row)
      })
    #expect(added?.table == .changes && added?.sentence.contains("no run has") == true)
  }

  @Test("a chain that lacks its beginning is told as that, and what there is of it is verified, forked there or not")
  func incomplete() throws {
    let fleet = try LedgerFleet()
    let whole = try fleet.picture()
    let runs = try #require(whole.rows[.runs])
    // Chains of which no context stands on the first run.
    let beginnings = runs.filter { row in
      row.values[4] == .integer(1) && row.values[2] == .integer(1)
        && runs.contains { $0.key.prefix(2) == row.key.prefix(2) && $0.values[4] == .integer(2) }
        && runs.allSatisfy { next in
          guard next.key.prefix(2) == row.key.prefix(2), next.values[4] == .integer(2) else { return true }
          if case .full? = try? LedgerRun(next).contextForm() { return true }
          return false
        }
    }
    var branches: Set<Int> = []
    for first in beginnings {
      branches.insert(runs.count { $0.key.prefix(2) == first.key.prefix(2) && $0.values[4] == .integer(2) })
      let rest = whole.with(.runs) { $0.removeAll { $0.key == first.key } }.with(.changes) { rows in
        rows.removeAll { $0.key.prefix(3) == [first.values[0], first.values[1], .integer(1)] }
      }
      var verifier = LedgerVerifier(rest, ledgerCryptography)
      let tally = try verifier.verify()
      #expect(tally.incompleteChains == 1 && tally.incomplete.first?.first == 2)
    }
    #expect(branches == [1, 2], "\(beginnings.count) chains")
  }

  @Test("at a real server with a role that may only read: altered there, each is found; put back, all holds")
  func server() throws {
    let fleet = try LedgerFleet()
    let owner = try fleet.server.owner()
    try owner.script("ALTER ROLE auditor PASSWORD 's3cret'")
    func verify() throws -> CommandResult {
      try runCommand(["verify-ledger", "--forward=\(fleet.auditorURL)"], in: fleet.server.directory)
    }
    let whole = try verify()
    #expect(whole.status == 0 && whole.output.contains("1 forked"), "\(whole)")
    let fleetID = fleet.relay.node.fleet.text
    let named = try runCommand(
      ["verify-ledger", "--json", "--forward=\(fleet.auditorURL)", "--fleet=\(fleetID)"], in: fleet.server.directory)
    #expect(named.status == 0 && named.output.contains(fleetID), "\(named)")
    let other = try runCommand(
      ["verify-ledger", "--forward=\(fleet.auditorURL)", "--fleet=\(String(repeating: "a", count: 64))"],
      in: fleet.server.directory)
    #expect(other.status == 1 && other.error.contains("not of the one that was asked for"), "\(other)")
    for (table, column) in [
      ("runs", "body"), ("runs", "hash"), ("statements", "encoded"), ("payloads", "bytes"), ("changes", "hash_before"),
      ("accepted", "tip"), ("documents", "state"),
    ] {
      let pick = "(SELECT ctid FROM seamesh.\(table) ORDER BY ctid LIMIT 1)"
      let byte = "set_byte(\(column), 5, 255 - get_byte(\(column), 5))"
      let spoil = "UPDATE seamesh.\(table) SET \(column) = \(byte) WHERE ctid = \(pick)"
      try owner.script("BEGIN; CREATE TEMP TABLE kept AS SELECT * FROM seamesh.\(table); \(spoil); COMMIT")
      let found = try verify()
      #expect(found.status == 1 && found.error.contains("seamesh.\(table) ("), "\(table).\(column): \(found)")
      try owner.script(
        "BEGIN; DELETE FROM seamesh.\(table); INSERT INTO seamesh.\(table) SELECT * FROM kept; DROP TABLE kept; COMMIT")
    }
    // What somebody did to a document by hand.
    let by = "WHERE collection = 'reports' AND id_json = '\"r1\"'"
    for spoil in [
      "body = body || '{\"text\": \"y\"}'", "alive = false", "refusal = 'none'", "sum = NULL", "generation = 9",
    ] {
      try owner.script("BEGIN; CREATE TEMP TABLE kept AS SELECT * FROM seamesh.documents; COMMIT")
      try owner.script("UPDATE seamesh.documents SET \(spoil) \(by)")
      let found = try verify()
      #expect(found.status == 1 && found.error.contains("seamesh.documents (partition "), "\(spoil): \(found)")
      #expect(found.error.contains("is not as a relay wrote it"), "\(spoil): \(found)")
      try owner.script(
        "BEGIN; DELETE FROM seamesh.documents; INSERT INTO seamesh.documents SELECT * FROM kept; DROP TABLE kept; COMMIT"
      )
    }
    #expect(try verify().status == 0)
    // Who may read the ledger alone verifies that.
    try owner.script("REVOKE SELECT ON seamesh.documents FROM auditor")
    let without = try verify()
    #expect(without.status == 0 && without.output.contains("documents were not looked at"), "\(without)")
  }

  @Test(
    "documents of an earlier format have their sums once the tables are brought up to date, and so has what comes after"
  )
  func broughtUpToDate() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    let before = PostgreSQLGrants(relay: "relay", auditor: "auditor")
    _ = try PostgreSQLSetUp.perform(
      server.ownerAddress(), fleet: relay.node.fleet, granting: before, environment: [:],
      through: PostgreSQLSchema.step8.number - 1)
    let owner = try server.owner()
    let partition = try PartitionName("agency=H").id(fleet: relay.node.fleet, hash: SHA256.hash)
    try owner.script(
      """
      REVOKE SELECT ON seamesh.documents FROM auditor;
      INSERT INTO seamesh.partitions VALUES (decode('\(hexadecimal(partition.digest.bytes))', 'hex'), 'agency=H');
      INSERT INTO seamesh.documents (partition, collection, id, id_json, alive, generation, body, state, judge)
      SELECT decode('\(hexadecimal(partition.digest.bytes))', 'hex'), 'c', decode(lpad(to_hex(n), 8, '0'), 'hex'), to_jsonb(n), true, 1,
        '{"a": [1.50, "\\\\ \\u0001 é"]}', '\\x0102', '' FROM generate_series(1, 3) n
      """)
    _ = try PostgreSQLSetUp.perform(server.ownerAddress(), fleet: relay.node.fleet, environment: [:])
    #expect(try owner.number("SELECT has_table_privilege('auditor', 'seamesh.documents', 'SELECT')::int") == 1)
    try relay.forward(to: server.relayURL())
    try relay.put("agency=G", "r", "it's \u{1} \\ \n \t \" é")
    try relay.put("agency=G", "bad", "a\0b")
    try relay.put("agency=G", "gone")
    try relay.waitForLedger(server)
    _ = try relay.node.write(
      PartitionName("agency=G"), [DocumentRequest(collection: "reports", id: .string("gone"), action: .delete)])
    let came = try waitUntil { try owner.number("SELECT count(*) FROM seamesh.documents WHERE NOT alive") == 1 }
    #expect(came)
    // Three of them no run made.
    var verifier = LedgerVerifier(
      try PostgreSQLLedgerTables(server.ownerAddress(), environment: [:]), folding: false, ledgerCryptography)
    let tally = try verifier.verify()
    #expect(tally.documents == 6 && tally.deadLetters == 1)
    var dumped = try server.dump("--schema=seamesh")[...]
    let dump = try LedgerDump("dump.sql") { most in
      defer { dumped = dumped.dropFirst(most) }
      return Array(dumped.prefix(most))
    }
    var ofDump = LedgerVerifier(dump, folding: false, ledgerCryptography)
    #expect(try ofDump.verify().documents == 6)
  }
}

extension RowValue {
  /// With one other byte.
  static func altered(_ value: RowValue, _ random: inout SplitMix64) -> RowValue {
    let change = UInt8.random(in: 1...255, using: &random)
    switch value {
    case .null: return .integer(0)
    case .integer(let number):
      let place = UInt64.random(in: 0..<8, using: &random) * 8
      return .integer(number ^ Int64(truncatingIfNeeded: UInt64(change) << place))
    case .bytes(var bytes):
      guard let index = bytes.indices.randomElement(using: &random) else { return .bytes([change]) }
      bytes[index] ^= change
      return .bytes(bytes)
    }
  }
}
