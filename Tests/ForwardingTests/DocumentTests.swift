import Foundation
import Identity
import Replication
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Seamesh

@Suite("Documents in a real PostgreSQL", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct DocumentTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("agency=G") }

  private func put(_ node: ForwardingNode, _ id: Text, _ json: String, _ collection: Text = "reports") throws {
    let body = try ExtendedJSON.parseMap(Array(json.utf8))
    _ = try node.node.write(
      partition, [DocumentRequest(collection: collection, id: .string(id), action: .put(body: body, keepAbsent: true))])
  }

  private func shown(_ node: ForwardingNode, _ id: Text) throws -> String? {
    try node.node.documents.stored(partition, "reports", id: .string(id)).map { ExtendedJSON.text(.map($0.body)) }
  }

  /// What the backend has of all living documents of `reports`, by their ids' JSON.
  private func bodies(_ server: TestPostgreSQL) throws -> [String: String] {
    let rows = try server.owner().query(
      "SELECT id_json::text, body::text FROM seamesh.documents WHERE alive AND collection = 'reports'"
    ).rows
    return Dictionary(rows.map { (PostgreSQLRows.text($0[0]), PostgreSQLRows.text($0[1])) }) { first, _ in first }
  }

  /// As JSONB means it, in its own form.
  private func jsonb(_ text: String?, _ server: TestPostgreSQL) throws -> String {
    PostgreSQLRows.text(try server.owner().query("SELECT ($1::text)::jsonb::text", [.text(text ?? "")]).rows.first?[0])
  }

  private func expectSoon(
    _ condition: () throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let came = try waitUntil(within: 30, condition)
    #expect(came, sourceLocation: sourceLocation)
  }

  @Test("a document that two devices wrote is in the backend as the node shows it, and gone once it is deleted")
  func merged() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.node.subscribe("agency=*")
    let member = try relay.member()
    defer { member.remove() }
    try put(relay, "r1", #"{"a":1,"when":{"$date":"2024-02-03T04:05:06Z"},"list":[1,"x",null]}"#)
    try expectSoon { try shown(member, "r1") != nil }
    try relay.forward(to: server.relayURL())
    try put(relay, "r1", #"{"b":{"c":true}}"#)
    try put(member, "r1", #"{"d":"é ☃"}"#)
    try expectSoon { try shown(relay, "r1")?.contains("☃") == true && shown(relay, "r1")?.contains("true") == true }
    try relay.waitForLedger(server)
    let expected = try jsonb(shown(relay, "r1"), server)
    try expectSoon { try bodies(server) == ["\"r1\"": expected] }
    #expect(expected.contains("☃") && expected.contains("\"c\": true"))
    _ = try relay.node.write(partition, [DocumentRequest(collection: "reports", id: .string("r1"), action: .delete)])
    try expectSoon { try bodies(server).isEmpty }
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.documents WHERE NOT alive AND body IS NULL") == 1)
  }

  @Test("an end that takes writes back rewrites the document, and takes away what nobody else wrote")
  func unmerged() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.node.subscribe("agency=*")
    let member = try relay.member()
    defer { member.remove() }
    try put(relay, "r1", #"{"a":1}"#)
    try expectSoon { try shown(member, "r1") != nil }
    try put(member, "r1", #"{"a":2,"b":3}"#)
    try put(member, "own", #"{"b":3}"#)
    try expectSoon { try shown(relay, "own") != nil && shown(relay, "r1") == #"{"a":2,"b":3}"# }
    try relay.forward(to: server.relayURL())
    try expectSoon { try bodies(server) == ["\"r1\"": #"{"a": 2, "b": 3}"#, "\"own\"": #"{"b": 3}"#] }
    let changes = try server.owner().number("SELECT count(*) FROM seamesh.changes")
    _ = try relay.node.change(
      RightsChange(.revoke(device: "vessel", isCompromised: false, at: "2020-01-01T00:00:00Z"), isConfirmed: true))
    try expectSoon { try bodies(server) == ["\"r1\"": #"{"a": 1}"#] }
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.changes") == changes)
  }

  @Test("numbers at the ends of int64 stand exactly in JSON, and minus zero in the state beside it")
  func exactNumbers() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try put(relay, "n", #"{"max":9223372036854775807,"min":-9223372036854775808,"zero":-0.0}"#)
    try relay.forward(to: server.relayURL())
    try expectSoon { try bodies(server).count == 1 }
    let exact = "SELECT (body->>'max') || ' ' || (body->>'min') FROM seamesh.documents"
    let text = PostgreSQLRows.text(try server.owner().query(exact).rows.first?[0])
    #expect(text == "9223372036854775807 -9223372036854775808")
    let state = try server.owner().query("SELECT state FROM seamesh.documents").rows.first?[0]
    let stored = try DocumentStateCodec.decode((state ?? [])[...])
    let body = DocumentState(generation: stored.generation, groups: stored.groups).shown()
    guard case .double(let zero)? = body?["zero"] else {
      Issue.record("no zero in \(String(describing: body))")
      return
    }
    #expect(zero == 0 && zero.sign == .minus)
  }

  @Test("what PostgreSQL cannot hold is a dead letter with its reason, beside a whole ledger, until it is written anew")
  func deadLetters() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try put(relay, "null", #"{"a":"x\u0000y"}"#)
    try put(relay, "deep", #"{"in":[{"a":"\u0000"}]}"#)
    try put(relay, "i\0d", #"{"a":1}"#)
    try put(relay, "good", #"{"a":"\\u0000"}"#)
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let letters = "SELECT count(*) FROM seamesh.documents WHERE refusal LIKE '%U+0000%' AND body IS NULL AND alive"
    #expect(try server.owner().number(letters) == 3)
    try expectSoon { relay.forwarding?.status.deadLetters == 3 }
    #expect(try relay.node.metrics().contains("seamesh_forward_dead_letters 3"))
    let finding = try relay.node.doctor().first { $0.code == "forward-dead-letters" }
    #expect(finding?.message.contains("3 documents") == true)
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.changes") == 4)
    #expect(try bodies(server)["\"good\""] == #"{"a": "\\u0000"}"#)
    // Of a dead letter every byte is in the ledger.
    try expectSoon { try relay.node.safeToWipe(WipeRules(), asking: false).isSafe }
    try put(relay, "null", #"{"a":"x"}"#)
    try expectSoon { try server.owner().number(letters) == 2 }
    #expect(try bodies(server)["\"null\""] == #"{"a": "x"}"#)
  }

  @Test("a document that a constraint refuses is a dead letter alone, and goes in when it is written or sent again")
  func refused() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try server.owner().script("ALTER TABLE seamesh.documents ADD CONSTRAINT tall CHECK ((body->>'n')::integer < 30)")
    for index in 0..<40 { try put(relay, Text("\(index)"), #"{"n":\#(index == 33 ? 99 : index % 30)}"#) }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(try bodies(server).count == 40)
    let letters = "SELECT count(*) FROM seamesh.documents WHERE refusal LIKE '%tall%' AND body IS NULL"
    #expect(try server.owner().number(letters) == 1)
    try put(relay, "33", #"{"n":7}"#)
    try expectSoon { try server.owner().number(letters) == 0 }
    try put(relay, "33", #"{"n":99}"#)
    try expectSoon { try server.owner().number(letters) == 1 }
    try server.owner().script("ALTER TABLE seamesh.documents DROP CONSTRAINT tall")
    try relay.node.sendForwardingNow()
    try expectSoon { try server.owner().number(letters) == 0 }
    #expect(try bodies(server)["\"33\""] == #"{"n": 99}"#)
  }

  @Test("dead letters behind very many that stay refused go in, too, when they are sent again")
  func behindMany() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try server.owner().script("ALTER TABLE seamesh.documents ADD CONSTRAINT tall CHECK ((body->>'n')::integer < 30)")
    let null = try ExtendedJSON.parseMap(Array(#"{"a":"\u0000"}"#.utf8))
    for start in stride(from: 0, to: DeadLetterTurn.window, by: 512) {
      let requests = (start..<start + 512).map {
        DocumentRequest(collection: "reports", id: .string(Text("a\($0)")), action: .put(body: null))
      }
      for result in try relay.node.writeEach(partition, requests) { _ = try result.get() }
    }
    try put(relay, "z", #"{"n":99}"#)
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let letters = "SELECT count(*) FROM seamesh.documents WHERE refusal IS NOT NULL"
    try expectSoon { try server.owner().number(letters) == Int64(DeadLetterTurn.window) + 1 }
    try server.owner().script("ALTER TABLE seamesh.documents DROP CONSTRAINT tall")
    try expectSoon {
      try relay.node.sendForwardingNow()
      return try server.owner().number(letters) == Int64(DeadLetterTurn.window)
    }
    #expect(try bodies(server)["\"z\""] == #"{"n": 99}"#)
    try relay.waitForState(.caughtUp)
    #expect((relay.forwarding?.status.deadLetters ?? 0) >= Int64(DeadLetterTurn.window))
  }

  @Test("a relay that lacks what the ledger has leaves another relay's documents alone, until it has learnt")
  func staleRelay() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.node.subscribe("agency=*")
    var second = try relay.member()
    let path = second.directory
    defer { try? FileManager.default.removeItem(atPath: path) }
    try put(relay, "r1", #"{"a":"old"}"#)
    try expectSoon { try shown(second, "r1") != nil }
    second.stop()
    try put(relay, "r1", #"{"a":"new"}"#)
    try relay.forward(to: server.relayURL())
    try expectSoon { try bodies(server) == ["\"r1\"": #"{"a": "new"}"#] }
    relay.stop()
    // Away from the others it knows less, and writes what they do not know.
    second = try ForwardingNode(directory: path)
    try put(second, "r1", #"{"b":1}"#)
    try put(second, "r2", #"{"c":1}"#)
    try second.forward(to: server.relayURL())
    try second.waitForState(.caughtUp)
    #expect(try bodies(server) == ["\"r1\"": #"{"a": "new"}"#, "\"r2\"": #"{"c": 1}"#])
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.document_positions") == 1)
    try expectSoon { second.forwarding?.status.staleDocuments == 1 }
    second.stop()
    try relay.restart()
    try relay.forward(to: server.relayURL())
    second = try ForwardingNode(directory: path, peers: [relay.address])
    defer { second.stop() }
    try expectSoon { try shown(relay, "r1") == #"{"a":"new","b":1}"# }
    try expectSoon { try bodies(server)["\"r1\""] == #"{"a": "new", "b": 1}"# }
  }

  @Test("after a restart only what changed meanwhile is sent, and a restored copy of the tables is brought up again")
  func restart() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    for index in 0..<20 { try put(relay, Text("\(index)"), #"{"n":1}"#) }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let connection = try server.owner()
    try connection.script(
      "UPDATE seamesh.documents SET written = '2000-01-01'; CREATE TABLE copy AS TABLE seamesh.documents;"
        + "CREATE TABLE marks AS TABLE seamesh.document_positions")
    try relay.restart()
    try put(relay, "3", #"{"n":2}"#)
    try relay.forward(to: server.relayURL())
    let written = "SELECT count(*) FROM seamesh.documents WHERE written > '2001-01-01'"
    try expectSoon { try connection.number(written) == 1 }
    try relay.waitForState(.caughtUp)
    try connection.script(
      "TRUNCATE seamesh.documents, seamesh.document_positions; INSERT INTO seamesh.documents TABLE copy;"
        + "INSERT INTO seamesh.document_positions TABLE marks")
    try relay.forward(to: server.relayURL())
    try expectSoon { try connection.number(written) == 1 }
    #expect(try bodies(server)["\"3\""] == #"{"n": 2}"#)
  }

  @Test(
    "tables that are put back under a connection that stands are brought up again, before anything goes on behind them")
  func putBackUnderConnection() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    for index in 0..<5 { try put(relay, Text("\(index)"), #"{"n":1}"#) }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let connection = try server.owner()
    try expectSoon { try bodies(server).count == 5 }
    try connection.script(
      "CREATE TABLE copy AS TABLE seamesh.documents; CREATE TABLE marks AS TABLE seamesh.document_positions")
    _ = try relay.node.write(
      partition, [DocumentRequest(collection: "reports", id: .string("3"), action: .delete)])
    try expectSoon { try bodies(server)["\"3\""] == nil }
    try connection.script(
      "TRUNCATE seamesh.documents, seamesh.document_positions; INSERT INTO seamesh.documents TABLE copy;"
        + "INSERT INTO seamesh.document_positions TABLE marks")
    try put(relay, "4", #"{"n":2}"#)
    try expectSoon { try bodies(server)["\"4\""] == #"{"n": 2}"# && bodies(server)["\"3\""] == nil }
  }

  @Test("a view per collection has plain types and names, and answers plain SQL")
  func views() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let name = "x'); DROP TABLE seamesh.runs; --"
    try put(relay, "r1", #"{"vessel":"Anna","n":5,"open":true,"at":{"$date":"2024-02-03T04:05:06Z"},"mixed":1}"#)
    try put(relay, "r2", #"{"vessel":"Berta","n":2.5,"open":false,"mixed":"x","\#(name)":"odd"}"#)
    try put(relay, "r3", #"{"vessel":null,"other":{"x":1}}"#)
    try put(relay, "other", #"{"a":1}"#, "odd collection\"; --")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let asRelay = try PostgreSQLConnection(
      PostgreSQLAddress(url: server.relayURL()), environment: [:], stop: StopPipe())
    #expect(try asRelay.query("SELECT * FROM seamesh.make_views()").rows.count == 2)
    let connection = try server.owner()
    func answer(_ sql: String) throws -> String { PostgreSQLRows.text(try connection.query(sql).rows.first?[0]) }
    #expect(
      try answer("SELECT vessel || ' ' || n::text FROM seamesh_views.reports WHERE open AND at > '2024-02-01'")
        == "Anna 5")
    #expect(try answer("SELECT sum(n)::text FROM seamesh_views.reports WHERE _partition = 'agency=G'") == "7.5")
    #expect(try answer("SELECT string_agg(mixed, ',' ORDER BY _id) FROM seamesh_views.reports") == "1,x")
    let types =
      "SELECT string_agg(DISTINCT data_type, ',' ORDER BY data_type) FROM information_schema.columns "
      + "WHERE table_schema = 'seamesh_views' AND table_name = 'reports'"
    #expect(try answer(types) == "boolean,numeric,text,timestamp with time zone")
    let odd =
      "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'seamesh_views' "
      + "AND (column_name !~ '^[A-Za-z_][A-Za-z0-9_]*$' OR table_name !~ '^[A-Za-z_][A-Za-z0-9_]*$')"
    #expect(try connection.number(odd) == 0)
    // A value of another kind makes no query fail, and another type once the views are made anew.
    try put(relay, "r4", #"{"vessel":"Carla","n":"many"}"#)
    try expectSoon { try connection.number("SELECT count(*) FROM seamesh_views.reports") == 4 }
    #expect(try answer("SELECT sum(n)::text FROM seamesh_views.reports") == "7.5")
    _ = try asRelay.query("SELECT * FROM seamesh.make_views()")
    #expect(try answer("SELECT n FROM seamesh_views.reports WHERE vessel = 'Carla'") == "many")
    #expect(throws: BackendProblem.self) { _ = try asRelay.query("SELECT * FROM seamesh_views.reports") }
  }
}
