import Foundation
import Replication
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Seamesh

@Suite(
  "What BACKEND.md says of the tables", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct BackendPageTests {
  private let page: BackendPage
  init() throws { page = try BackendPage() }

  private func put(_ node: ForwardingNode, _ partition: Text, _ id: Text, _ json: String) throws {
    let body = try ExtendedJSON.parseMap(Array(json.utf8))
    _ = try node.node.write(
      PartitionName(partition), [DocumentRequest(collection: "reports", id: .string(id), action: .put(body: body))])
  }

  private func column(_ connection: PostgreSQLConnection, _ sql: String) throws -> [String] {
    try connection.query(sql).rows.map { PostgreSQLRows.text($0.first ?? nil) }
  }

  @Test(
    "its questions have answers, the one about lag a row for each partition, and what may be deleted is missed by nobody"
  )
  func questions() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try server.owner("postgres").script("CREATE ROLE office LOGIN")
    try relay.setUp(server)
    for agency in ["agency=A", "agency=B"] as [Text] {
      let body = #"{"vessel":"Anna","at":{"$date":"2024-02-03T04:05:06Z"},"open":true}"#
      for id in ["r1", "r2"] as [Text] { try put(relay, agency, id, body) }
    }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let owner = try server.owner()
    try owner.script(
      """
      INSERT INTO seamesh.edits (partition, collection, document, by_user, by_role, why, settled)
      SELECT 'agency=A', 'reports', '1', 'u', 'r', '', now() - interval '2 years' * n FROM generate_series(0, 2) n
      """)
    _ = try owner.query("SELECT * FROM seamesh.make_views()")
    let statements = page.statements(of: "Asking")
    #expect(statements.count >= 8)
    for statement in statements where statement.hasPrefix("GRANT") || statement.hasPrefix("ALTER") {
      try owner.script(statement)
    }
    for statement in statements where statement.hasPrefix("SELECT") {
      let rows = try owner.query(statement).rows
      #expect(!rows.isEmpty, "\(statement)")
      if statement.contains("nothing_for") {
        #expect(rows.map { PostgreSQLRows.text($0[0]) } == ["agency=A", "agency=B"])
        #expect(rows.allSatisfy { $0.allSatisfy { $0 != nil } })
      }
    }
    let deletions = page.statements(of: "Retention")
    #expect(deletions.count == 1)
    for deletion in deletions { try owner.script(deletion) }
    #expect(try owner.number("SELECT count(*) FROM seamesh.edits") == 1)
    try relay.node.sendForwardingNow()
    try relay.put("agency=A", "later")
    try relay.waitForLedger(server)
    #expect(relay.forwarding?.status.lostChanges == 0)
  }

  @Test("its list of rights is what --set-up grants, and no more and no less")
  func rights() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    let owner = try server.owner()
    for role in ["listed_relay", "listed_auditor"] { try owner.script("CREATE ROLE \(role)") }
    _ = try PostgreSQLSetUp.perform(
      server.ownerAddress(), fleet: relay.node.fleet, granting: PostgreSQLGrants(relay: "relay", auditor: "auditor"),
      environment: [:])
    let grants = page.statements(of: "Rights")
    #expect(grants.count == 4)
    for grant in grants {
      try owner.script(
        grant.replacing("TO relay", with: "TO listed_relay").replacing("TO auditor", with: "TO listed_auditor"))
    }
    func rights(_ role: String) throws -> [String] {
      try column(
        owner,
        """
        SELECT what || ' ' || a.privilege_type FROM (
          SELECT oid::regprocedure::text, proacl FROM pg_proc UNION ALL SELECT oid::regclass::text, relacl FROM pg_class
          UNION ALL SELECT oid::regnamespace::text, nspacl FROM pg_namespace) AS o (what, acl), aclexplode(acl) a
        WHERE a.grantee = '\(role)'::regrole ORDER BY 1
        """)
    }
    for role in ["relay", "auditor"] {
      let granted = try rights(role)
      #expect(granted.count > 10)
      #expect(try rights("listed_\(role)") == granted)
    }
  }

  @Test("every key begins with the partition, but those that it names, and each other table is named to be distributed")
  func keys() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let owner = try server.owner()
    let tables = try column(owner, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'seamesh' ORDER BY 1")
    let others = try column(
      owner,
      """
      SELECT DISTINCT i.indrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
      WHERE i.indisunique AND c.relnamespace = 'seamesh'::regnamespace AND c.relkind = 'r' AND a.attname <> 'partition' ORDER BY 1
      """
    ).map { $0.replacing("seamesh.", with: "") }
    let text = page.text(of: "What stands where")
    let sentence = try #require(
      text.components(separatedBy: "Every key begins with the partition").last?
        .components(separatedBy: "so the tables distribute").first)
    #expect(BackendPage.names(in: sentence).sorted() == others)
    let distributed = page.statements(of: "What stands where").filter { $0.contains("create_distributed_table") }
    let named = distributed.flatMap { $0.components(separatedBy: "'seamesh.").dropFirst() }
      .map { String($0.prefix { $0 != "'" }) }
    #expect(named.sorted() == tables.filter { !others.contains($0) })
    let described = text.components(separatedBy: "\n").filter { $0.hasPrefix("| `") }
      .flatMap { BackendPage.names(in: $0.components(separatedBy: "|")[1]) }
    #expect(described.sorted() == tables)
    let enforced = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND connamespace = 'seamesh'::regnamespace"
    #expect(try owner.number(enforced) == 0, "a foreign key would have to have the partition as well")
  }

  @Test("each function that a role may call, and what runs as its owner, has a fixed search_path")
  func searchPath() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let owner = try server.owner()
    let all = "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace::regnamespace::text LIKE 'seamesh%'"
    #expect(try column(owner, all).count > 15)
    // What is nobody's to call is called by those that have one.
    let free = try column(
      owner,
      all + """
         AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)
        AND (prosecdef OR EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) a WHERE a.grantee <> proowner))
        """)
    #expect(free == [])
  }
}
