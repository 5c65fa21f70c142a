import Foundation
import Replication
import Storage
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Seamesh
@testable import SeameshCommand

@Suite(
  "Documents of a ledger are what its runs make of them", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason),
  .serialized)
struct FoldedDocumentTests {
  private func verified(_ tables: any LedgerTables) throws -> LedgerTally {
    var verifier = LedgerVerifier(tables, ledgerCryptography)
    return try verifier.verify()
  }

  private func finding(_ tables: any LedgerTables) throws -> LedgerFinding? {
    do {
      _ = try verified(tables)
      return nil
    } catch let finding as LedgerFinding {
      return finding
    }
  }

  private func column(_ name: String) throws -> Int {
    try #require(LedgerTable.documents.columns.firstIndex { $0.name == name })
  }

  /// With the sum that belongs to it.
  private func summed(_ row: LedgerRow, _ fleet: LedgerFleet) throws -> LedgerRow {
    var row = row
    let sum = try DocumentSum.of(row, ledgerCryptography(fleet.relay.node.fleet).hash)
    row.values[try column("sum")] = .bytes(sum.bytes)
    return row
  }

  private func altered(
    _ picture: LedgerPicture, _ index: Int, _ name: String, _ value: RowValue, _ fleet: LedgerFleet
  ) throws -> LedgerPicture {
    var row = try #require(picture.rows[.documents]?[index])
    row.values[try column(name)] = value
    let whole = try summed(row, fleet)
    return picture.with(.documents) { $0[index] = whole }
  }

  @Test("with a fork, an ended device and a large payload all are, and each that is missing or altered is named")
  func planted() throws {
    let fleet = try LedgerFleet()
    let picture = try fleet.picture()
    let tally = try verified(picture)
    #expect(tally.folding?.documentsBehind == 0 && tally.folding?.partitionsLeftOut == 0)
    #expect(tally.folding?.runs == tally.runs && tally.documents ?? 0 > 10)
    let rows = try #require(picture.rows[.documents])
    var living = 0
    for (index, row) in rows.enumerated() where try row.bytes("alive") == Array("t".utf8) {
      living += 1
      let missing = try finding(picture.with(.documents) { $0.remove(at: index) })
      #expect(missing?.key == row.key && missing?.sentence.contains("is missing") == true)
      for (name, value, words) in [
        ("body", RowValue.bytes(Array(#"{"text": "another"}"#.utf8)), "body is not what the runs make"),
        ("generation", .integer(7), "generation is not what the runs make"),
        ("id_json", .bytes(Array(#""another""#.utf8)), "id_json is not the document's id"),
        ("alive", .bytes(Array("f".utf8)), "the document is not deleted"),
      ] {
        let found = try finding(altered(picture, index, name, value, fleet))
        #expect(found?.key == row.key, "\(name) of \(row.finding("")): \(String(describing: found))")
        #expect(found?.sentence.contains(words) == true, "\(name): \(String(describing: found))")
      }
    }
    #expect(living > 10)

    // One that nobody wrote, at the end and in between, and the state of one at another.
    let (first, last) = (try #require(rows.first), try #require(rows.last))
    for (model, id) in [(last, "zzz"), (first, "r00")] {
      var row = model
      row.values[2] = .bytes(Value.string(Text(id)).canonicalBytes)
      row.values[try column("id_json")] = .bytes(Array("\"\(id)\"".utf8))
      let added = try summed(row, fleet)
      let found = try finding(picture.with(.documents) { $0.append(added) })
      #expect(found?.key == added.key && found?.sentence.contains("no run of the ledger makes") == true)
    }
    let (a, b) = (rows[rows.count - 2], rows[rows.count - 1])
    let swapped = try finding(altered(picture, rows.count - 1, "state", a.values[column("state")], fleet))
    #expect(swapped?.key == b.key)

    // Of several the first is named.
    var several = picture
    for index in [rows.count - 1, 3, 7] { several = try altered(several, index, "generation", .integer(7), fleet) }
    #expect(try finding(several)?.key == rows[3].key)
  }

  @Test("a deleted document that is said to live, or that has a body, is named")
  func deleted() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    for id in ["a", "b", "c"] { try relay.put("agency=G", id, "text") }
    try relay.waitForLedger(server)
    let owner = try server.owner()
    #expect(try waitUntil { try owner.number("SELECT count(*) FROM seamesh.documents WHERE alive") == 3 })
    _ = try relay.node.write(
      PartitionName("agency=G"), [DocumentRequest(collection: "reports", id: .string("b"), action: .delete)])
    #expect(try waitUntil { try owner.number("SELECT count(*) FROM seamesh.documents WHERE NOT alive") == 1 })
    try relay.waitForState(.caughtUp)

    let picture = try LedgerPicture(PostgreSQLLedgerTables(server.ownerAddress(), environment: [:]))
    #expect(try verified(picture).folding?.documentsBehind == 0)
    let rows = try #require(picture.rows[.documents])
    let index = try #require(rows.firstIndex { try $0.bytes("alive") == Array("f".utf8) })
    let hash = ledgerCryptography(relay.node.fleet).hash
    for (name, value, words) in [
      ("alive", "t", "no run of the ledger makes this document, or one deletes it"),
      ("body", #"{"text": "text"}"#, "a deleted document has a body"),
    ] {
      var row = rows[index]
      row.values[try column(name)] = .bytes(Array(value.utf8))
      row.values[try column("sum")] = .bytes(try DocumentSum.of(row, hash).bytes)
      let spoilt = row
      let found = try finding(picture.with(.documents) { $0[index] = spoilt })
      #expect(found?.key == row.key && found?.sentence.contains(words) == true, "\(name): \(String(describing: found))")
    }
  }

  @Test("a page of documents ends where it is full, whatever of a row is long")
  func fullPages() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try server.owner().script(
      """
      INSERT INTO seamesh.partitions VALUES (decode(repeat('00', 32), 'hex'), 'agency=H');
      INSERT INTO seamesh.documents (partition, collection, id, id_json, alive, generation, body, state, refusal, judge)
      SELECT decode(repeat('00', 32), 'hex'), 'c', decode(lpad(to_hex(n), 8, '0'), 'hex'), to_jsonb(n), true, 1,
        CASE WHEN n % 2 = 0 THEN to_jsonb(repeat('x', 600000)) END, '\\x01', CASE WHEN n % 2 = 1 THEN repeat('x', 600000) END, ''
      FROM generate_series(1, 6) n
      """)
    let tables = try PostgreSQLLedgerTables(server.ownerAddress(), environment: [:])
    #expect(try tables.page(of: .documents, after: nil, rows: 1_024).count == 2)
  }

  @Test("a document as it was before its last change is found, by the command as well, in a server and in its dump")
  func stale() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    try relay.put("agency=G", "r", "first")
    try relay.put("agency=G", "s", "first")
    try relay.waitForLedger(server)
    let owner = try server.owner()
    try owner.script("CREATE TABLE public.old AS SELECT * FROM seamesh.documents")
    try relay.put("agency=G", "r", "second")
    try relay.waitForLedger(server)
    let came = try waitUntil {
      try owner.number("SELECT count(*) FROM seamesh.documents WHERE body->>'text' = 'second'") == 1
    }
    #expect(came)
    // Another statement that moves nothing is no excuse.
    let stated = try owner.number("SELECT count(*) FROM seamesh.statements")
    _ = try relay.node.change(RightsChange(.grant(who: "everyone", level: "read", pattern: "agency=*")))
    #expect(try waitUntil { try owner.number("SELECT count(*) FROM seamesh.statements") > stated })
    try relay.waitForState(.caughtUp)
    func verify(_ options: String...) throws -> [CommandResult] {
      let file = server.directory + "/ledger.sql"
      try Data(server.dump("--schema=seamesh")).write(to: URL(fileURLWithPath: file))
      return try ["--forward=\(server.ownerURL())", "--dump=\(file)"].map {
        try runCommand(["verify-ledger", $0] + options, in: server.directory)
      }
    }
    for whole in try verify() {
      #expect(whole.status == 0 && whole.output.contains("2 documents are as they were written, and what"), "\(whole)")
      #expect(!whole.output.contains("but for"), "\(whole)")
    }
    try owner.script(
      "UPDATE seamesh.documents d SET state = o.state, body = o.body, sum = o.sum FROM public.old o WHERE o.id = d.id")
    for found in try verify() {
      #expect(found.status == 1 && found.error.contains("state is not what the runs make"), "\(found)")
    }
    for unseen in try verify("--sums-only") {
      #expect(unseen.status == 0 && unseen.output.contains("not made anew"), "\(unseen)")
    }
    try owner.script("DELETE FROM seamesh.documents WHERE body->>'text' = 'first' AND id_json = '\"s\"'")
    try owner.script("UPDATE seamesh.documents d SET unsure = true")
    for found in try verify() {
      #expect(found.status == 1 && found.error.contains("the document is missing"), "\(found)")
    }
  }

  @Test("documents that relays have not sent yet are counted, and no finding")
  func behind() throws {
    let fleet = try LedgerFleet()
    let picture = try fleet.picture()
    let rows = try #require(picture.rows[.documents])
    let steps = try #require(picture.rows[.documentSteps])
    #expect(!steps.isEmpty)
    // The relay's last word is of before all of it, as in a backlog: its documents are on their way.
    let lagging = picture.with(.documentPositions) { $0.removeAll() }.with(.documents) { $0.removeAll() }
    let living = try rows.count { try $0.bytes("alive") == Array("t".utf8) }
    let tally = try verified(lagging)
    #expect(tally.folding?.documentsBehind == living && tally.folding?.runsInDoubt == tally.runs)
    let relay = LedgerTally.RelayBehind(relay: fleet.relay.node.device.digest.bytes, since: nil)
    #expect(tally.folding?.relaysBehind == [relay] && tally.folding?.areAllInDoubt == true)
    #expect(try verified(picture).folding?.relaysBehind.isEmpty == true)

    // One run is on its way: its documents alone may differ.
    let late = try #require(rows.firstIndex { try $0.bytes("id_json").contains(Array("late5".utf8)) })
    let moment = (try steps.map { try $0.signed("noted") }.max() ?? 0) + 1_000
    let fresh = try freshRun(picture, writing: rows[late])
    let underWay = picture.with(.runs) { runs in
      for index in runs.indices where runs[index].key == fresh { runs[index].values[8] = .integer(moment) }
    }.with(.documentSteps) { $0[0].values[2] = .integer(moment) }
    let doubt = try verified(underWay).folding
    #expect(doubt?.documentsBehind == 0 && doubt?.runsInDoubt == 1 && doubt?.areAllInDoubt == false)
    #expect(try verified(underWay.with(.documents) { $0.remove(at: late) }).folding?.documentsBehind == 1)
    let other = late == 0 ? 1 : 0
    #expect(try finding(underWay.with(.documents) { $0.remove(at: other) })?.key == rows[other].key)

    // What stands on a change that the ledger has not is no lag.
    let ahead = try standing(on: 1_000, rows[late])
    let planted = try finding(altered(underWay, late, "state", .bytes(ahead), fleet))
    #expect(planted?.sentence.contains("stands on change 1000") == true, "\(String(describing: planted))")

    // A statement that is on its way may move anything, as may marks that say something else.
    let stated = picture.with(.statements) { $0[0].values[2] = .integer(moment) }
      .with(.documentSteps) { $0[0].values[2] = .integer(moment) }.with(.documents) { $0.remove(at: late) }
    #expect(try verified(stated).folding?.documentsBehind == 1)
    let unmarked = picture.with(.accepted) { $0.removeAll() }.with(.documents) { $0.remove(at: late) }
    #expect(try verified(unmarked).folding?.documentsBehind == 1)
    // A row of a relay that lacked something.
    let unsure = try altered(picture, late, "body", .bytes(Array("{}".utf8)), fleet).with(.documents) { all in
      all[late].values[10] = .bytes(Array("t".utf8))
    }
    #expect(try verified(unsure).folding?.documentsBehind == 1)
  }

  private func freshRun(_ picture: LedgerPicture, writing document: LedgerRow) throws -> [RowValue] {
    let stored = try DocumentStateCodec.decode(document.bytes("state")[...])
    let dot = try #require(stored.groups.first?.dot)
    let run = try #require(picture.rows[.runs]).first { row in
      let run = try LedgerRun(row)
      return run.chain.replica == dot.replica && (run.first...run.last).contains(dot.sequence)
    }
    return try #require(run).key
  }

  private func standing(on sequence: UInt64, _ document: LedgerRow) throws -> [UInt8] {
    let stored = try DocumentStateCodec.decode(document.bytes("state")[...])
    let groups = stored.groups.map {
      OperationGroup(
        dot: Dot(replica: $0.dot.replica, sequence: sequence), timestamp: $0.timestamp, generation: $0.generation,
        operations: $0.operations)
    }
    return DocumentStateCodec.encode(generation: stored.generation, groups: groups)
  }

  @Test("a partition whose chain lacks its beginning is left out, and said so")
  func leftOut() throws {
    let fleet = try LedgerFleet()
    let whole = try fleet.picture()
    let runs = try #require(whole.rows[.runs])
    let first = try #require(
      runs.first { row in
        row.values[4] == .integer(1) && row.values[2] == .integer(1)
          && runs.contains { $0.key.prefix(2) == row.key.prefix(2) && $0.values[4] == .integer(2) }
          && runs.allSatisfy { next in
            guard next.key.prefix(2) == row.key.prefix(2), next.values[4] == .integer(2) else { return true }
            if case .full? = try? LedgerRun(next).contextForm() { return true }
            return false
          }
      })
    let rest = whole.with(.runs) { $0.removeAll { $0.key == first.key } }.with(.changes) { rows in
      rows.removeAll { $0.key.prefix(3) == [first.values[0], first.values[1], .integer(1)] }
    }
    let tally = try verified(rest)
    #expect(tally.incompleteChains == 1 && tally.folding?.partitionsLeftOut == 1)
  }

  @Test(
    "moments of a dump read as the server means them",
    arguments: [
      ("1970-01-01 00:00:00+00", 0), ("2026-11-25 19:04:19.123456+00", 1_795_633_459_123_456),
      ("2024-02-29 12:00:00.5+05:30", 1_709_188_200_500_000), ("2000-03-01 00:00:00-03", 951_879_600_000_000),
    ])
  func moments(_ text: String, _ expected: Int64) {
    #expect(DumpTime.microseconds(Array(text.utf8)[...]) == expected)
  }

  @Test(
    "what is no moment is none",
    arguments: ["", "infinity", "2026-13-01 00:00:00+00", "2026-11-25", "2026-11-25 1:1:1"])
  func noMoments(_ text: String) { #expect(DumpTime.microseconds(Array(text.utf8)[...]) == nil) }
}
