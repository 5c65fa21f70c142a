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
@testable import SeameshCommand

@Suite(
  "A node is built anew from a ledger", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct RestoreFromLedgerTests {
  /// Every document's merge state, living or not, by partition, collection and canonical id.
  private func documents(_ node: Node) throws -> [String: [UInt8]] {
    try node.readStore { store in
      var all: [String: [UInt8]] = [:]
      for partition in try store.partitions() {
        for (name, number) in try store.collections(of: partition.number) {
          for row in try store.documents(partition.number, number, limit: 10_000) {
            all["\(partition.id.digest.text) \(name.string) \(hexadecimal(row.key))"] = row.state
          }
        }
      }
      return all
    }
  }

  private func holdings(_ node: Node) throws -> [PartitionID: VersionVector] {
    try node.accepted().vectors.filter { !$0.value.isEmpty }
  }

  private func expectSame(_ rebuilt: Node, _ relay: Node, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let (documents, expected) = (try documents(rebuilt), try documents(relay))
    #expect(documents == expected && expected.count > 10, sourceLocation: sourceLocation)
    #expect(try holdings(rebuilt) == holdings(relay), sourceLocation: sourceLocation)
    // A status may be some ms older than what it is compared with.
    let agree = try waitUntil { try rebuilt.status().changes == relay.status().changes }
    #expect(agree, sourceLocation: sourceLocation)
    #expect(try rebuilt.status().held == relay.status().held, sourceLocation: sourceLocation)
    func bodies(_ node: Node) throws -> Set<[UInt8]> {
      try node.readStore { store in
        Set(
          try store.runs(cameAfter: 0, within: ArrivalLimits(bytes: .max, changes: .max)) { _, _, _, _ in true }
            .runs.map(\.run.body))
      }
    }
    #expect(try bodies(rebuilt) == bodies(relay), sourceLocation: sourceLocation)
  }

  private func loseStore(_ directory: String) throws {
    for name in ["seamesh.db", "seamesh.db-wal", "seamesh.db-shm"] {
      try? FileManager.default.removeItem(atPath: "\(directory)/\(name)")
    }
  }

  @Test("a relay that lost its store has from the ledger alone what it had, forks and un-merged work too, and goes on")
  func lostStore() throws {
    let fleet = try LedgerFleet()
    let (before, vectors) = (try documents(fleet.relay.node), try holdings(fleet.relay.node))
    let oracle = fleet.relay.directory + "-oracle"
    fleet.relay.stop()
    try FileManager.default.copyItem(atPath: fleet.relay.directory, toPath: oracle)
    defer { try? FileManager.default.removeItem(atPath: oracle) }
    try loseStore(fleet.relay.directory)
    let restored = try runCommand(
      ["restore", "--from-ledger=\(fleet.server.ownerURL())", "--json"], in: fleet.relay.directory)
    #expect(restored.status == 0, "\(restored)")
    try fleet.relay.restart()
    #expect(try documents(fleet.relay.node) == before && holdings(fleet.relay.node) == vectors)
    let known = try ForwardingNode(directory: oracle)
    try expectSame(fleet.relay.node, known.node)
    known.stop()
    #expect(try fleet.relay.node.read(PartitionName("agency=G"), "reports", id: .string("bad2")) == nil)

    // It writes under a new replica id, forwards that and nothing else, and the ledger still holds.
    let owner = try fleet.server.owner()
    let replicas = try owner.number("SELECT count(DISTINCT replica) FROM seamesh.changes")
    let changes = try owner.number("SELECT count(*) FROM seamesh.changes")
    try fleet.relay.put("agency=G", "after")
    try fleet.relay.forward(to: fleet.server.relayURL())
    try fleet.relay.waitForLedger(fleet.server)
    #expect(try owner.number("SELECT count(*) FROM seamesh.changes") == changes + 1)
    #expect(try owner.number("SELECT count(DISTINCT replica) FROM seamesh.changes") == replicas + 1)
    var verifier = LedgerVerifier(try fleet.picture(), ledgerCryptography)
    _ = try verifier.verify()

    // A vessel that lived on gets what is new, and sends nothing again.
    let vessel = try ForwardingNode(directory: fleet.vessel, peers: [fleet.relay.address])
    defer { vessel.stop() }
    let came = try waitUntil {
      try vessel.node.read(PartitionName("agency=G"), "reports", id: .string("after")) != nil
    }
    #expect(came)
    try vessel.put("agency=G", "fromVessel")
    let level = try waitUntil {
      try fleet.relay.node.read(PartitionName("agency=G"), "reports", id: .string("fromVessel")) != nil
    }
    #expect(level)
    // Other partitions may come behind that one.
    #expect(try waitUntil { try holdings(fleet.relay.node) == holdings(vessel.node) })
    try expectSame(fleet.relay.node, vessel.node)
  }

  @Test("a device that has just entered is filled from a dump, and a directory with data is left as it is")
  func freshDevice() throws {
    let fleet = try LedgerFleet()
    let path = NSTemporaryDirectory() + "seamesh-fresh-" + String(UUID().uuidString.prefix(8))
    defer { try? FileManager.default.removeItem(atPath: path) }
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let file = fleet.server.directory + "/ledger.sql"
    try Data(fleet.server.dump("--schema=seamesh")).write(to: URL(fileURLWithPath: file))
    let none = try runCommand(["restore", "--dump=\(file)"], in: path)
    #expect(none.status == 3 && none.error.contains("holds no node"), "\(none)")
    let wish = InviteRequest(user: "dan@test.example", role: "officer", profile: ValueMap())
    let code = try fleet.relay.node.invite(wish)
    _ = try NodeSetup.join(path, code: code.code, label: "fresh", peers: [fleet.relay.address], usesDiscovery: false)
    let restored = try runCommand(["restore", "--dump=\(file)"], in: path)
    #expect(restored.status == 0, "\(restored)")
    let again = try runCommand(["restore", "--dump=\(file)"], in: path)
    #expect(again.status == 1 && again.error.contains("stays as it is"), "\(again)")
    let fresh = try ForwardingNode(directory: path)
    try expectSame(fresh.node, fleet.relay.node)
    fresh.stop()
  }

  @Test("what was written under a declaration that an end took back counts nowhere, and stays in the ledger")
  func voidDeclaration() throws {
    let fleet = try LedgerFleet(voids: true)
    let before = try documents(fleet.relay.node)
    var verifier = LedgerVerifier(try fleet.picture(), ledgerCryptography)
    #expect(try verifier.verify().runsWithoutRight == 5)
    fleet.relay.stop()
    try loseStore(fleet.relay.directory)
    let restored = try runCommand(["restore", "--from-ledger=\(fleet.server.ownerURL())"], in: fleet.relay.directory)
    #expect(restored.status == 0 && restored.output.contains("5 runs have no right"), "\(restored)")
    try fleet.relay.restart()
    #expect(try documents(fleet.relay.node) == before)
  }

  @Test("a device that is no member, and one of another fleet, are refused, and nothing is made")
  func refused() throws {
    let (fleet, other) = try (LedgerFleet(), ForwardingNode())
    other.stop()
    try loseStore(other.directory)
    let another = try runCommand(["restore", "--from-ledger=\(fleet.server.ownerURL())"], in: other.directory)
    #expect(another.status == 1 && another.error.contains("another fleet"), "\(another)")
    let marker = other.directory + "/" + LedgerFilling.markerFile
    #expect(!FileManager.default.fileExists(atPath: marker))
    // With this fleet's name and a key that nobody let in.
    try FileManager.default.removeItem(atPath: other.directory + "/fleet.id")
    try FileManager.default.copyItem(atPath: fleet.relay.directory + "/fleet.id", toPath: other.directory + "/fleet.id")
    let stranger = try runCommand(["restore", "--from-ledger=\(fleet.server.ownerURL())"], in: other.directory)
    #expect(stranger.status == 4 && stranger.error.contains("is no member of the fleet"), "\(stranger)")
    #expect(!FileManager.default.fileExists(atPath: other.directory + "/seamesh.db"))
    let both = try runCommand(["restore", "x", "--from-ledger=\(fleet.server.ownerURL())"], in: other.directory)
    #expect(both.status == 2, "\(both)")
  }

  @Test("cut off at any moment, the directory says so, and a later try ends with the same")
  func cutOff() throws {
    let fleet = try LedgerFleet()
    let oracle = fleet.relay.directory + "-oracle"
    fleet.relay.stop()
    try FileManager.default.copyItem(atPath: fleet.relay.directory, toPath: oracle)
    defer { try? FileManager.default.removeItem(atPath: oracle) }
    try loseStore(fleet.relay.directory)
    struct Cut: Error {}
    let picture = try fleet.picture()
    for runs in [0, 7, 20] {
      // What a kill leaves: nothing of what waits is committed any more, and nothing is tidied up.
      let tables = CutLedger(picture, after: runs)
      #expect(throws: CutLedger.Cut.self) {
        var restoring = try LedgerRestoring(fleet.relay.directory, from: tables)
        _ = try restoring.run()
      }
      let refused = #expect(throws: NodeError.self) { _ = try Node.start(directory: fleet.relay.directory) }
      #expect(refused?.message.contains("was cut off") == true)
    }
    do {
      var restoring = try LedgerRestoring(fleet.relay.directory, from: picture)
      let outcome = try restoring.run()
      #expect(outcome.runsLeftOut == 0 && outcome.runsWithoutRight == 0)
    }
    try fleet.relay.restart()
    let known = try ForwardingNode(directory: oracle)
    try expectSame(fleet.relay.node, known.node)
    known.stop()
  }

  @Test("killed while it fills a directory, the command ends with all of it when it is run again")
  func killed() throws {
    let fleet = try LedgerFleet()
    let oracle = fleet.relay.directory + "-oracle"
    fleet.relay.stop()
    try FileManager.default.copyItem(atPath: fleet.relay.directory, toPath: oracle)
    defer { try? FileManager.default.removeItem(atPath: oracle) }
    try loseStore(fleet.relay.directory)
    // It waits for a payload, and so is under way.
    let holder = try fleet.server.owner()
    try holder.script("BEGIN")
    try holder.script("LOCK TABLE seamesh.payloads IN ACCESS EXCLUSIVE MODE")
    let arguments = ["restore", "--from-ledger=\(fleet.server.ownerURL())"]
    let process = try startCommand(arguments, in: fleet.relay.directory)
    let owner = try fleet.server.owner()
    let waits = try waitUntil {
      try owner.number("SELECT count(*) FROM pg_locks WHERE NOT granted") == 1
    }
    #expect(waits)
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    try holder.script("ROLLBACK")
    #expect(FileManager.default.fileExists(atPath: fleet.relay.directory + "/" + LedgerFilling.markerFile))
    #expect(throws: NodeError.self) { _ = try Node.start(directory: fleet.relay.directory) }
    let again = try runCommand(arguments, in: fleet.relay.directory)
    #expect(again.status == 0, "\(again)")
    try fleet.relay.restart()
    let known = try ForwardingNode(directory: oracle)
    try expectSame(fleet.relay.node, known.node)
    known.stop()
  }

  @Test("what does not hold in a ledger is left there, and the rest is taken")
  func spoilt() throws {
    let fleet = try LedgerFleet()
    fleet.relay.stop()
    try loseStore(fleet.relay.directory)
    var whole = try fleet.picture()
    let body = try #require(LedgerTable.runs.columns.firstIndex { $0.name == "body" })
    let last = try #require(whole.rows[.runs]?.lastIndex { $0.values[2] == .integer(2) })
    whole = whole.with(.runs) { rows in
      guard case .bytes(var bytes) = rows[last].values[body] else { return }
      bytes[bytes.count - 1] ^= 1
      rows[last].values[body] = .bytes(bytes)
    }
    var restoring = try LedgerRestoring(fleet.relay.directory, from: whole)
    let outcome = try restoring.run()
    #expect(outcome.runsLeftOut > 0 && outcome.firstReason?.contains("signature") == true, "\(outcome)")
    #expect(outcome.changes > 0 && outcome.changes < Int64(whole.rows[.changes]?.count ?? 0))
  }
}

/// A ledger whose server goes away after so many pages.
private final class CutLedger: LedgerTables {
  struct Cut: Error {}
  private let whole: LedgerPicture
  private var left: Int

  init(_ whole: LedgerPicture, after pages: Int) { (self.whole, left) = (whole, pages) }

  var name: String { whole.name }
  var hasDocumentSums: Bool { false }
  var hasDocumentNotes: Bool { false }

  func page(of table: LedgerTable, after key: [RowValue]?, rows: Int) throws -> [LedgerRow] {
    if table == .runs {
      guard left > 0 else { throw Cut() }
      left -= 1
    }
    return try whole.page(of: table, after: key, rows: rows)
  }

  func row(of table: LedgerTable, _ key: [RowValue]) throws -> LedgerRow? { try whole.row(of: table, key) }
  func count(of table: LedgerTable) throws -> Int64 { try whole.count(of: table) }
}
