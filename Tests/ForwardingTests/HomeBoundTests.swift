import Engine
import Foundation
import Identity
import Links
import Replication
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Seamesh
@testable import SeameshCommand

@Suite(
  "Edits that come home from a real PostgreSQL", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason),
  .serialized)
struct HomeBoundTests {
  private let partition: PartitionName
  private let server: TestPostgreSQL
  private let vessel: ForwardingNode

  init() throws {
    partition = try PartitionName("agency=G")
    (server, vessel) = try (TestPostgreSQL(), ForwardingNode())
    try server.owner("postgres").script("CREATE ROLE clerk LOGIN")
    _ = try PostgreSQLSetUp.perform(
      server.ownerAddress(), fleet: vessel.node.fleet, granting: PostgreSQLGrants(homeBound: "relay", office: "clerk"),
      environment: [:])
    try vessel.node.subscribe("agency=*")
  }

  // MARK: The fleet

  /// A relay of the office, with its forwarding; gone with the body.
  private func withRelay<Result>(
    user: Text = "office", isForwarding: Bool = true, _ body: (ForwardingNode) throws -> Result
  ) throws -> Result {
    let path = NSTemporaryDirectory() + "seamesh-office-" + String(UUID().uuidString.prefix(8))
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: path) }
    let code = try vessel.node.invite(InviteRequest(user: user, role: "relay", profile: ValueMap()))
    _ = try NodeSetup.join(path, code: code.code, label: "relay", peers: [vessel.address], usesDiscovery: false)
    let relay = try ForwardingNode(directory: path, peers: [vessel.address])
    defer { relay.stop() }
    try relay.node.subscribe("agency=*")
    if isForwarding { try relay.forward(to: server.relayURL(), bringsEditsHome: true) }
    return try body(relay)
  }

  private func put(_ id: Text, _ json: String) throws {
    let body = try ExtendedJSON.parseMap(Array(json.utf8))
    _ = try vessel.node.write(
      partition, [DocumentRequest(collection: "reports", id: .string(id), action: .put(body: body))])
  }

  private func shown(_ node: ForwardingNode, _ id: Value) throws -> String? {
    try node.node.documents.stored(partition, "reports", id: id).map { ExtendedJSON.text(.map($0.body)) }
  }

  private func expectSoon(
    _ condition: () throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let came = try waitUntil(within: 30, condition)
    #expect(came, sourceLocation: sourceLocation)
  }

  // MARK: The office

  /// As somebody with the office's rights and no other.
  private func asClerk(_ sql: String, user: String = "eve@office.example", why: String = "") throws {
    try server.owner().script(
      "SET ROLE clerk; SET seamesh.by_user = '\(user)'; SET seamesh.why = '\(why)'; \(sql)")
  }

  private func edits() throws -> [(state: String, reason: String)] {
    try server.owner().query("SELECT state, reason FROM seamesh_office.edits ORDER BY number").rows.map {
      (PostgreSQLRows.text($0[0]), PostgreSQLRows.text($0[1]))
    }
  }

  private func waitForDocument(_ id: String, _ body: String) throws {
    let connection = try server.owner()
    try expectSoon {
      try connection.number(
        "SELECT count(*) FROM seamesh_office.documents WHERE id = '\"\(id)\"' AND body = '\(body)'") == 1
    }
  }

  private func waitForEdits(_ states: [String], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let came = try waitUntil(within: 30) { try edits().map(\.state) == states }
    let told = try edits()
    #expect(came, "\(told)", sourceLocation: sourceLocation)
  }

  // MARK: Tests

  @Test("an UPDATE of the office is on the vessel, with who, why and when")
  func update() throws {
    try withRelay { relay in
      try put("r1", #"{"open":true,"zero":-0.0,"big":1e16,"n":1}"#)
      try waitForDocument("r1", #"{"open":true,"zero":0,"big":10000000000000000,"n":1}"#)
      try asClerk(
        #"UPDATE seamesh_office.documents SET body = body || '{"open": false}' WHERE id = '"r1"'"#, why: "checked")
      try expectSoon { try shown(vessel, .string("r1"))?.contains(#""open":false"#) == true }
      // What was left as it was shown is what it was.
      #expect(try shown(vessel, .string("r1")) == #"{"big":1e+16,"n":1,"open":false,"zero":-0.0}"#)
      try waitForEdits(["applied"])
      let row = try #require(
        try server.owner().query("SELECT by_user, by_role, why, made <= now() FROM seamesh_office.edits").rows.first)
      #expect(row.map { PostgreSQLRows.text($0) }.prefix(3) == ["eve@office.example", "owner", "checked"])
      #expect(relay.forwarding?.status.edits?.written == 1)
    }
  }

  @Test("an edit of what changed at sea meanwhile is a conflict, seen on the vessel and at the backend")
  func conflict() throws {
    try withRelay { relay in
      try put("r1", #"{"a":1,"b":1}"#)
      try waitForDocument("r1", #"{"a":1,"b":1}"#)
      relay.forwarding?.stop()
      try put("r1", #"{"a":2,"b":1}"#)
      try expectSoon { try shown(relay, .string("r1")) == #"{"a":2,"b":1}"# }
      try asClerk(#"UPDATE seamesh_office.documents SET body = '{"a": 3, "b": 4}' WHERE id = '"r1"'"#)
      try relay.forward(to: server.relayURL(), bringsEditsHome: true)
      try expectSoon { try shown(vessel, .string("r1")) == #"{"a":3,"b":4}"# }
      try waitForEdits(["applied"])
      let state = try #require(try vessel.node.state(of: "reports", id: .string("r1"), in: partition))
      #expect(state.inbox().map(\.value) == [.int(2)])
      let connection = try server.owner()
      try expectSoon {
        try connection.query("SELECT path, value::text, kind FROM seamesh_office.conflicts WHERE written <= now()").rows
          .map { $0.map { PostgreSQLRows.text($0) } } == [["a", "2", "set"]]
      }
      // Whoever writes what he sees there has decided.
      try put("r1", #"{"a":2,"b":4}"#)
      try expectSoon { try connection.number("SELECT count(*) FROM seamesh_office.conflicts") == 0 }
    }
  }

  @Test(
    "a DELETE of the office of what changed at sea meanwhile waits for a decision, on the vessel and at the backend")
  func deletion() throws {
    try withRelay { relay in
      try put("r1", #"{"a":1}"#)
      try waitForDocument("r1", #"{"a":1}"#)
      relay.forwarding?.stop()
      try put("r1", #"{"a":2}"#)
      try expectSoon { try shown(relay, .string("r1")) == #"{"a":2}"# }
      try asClerk(#"DELETE FROM seamesh_office.documents WHERE id = '"r1"'"#)
      try relay.forward(to: server.relayURL(), bringsEditsHome: true)
      try expectSoon { try shown(vessel, .string("r1")) == nil }
      let connection = try server.owner()
      let conflicts = "SELECT path, value::text, (body IS NULL)::text FROM seamesh_office.conflicts"
      try expectSoon {
        try connection.query(conflicts).rows.map { $0.map { PostgreSQLRows.text($0) } } == [["a", "2", "true"]]
      }
      let told = try #require(try vessel.node.conflicts(partition, ConflictQuery()).conflicts.first)
      #expect(told.isDeleted && told.values.map(\.value) == [.int(2)])
      _ = try vessel.node.resolve(partition, conflict: told.id, .keep)
      try expectSoon { try connection.number("SELECT count(*) FROM seamesh_office.conflicts") == 0 }
      #expect(try vessel.node.conflicts(partition, ConflictQuery()).conflicts.isEmpty)
    }
  }

  @Test(
    "documents are loaded by INSERT, with the ids that they bring, and deleted by DELETE; one that was deleted comes again"
  )
  func insertAndDelete() throws {
    try withRelay { _ in
      try asClerk(
        #"""
        INSERT INTO seamesh_office.documents (partition, collection, body) VALUES
          ('agency=G', 'reports', '{"_id": {"$oid": "5f0000000000000000000001"}, "name": "menu"}'),
          ('agency=G', 'reports', '{"_id": "u", "name": "user"}')
        """#)
      let id = try ExtendedJSON.parse(Array(#"{"$oid": "5f0000000000000000000001"}"#.utf8))
      try expectSoon { try shown(vessel, id) == #"{"name":"menu"}"# && shown(vessel, .string("u")) != nil }
      try waitForDocument("u", #"{"name": "user"}"#)
      try asClerk(#"DELETE FROM seamesh_office.documents WHERE id = '"u"'"#)
      try expectSoon { try shown(vessel, .string("u")) == nil }
      try asClerk(
        #"INSERT INTO seamesh_office.documents (partition, collection, id, body) VALUES ('agency=G', 'reports', '"u"', '{"name": "again"}')"#
      )
      try expectSoon { try shown(vessel, .string("u")) == #"{"name":"again"}"# }
      try waitForEdits(["applied", "applied", "applied", "applied"])
    }
  }

  /// Beside the package, where it is.
  private static let menusAndUsers: [String: String] = {
    var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    while folder.path != "/", !FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path) {
      folder.deleteLastPathComponent()
    }
    let data = folder.appending(path: "../shared/data/ofish/docs")
    let files = ["MenuData": "menudata.json", "User": "user.json", "Agency": "agency.json"]
    let texts = files.compactMapValues { try? String(contentsOf: data.appending(path: $0), encoding: .utf8) }
    return texts.count == files.count ? texts : [:]
  }()

  @Test(
    "menus, users and agencies of O-FISH are loaded by INSERT, and are on the vessel as they were",
    .enabled(if: !menusAndUsers.isEmpty, "not run: needs ../shared/data"))
  func menus() throws {
    try withRelay { _ in
      var expected: [Text: [Value: ValueMap]] = [:]
      for (collection, text) in HomeBoundTests.menusAndUsers.sorted(by: { $0.key < $1.key }) {
        try asClerk(
          """
          INSERT INTO seamesh_office.documents (partition, collection, body)
          SELECT 'agency=G', '\(collection)', d FROM jsonb_array_elements($json$\(text)$json$::jsonb) d
          """)
        guard case .array(let documents) = try ExtendedJSON.parse(Array(text.utf8)) else { continue }
        for case .map(var body) in documents {
          let id = try #require(body["_id"])
          body["_id"] = nil
          expected[Text(collection), default: [:]][id] = body
        }
      }
      #expect(expected.count == 3 && expected.values.allSatisfy { !$0.isEmpty })
      try expectSoon {
        try expected.allSatisfy { collection, documents in
          try documents.allSatisfy { id, body in
            try vessel.node.documents.stored(partition, collection, id: id)?.body == body
          }
        }
      }
      let count = expected.values.reduce(0) { $0 + $1.count }
      try waitForEdits(Array(repeating: "applied", count: count))
    }
  }

  @Test("what cannot be done is refused with its reason, and what follows is done")
  func refusals() throws {
    try withRelay { _ in
      try put("r1", #"{"a":1}"#)
      try waitForDocument("r1", #"{"a":1}"#)
      try asClerk(
        #"""
        SELECT seamesh_office.edit('agency=G', 'reports', '"r1"', NULL, '{"a": 2}');
        SELECT seamesh_office.edit('agency=G', 'reports', '"r1"', '\x0102', '{"a": 2}');
        SELECT seamesh_office.edit('agency=*', 'reports', '"r2"', NULL, '{"a": 2}');
        SELECT seamesh_office.edit('agency=G', 'reports', '"r3"', NULL, '{"$set": {"a": 1}}');
        UPDATE seamesh_office.documents SET body = '{"a": 5}' WHERE id = '"r1"';
        """#)
      try waitForEdits(["refused", "refused", "refused", "refused", "applied"])
      let reasons = try edits().map(\.reason)
      #expect(reasons[0] == "a document with this id is there already")
      #expect(reasons[1] == "what was read is no version of a document")
      #expect(reasons[2].contains("does not end in *"))
      #expect(reasons[3].contains("$set"))
      #expect(try shown(vessel, .string("r1")) == #"{"a":5}"#)
    }
    for (sql, words) in [
      (#"SELECT seamesh_office.edit('agency=G', 'reports', '"x"', NULL, NULL)"#, "give the version that was read"),
      (#"SELECT seamesh_office.edit('agency=G', '', '"x"', NULL, '{}')"#, "names a partition, a collection and an id"),
      (#"SELECT seamesh_office.edit('agency=G', 'reports', '"x"', NULL, '[1]')"#, "is a JSON object"),
      (#"UPDATE seamesh_office.documents SET id = '"y"'"#, "nothing but its body"),
      ("SELECT * FROM seamesh.edits", "permission denied"), ("SELECT * FROM seamesh.changes", "permission denied"),
    ] {
      let problem = #expect(throws: BackendProblem.self) { try asClerk(sql) }
      #expect(problem?.sentence.contains(words) == true, "\(sql): \(problem?.sentence ?? "")")
    }
  }

  @Test(
    "a change of a document that is not there is refused at once, where an UPDATE touches no row; one that is there changes"
  )
  func absent() throws {
    try withRelay { relay in
      try put("r1", #"{"a":1,"b":2}"#)
      try put("gone", #"{"a":1}"#)
      try waitForDocument("gone", #"{"a":1}"#)
      try waitForDocument("r1", #"{"a":1,"b":2}"#)
      _ = try vessel.node.write(
        partition, [DocumentRequest(collection: "reports", id: .string("gone"), action: .delete)])
      try put("bad", #"{"a":"x\u0000y"}"#)
      let connection = try server.owner()
      try expectSoon {
        try connection.number("SELECT count(*) FROM seamesh.documents WHERE NOT alive OR refusal IS NOT NULL") == 2
      }
      for (id, words) in [
        ("none", "there is no document reports \"none\" in agency=G"), ("gone", "was deleted"),
        ("bad", "has no body here"),
      ] {
        try asClerk(#"UPDATE seamesh_office.documents SET body = '{"a": 5}' WHERE id = '"\#(id)"'"#)
        let problem = #expect(throws: BackendProblem.self) {
          try asClerk(#"SELECT seamesh_office.change('agency=G', 'reports', '"\#(id)"', '{"a": 5}')"#)
        }
        #expect(problem?.sentence.contains(words) == true, "\(id): \(problem?.sentence ?? "")")
      }
      #expect(try edits().isEmpty)
      try asClerk(#"SELECT seamesh_office.change('agency=G', 'reports', '"r1"', '{"a": 5}', 'checked')"#)
      try waitForEdits(["applied"])
      try expectSoon { try shown(vessel, .string("r1")) == #"{"a":5,"b":2}"# }
      #expect(try connection.number("SELECT count(*) FROM seamesh_office.edits WHERE why = 'checked'") == 1)
    }
  }

  @Test("whoever might edit before an update of the tables may call what it brought")
  func laterGrants() throws {
    let (server, node) = try (TestPostgreSQL(), ForwardingNode())
    try server.owner("postgres").script("CREATE ROLE clerk LOGIN")
    for format in [PostgreSQLSchema.step8.number - 1, PostgreSQLSchema.format] {
      let grants = format < PostgreSQLSchema.format ? PostgreSQLGrants(office: "clerk") : PostgreSQLGrants()
      _ = try PostgreSQLSetUp.perform(
        server.ownerAddress(), fleet: node.node.fleet, granting: grants, environment: [:], through: format)
    }
    let may =
      "SELECT has_function_privilege('clerk', 'seamesh_office.change(text, text, jsonb, jsonb, text, text)', 'EXECUTE')::int"
    #expect(try server.owner().number(may) == 1)
  }

  @Test("whoever brought edits home before an update of the tables still may")
  func laterHomeBoundGrants() throws {
    let (server, node) = try (TestPostgreSQL(), ForwardingNode())
    for format in [PostgreSQLSchema.step10.number - 1, PostgreSQLSchema.format] {
      let grants = format < PostgreSQLSchema.format ? PostgreSQLGrants(homeBound: "relay") : PostgreSQLGrants()
      _ = try PostgreSQLSetUp.perform(
        server.ownerAddress(), fleet: node.node.fleet, granting: grants, environment: [:], through: format)
    }
    let may = """
      SELECT count(*) FROM pg_proc p WHERE p.pronamespace = 'seamesh'::regnamespace
        AND p.proname IN ('claim_edits', 'claim_carried_edits', 'confirm_edits', 'settle_edits')
        AND has_function_privilege('relay', p.oid, 'EXECUTE')
      """
    #expect(try server.owner().number(may) == 4)
  }

  @Test("where the office has no right the edit is refused with the reason")
  func withoutRight() throws {
    try withRelay { relay in
      try put("r1", #"{"a":1}"#)
      try waitForDocument("r1", #"{"a":1}"#)
      _ = try vessel.node.change(RightsChange(.grant(who: "everyone", level: "read", pattern: "*"), isConfirmed: true))
      try expectSoon {
        try relay.node.permissions(partition, who: nil).members.contains { $0.user == "office" && $0.level == "read" }
      }
      try asClerk(#"UPDATE seamesh_office.documents SET body = '{"a": 5}' WHERE id = '"r1"'"#)
      try waitForEdits(["refused"])
      #expect(try edits().first?.reason.contains("may not write to agency=G") == true)
    }
  }

  @Test("a relay whose membership was ended leaves the edit to another one, and refuses nothing in the office's name")
  func endedRelay() throws {
    try withRelay { ended in
      try put("r1", #"{"a":1}"#)
      try waitForDocument("r1", #"{"a":1}"#)
      let device = try #require(try ended.node.devices().first { $0.isSelf }).device
      _ = try vessel.node.change(
        RightsChange(.revoke(device: device, isCompromised: false, at: nil), isConfirmed: true))
      try expectSoon { try ended.node.devices().contains { $0.isSelf && !$0.endedBy.isEmpty } }
      try asClerk(#"UPDATE seamesh_office.documents SET body = '{"a": 5}' WHERE id = '"r1"'"#)
      try expectSoon { try edits().first?.reason.contains("its membership was ended by") == true }
      #expect(try edits().map(\.state) == ["waiting"])
      try withRelay { _ in try waitForEdits(["applied"]) }
    }
  }

  @Test(
    "an edit that a relay claimed and did not write is written by it at its next start, and by another after ten minutes; each once"
  )
  func claims() throws {
    try put("r1", #"{"list":[1]}"#)
    try withRelay(isForwarding: false) { first in
      try withRelay(isForwarding: false) { second in
        try first.forward(to: server.relayURL())
        try waitForDocument("r1", #"{"list":[1]}"#)
        first.forwarding?.stop()
        try asClerk(#"UPDATE seamesh_office.documents SET body = '{"list": [1, 2]}' WHERE id = '"r1"'"#)
        try claim(as: first)
        try second.forward(to: server.relayURL(), bringsEditsHome: true)
        try second.waitForState(.caughtUp)
        let claimed = try claim(as: second)
        #expect(claimed == 0, "another's claim holds")
        try first.forward(to: server.relayURL(), bringsEditsHome: true)
        try waitForEdits(["applied"])

        first.forwarding?.stop()
        second.forwarding?.stop()
        try asClerk(#"UPDATE seamesh_office.documents SET body = '{"list": [1, 2, 3]}' WHERE id = '"r1"'"#)
        try claim(as: first)
        try server.owner().script(
          "UPDATE seamesh.edits SET claimed = claimed - interval '11 minutes' WHERE settled IS NULL")
        try second.forward(to: server.relayURL(), bringsEditsHome: true)
        try waitForEdits(["applied", "applied"])
        try first.forward(to: server.relayURL(), bringsEditsHome: true)
        try first.waitForState(.caughtUp)
        try expectSoon { try shown(first, .string("r1")) == #"{"list":[1,2,3]}"# }
        #expect(try server.owner().number("SELECT count(*) FROM seamesh.edit_changes") == 2)
      }
    }
  }

  @Test(
    "a claim is confirmed as long as nothing has come of it, by a ledger that has what is asked about, and to nobody else"
  )
  func confirmation() throws {
    try put("r1", #"{"list":[1]}"#)
    try withRelay(isForwarding: false) { relay in
      try relay.forward(to: server.relayURL())
      try waitForDocument("r1", #"{"list":[1]}"#)
      relay.forwarding?.stop()
      try asClerk(#"UPDATE seamesh_office.documents SET body = '{"list": [1, 2]}' WHERE id = '"r1"'"#)
      let (mine, others) = try (backend(relay.node.device), backend(vessel.node.device))
      let edits = try mine.claimEdits(most: 10, of: nil).map(\.id)
      #expect(edits.count == 1)
      let here = try reach()
      let further = ChainReach(chain: here.chain, sequence: here.sequence + 1)
      #expect(try mine.confirm(edits, reaching: [here]) == ClaimAnswer(hasChains: true, standing: Set(edits)))
      #expect(try mine.confirm(edits, reaching: []).hasChains)
      #expect(try !mine.confirm(edits, reaching: [here, further]).hasChains)
      #expect(try others.confirm(edits, reaching: [here]) == ClaimAnswer(hasChains: true, standing: []))
      // As a relay leaves it that fills a ledger which was put back.
      try server.owner().script(
        """
        INSERT INTO seamesh.edit_changes (partition, replica, sequence, hash, edit)
          SELECT c.partition, c.replica, c.sequence, c.hash, e.id FROM seamesh.changes c, seamesh.edits e LIMIT 1
        """)
      #expect(try mine.confirm(edits, reaching: [here]) == ClaimAnswer(hasChains: true, standing: []))
      try server.owner().script("DELETE FROM seamesh.edit_changes; UPDATE seamesh.edits SET settled = now()")
      #expect(try mine.confirm(edits, reaching: [here]).standing.isEmpty)
    }
  }

  private func backend(_ relay: DeviceID) throws -> PostgreSQLBackend {
    let backend = try PostgreSQLBackend(
      PostgreSQLAddress(url: server.relayURL()), fleet: vessel.node.fleet, relay: relay, environment: [:])
    try backend.connect()
    return backend
  }

  /// How far some chain of the ledger goes.
  private func reach() throws -> ChainReach {
    let row = try #require(
      try server.owner().query(
        "SELECT partition, replica, max(sequence) FROM seamesh.changes GROUP BY 1, 2 LIMIT 1"
      ).rows.first)
    let partition = try PartitionID(#require(row[0].flatMap { Digest($0) }))
    let chain = try ChainKey(partition: partition, replica: #require(row[1].flatMap { ReplicaID($0) }))
    return try ChainReach(chain: chain, sequence: UInt64(clamping: #require(PostgreSQLRows.integer(row[2]))))
  }

  /// How many edits it gets.
  @discardableResult
  private func claim(as relay: ForwardingNode) throws -> Int64 {
    try PostgreSQLRows.integer(
      server.owner().query(
        "SELECT count(*) FROM seamesh.claim_edits($1, $2, 10)",
        [.bytes(relay.node.fleet.digest.bytes), .bytes(relay.node.device.digest.bytes)]
      ).rows.first?[0]) ?? -1
  }

  @Test("edits that cannot be done yet do not hold up others, however many they are")
  func leftBehind() throws {
    try withRelay { _ in
      try put("r1", #"{"a":1}"#)
      try waitForDocument("r1", #"{"a":1}"#)
      // A version that stands on what no relay has.
      let unknown = DocumentState(
        generation: 1,
        groups: [
          OperationGroup(
            dot: Dot(replica: ReplicaID(high: 7, low: 7), sequence: 9), timestamp: .zero, generation: 1,
            operations: [Operation(.set, [.key("a")], value: .int(9))])
        ])
      let read = unknown.encoded.map { String(format: "%02x", $0) }.joined()
      try server.owner().script(
        """
        SELECT seamesh_office.edit('agency=G', 'reports', to_jsonb('x' || n), '\\x\(read)', '{"a": 2}')
        FROM generate_series(1, \(HomeBound.claimLimit)) n;
        """)
      let connection = try server.owner()
      try expectSoon {
        try connection.number("SELECT count(*) FROM seamesh.edits WHERE waits_for LIKE '%do not count here'")
          == Int64(HomeBound.claimLimit)
      }
      try asClerk(#"UPDATE seamesh_office.documents SET body = '{"a": 5}' WHERE id = '"r1"'"#)
      try expectSoon { try shown(vessel, .string("r1")) == #"{"a":5}"# }
      // They wait for a day, and then whoever asked is told.
      let waiting = "SELECT count(*) FROM seamesh_office.edits WHERE state IN ('waiting', 'claimed')"
      let pass =
        "UPDATE seamesh.edits SET left_last = now() - interval '30 minutes', left_since = left_since - interval"
      try connection.script("\(pass) '23 hours' WHERE number <= 3")
      try connection.script("\(pass) '25 hours' WHERE number <= 2")
      let refused =
        "SELECT count(*) FROM seamesh_office.edits WHERE state = 'refused' AND reason LIKE '%do not count here, for a day by now'"
      try expectSoon { try connection.number(refused) == 2 }
      #expect(try connection.number(waiting) == Int64(HomeBound.claimLimit) - 2)
    }
  }

  private func leave(_ relay: DeviceID, _ edits: [UUIDValue]) throws {
    try backend(relay).settle(edits.map { ($0, .left("later")) })
  }

  @Test(
    "who left an edit asks for it less and less often, others have it sooner; hours in which nobody tried count for nothing"
  )
  func leftAgain() throws {
    let first = vessel.node.device
    let second = DeviceID(Digest(Array(repeating: 7, count: 32)) ?? .zero)
    try withRelay(isForwarding: false) { relay in
      try asClerk("SELECT seamesh_office.edit('agency=G', 'reports', to_jsonb('x'::text), NULL, '{}')")
      let edits = try backend(first).claimEdits(most: 9, of: nil).map(\.id)
      try leave(first, edits)
      #expect(
        try backend(first).claimEdits(most: 9, of: nil).map(\.id) == edits, "left once, it is taken again at once")
      try leave(first, edits)
      let owner = try server.owner()
      try owner.script("UPDATE seamesh.edits SET left_since = left_since - interval '1 minute'")
      #expect(try backend(first).claimEdits(most: 9, of: nil).isEmpty, "for 15 s")
      try expectSoon { try backend(second).claimEdits(most: 9, of: nil).map(\.id) == edits }
      try leave(second, edits)
      try owner.script(
        "UPDATE seamesh.edits SET left_since = left_since - interval '25 hours', left_last = left_last - interval '2 hours'"
      )
      #expect(try backend(first).claimEdits(most: 9, of: nil).map(\.id) == edits)
      try leave(first, edits)
      #expect(try self.edits().map(\.state) == ["waiting"], "nobody tried for two hours")
    }
  }

  @Test("a claim takes some 16 MiB at once, and one edit that is larger")
  func claimBytes() throws {
    try withRelay(isForwarding: false) { relay in
      try asClerk(
        "SELECT seamesh_office.edit('agency=G', 'reports', to_jsonb(n), NULL, jsonb_build_object('t', repeat('x', s))) "
          + "FROM unnest(ARRAY[20000000, 9000000, 6000000, 9000000]) WITH ORDINALITY AS u (s, n)")
      let backend = try backend(relay.node.device)
      var claims: [Int] = []
      while let claimed = Optional(try backend.claimEdits(most: 9, of: nil)), !claimed.isEmpty {
        claims.append(claimed.count)
        try backend.settle(claimed.map { ($0.id, .unchanged) })
      }
      #expect(claims == [1, 2, 1])
    }
  }

  @Test("a link that carries some partitions alone brings edits of these home, whatever else waits") func carried()
    throws
  {
    try withRelay(isForwarding: false) { relay in
      try put("r1", #"{"a":1}"#)
      try vessel.put("agency=H", "h")
      try expectSoon { try relay.holds("agency=H", "h") && shown(relay, .string("r1")) != nil }
      var rule = LinkRule(.mobile)
      (rule.routes, rule.carries) = ([try #require(LinkRoute(.ipv4(0x7f00_0000), bitCount: 8))], ["agency=G"])
      try relay.restart(links: [rule])
      var limits = ForwarderLimits()
      limits.thinEditMilliseconds = 100
      try relay.forward(to: server.relayURL(), limits: limits, bringsEditsHome: true)
      try waitForDocument("r1", #"{"a":1}"#)
      try expectSoon { relay.forwarding?.status.reason == "the link does not carry all partitions" }
      try asClerk(
        """
        SELECT seamesh_office.edit('agency=H', 'reports', to_jsonb('x'::text), NULL, '{}');
        SELECT seamesh_office.edit(repeat('x', 256), 'reports', to_jsonb('x'::text), NULL, '{}');
        UPDATE seamesh_office.documents SET body = '{"a": 5}' WHERE id = '"r1"'
        """)
      try expectSoon { try shown(vessel, .string("r1")) == #"{"a":5}"# }
      try expectSoon {
        try edits().map(\.state) == ["waiting", "refused", "applied"]
      }
      let touched =
        "SELECT count(*) FROM seamesh.edits WHERE partition = 'agency=H' AND (claimed, left_last) IS DISTINCT FROM (NULL, NULL)"
      #expect(try server.owner().number(touched) == 0, "it is left to whoever carries it")
    }
  }

  @Test("an INSERT of what was deleted leaves what was written at sea meanwhile to a decision") func insertOfConflict()
    throws
  {
    try withRelay { relay in
      try put("r1", #"{"a":1}"#)
      try waitForDocument("r1", #"{"a":1}"#)
      relay.forwarding?.stop()
      try put("r1", #"{"a":2}"#)
      try expectSoon { try shown(relay, .string("r1")) == #"{"a":2}"# }
      try asClerk(#"DELETE FROM seamesh_office.documents WHERE id = '"r1"'"#)
      try relay.forward(to: server.relayURL(), bringsEditsHome: true)
      try expectSoon { try shown(vessel, .string("r1")) == nil }
      try waitForEdits(["applied"])
      try asClerk(
        #"INSERT INTO seamesh_office.documents (partition, collection, id, body) VALUES ('agency=G', 'reports', '"r1"', '{"b": 3}')"#
      )
      try expectSoon { try shown(vessel, .string("r1")) == #"{"b":3}"# }
      let state = try #require(try vessel.node.state(of: "reports", id: .string("r1"), in: partition))
      #expect(state.inbox().map(\.value) == [.int(2)])
    }
  }

  @Test("doubles beyond int64 and a body of nearly 1 MiB are edited as they are shown") func largeNumbers() throws {
    try withRelay { relay in
      var body = try ExtendedJSON.parseMap(Array(#"{"a":1,"d":1e20,"e":-9.5e18}"#.utf8))
      body["t"] = .string(Text(String(repeating: "\"", count: 600_000)))
      _ = try vessel.node.write(
        partition, [DocumentRequest(collection: "reports", id: .string("r1"), action: .put(body: body))])
      let connection = try server.owner()
      try expectSoon {
        try connection.number("SELECT count(*) FROM seamesh_office.documents WHERE body->'a' = '1'") == 1
      }
      try asClerk(#"UPDATE seamesh_office.documents SET body = body || '{"a": 2}' WHERE id = '"r1"'"#)
      try waitForEdits(["applied"])
      try expectSoon {
        let body = try vessel.node.documents.stored(partition, "reports", id: .string("r1"))?.body
        return body?["a"] == .int(2) && body?["d"] == .double(1e20) && body?["e"] == .double(-9.5e18)
      }
      try asClerk(
        #"UPDATE seamesh_office.documents SET body = body || '{"a": 9223372036854775809}' WHERE id = '"r1"'"#)
      try waitForEdits(["applied", "refused"])
    }
  }

  /// The ledger takes no changes until the trigger is dropped.
  private func refuseChanges() throws {
    try server.owner().script(
      """
      CREATE FUNCTION seamesh.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '57P03'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON seamesh.changes FOR EACH ROW EXECUTE FUNCTION seamesh.refuse();
      """)
  }

  @Test("an edit whose relay was cut off before the ledger knew of its change is not written twice")
  func lostAnswer() throws {
    try withRelay { relay in
      try put("r1", #"{"list":[1]}"#)
      try waitForDocument("r1", #"{"list":[1]}"#)
      // What is written stays unknown to it.
      try refuseChanges()
      try asClerk(#"UPDATE seamesh_office.documents SET body = '{"list": [1, 2]}' WHERE id = '"r1"'"#)
      try expectSoon { try shown(relay, .string("r1")) == #"{"list":[1,2]}"# }
      relay.forwarding?.stop()
      try relay.restart()
      try server.owner().script("DROP TRIGGER refuse ON seamesh.changes")
      try relay.forward(to: server.relayURL(), bringsEditsHome: true)
      try waitForEdits(["applied"])
      try relay.waitForState(.caughtUp)
      #expect(try shown(relay, .string("r1")) == #"{"list":[1,2]}"#)
      #expect(try server.owner().number("SELECT count(*) FROM seamesh.edit_changes") == 1)
    }
  }

  @Test(
    "an edit that another relay wrote and never brought to the ledger comes there with its change, and is not written twice"
  )
  func writtenElsewhere() throws {
    try withRelay { first in
      try withRelay(isForwarding: false) { second in
        try put("r1", #"{"list":[1]}"#)
        try waitForDocument("r1", #"{"list":[1]}"#)
        try refuseChanges()
        try asClerk(#"UPDATE seamesh_office.documents SET body = '{"list": [1, 2]}' WHERE id = '"r1"'"#)
        try expectSoon { try shown(second, .string("r1")) == #"{"list":[1,2]}"# }
        first.stop()
        // The claim of one that is gone.
        try server.owner().script(
          """
          UPDATE seamesh.edits SET claimed = claimed - interval '11 minutes' WHERE settled IS NULL;
          DROP TRIGGER refuse ON seamesh.changes;
          """)
        try second.forward(to: server.relayURL(), bringsEditsHome: true)
        try waitForEdits(["applied"])
        try second.waitForState(.caughtUp)
        #expect(try server.owner().number("SELECT count(*) FROM seamesh.edit_changes") == 1)
        #expect(second.forwarding?.status.edits?.written == 0)
      }
    }
  }

  @Test("a device of another user, and a role without the right, bring nothing home")
  func withoutTheRightToBring() throws {
    try withRelay(user: "bob@test.example", isForwarding: false) { relay in
      let refusal = #expect(throws: Failure.self) { try relay.forward(to: server.relayURL(), bringsEditsHome: true) }
      #expect(refusal?.message.contains("of the user office") == true)
    }
    try server.owner().script("REVOKE EXECUTE ON FUNCTION seamesh.claim_carried_edits FROM relay")
    try withRelay { relay in
      try relay.waitForState(.caughtUp)
      try expectSoon { relay.forwarding?.status.edits?.reason.contains("lacks a right") == true }
      try put("r1", #"{"a":1}"#)
      try waitForDocument("r1", #"{"a":1}"#)
    }
  }
}
