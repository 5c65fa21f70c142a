import Foundation
import Replication
import Storage
import TestSupport
import Testing

@testable import Forwarding
@testable import Seamesh
@testable import SeameshCommand

@Suite("A ledger in a dump", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct DumpLedgerTests {
  private func ledger(_ dump: [UInt8], piece: Int = 1_000) throws -> LedgerDump {
    var rest = dump[...]
    return try LedgerDump("dump.sql") { most in
      defer { rest = rest.dropFirst(min(piece, most)) }
      return Array(rest.prefix(min(piece, most)))
    }
  }

  private func verify(_ dump: [UInt8]) throws -> LedgerTally {
    var verifier = LedgerVerifier(try ledger(dump), ledgerCryptography)
    return try verifier.verify()
  }

  /// The sentence with which it is refused.
  private func refusal(_ dump: [UInt8]) throws -> String {
    do {
      _ = try verify(dump)
      return "it was taken"
    } catch let problem as BackendProblem {
      return problem.sentence
    }
  }

  @Test("a real dump holds what the server holds, and what was altered in it is found")
  func dump() throws {
    let fleet = try LedgerFleet()
    let dump = try fleet.server.dump("--schema=seamesh")
    let (picture, there) = (try fleet.picture(), try LedgerPicture(ledger(dump)))
    for table in LedgerTable.allCases { #expect(picture.rows[table] == there.rows[table], "\(table)") }
    let tally = try verify(dump)
    #expect(tally.changes == picture.rows[.changes]?.count && tally.forkedChains == 1)
    // Of the whole database, too.
    #expect(try verify(fleet.server.dump()) == tally)

    let text = String(decoding: dump, as: UTF8.self)
    var random = SplitMix64(seed: 9)
    for table in LedgerTable.verified {
      let section = try #require(text.range(of: "COPY seamesh.\(table.rawValue) ("))
      let start = try #require(text[section.upperBound...].firstIndex(of: "\n"))
      let line = text[text.index(after: start)...].prefix { $0 != "\n" }
      let digit = try #require(line.firstRange(of: "\\\\x")).upperBound
      let offset = text.utf8.distance(from: text.startIndex, to: digit) + Int.random(in: 0..<32, using: &random)
      var altered = dump
      altered[offset] = altered[offset] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
      #expect(throws: LedgerFinding.self, "\(table)") { _ = try verify(altered) }
    }
    let fork = try #require(text.range(of: "COPY seamesh.forks ("))
    let row = try #require(text[fork.upperBound...].split(separator: "\n").dropFirst().first)
    let doubled = text.replacingOccurrences(of: "\n\(row)\n", with: "\n\(row)\n\(row)\n")
    #expect(throws: LedgerFinding.self) { _ = try verify(Array(doubled.utf8)) }
  }

  @Test("what is no dump of a ledger, or not all of one, is refused with one sentence each")
  func refusals() throws {
    let fleet = try LedgerFleet()
    let dump = try fleet.server.dump("--schema=seamesh")
    let text = String(decoding: dump, as: UTF8.self)
    func refusal(replacing what: String, with other: String) throws -> String {
      #expect(text.contains(what))
      return try self.refusal(Array(text.replacingOccurrences(of: what, with: other).utf8))
    }
    let rows = try #require(text.range(of: "\n\\.\n", options: .backwards))
    let afterRows = text.utf8.distance(from: text.startIndex, to: rows.upperBound)
    for end in [dump.count / 3, dump.count / 2, afterRows, dump.count - 60] {
      #expect(try self.refusal(Array(dump.prefix(end))).contains("cut off"))
    }
    #expect(try self.refusal(Array("hello\n".utf8)).contains("no dump of PostgreSQL"))
    #expect(try self.refusal([]).contains("no dump of PostgreSQL"))
    #expect(try self.refusal(fleet.server.dump("-Fc", "--schema=seamesh")).contains("PostgreSQL's own form"))
    #expect(try self.refusal(fleet.server.dump("--inserts", "--schema=seamesh")).contains("INSERT"))
    #expect(try self.refusal(fleet.server.dump("--schema=public")).contains("another schema"))
    #expect(try self.refusal(fleet.server.dump("--schema-only", "--schema=seamesh")).contains("no ledger in it"))
    #expect(try refusal(replacing: "COPY seamesh.forks ", with: "COPY other.forks ").contains("lacks the tables forks"))
    let step = "\n\(PostgreSQLSchema.format)\t20"
    #expect(try refusal(replacing: step, with: "\n99\t20").contains("a newer seamesh (format 99"))

    // By the command, from a file and from a pipe.
    let path = fleet.server.directory + "/ledger.sql"
    try Data(dump).write(to: URL(fileURLWithPath: path))
    let whole = try runCommand(["verify-ledger", "--dump=\(path)"], in: fleet.server.directory)
    #expect(whole.status == 0 && whole.output.contains("holds, back to the root"), "\(whole)")
    try Data(dump.prefix(dump.count / 2)).write(to: URL(fileURLWithPath: path))
    let cut = try runCommand(["verify-ledger", "--dump=\(path)"], in: fleet.server.directory)
    #expect(cut.status == 1 && cut.error.contains("cut off") && cut.output.isEmpty, "\(cut)")
    let none = try runCommand(["verify-ledger"], in: fleet.server.directory)
    #expect(none.status == 2, "\(none)")
  }

  @Test("a server without a ledger, one of a newer format, and a role that may not read it are named")
  func servers() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    func said(_ url: String) throws -> CommandResult {
      try runCommand(["verify-ledger", "--forward=\(url)"], in: server.directory)
    }
    let none = try said(server.ownerURL())
    #expect(none.status == 1 && none.error.contains("there is no ledger"), "\(none)")
    try relay.setUp(server)
    let may = try said(server.relayURL())
    #expect(may.status == 4 && may.error.contains("may not read the ledger. As the owner"), "\(may)")
    try server.owner().script("INSERT INTO seamesh.migrations (number) VALUES (99)")
    let newer = try said(server.ownerURL())
    #expect(newer.status == 1 && newer.error.contains("newer seamesh (format 99"), "\(newer)")
  }
}
