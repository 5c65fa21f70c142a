import Foundation
import TestSupport
import Testing

@testable import Forwarding

@Suite(
  "Documents of the office by their ids", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct OfficeLookupTests {
  @Test(
    "one is found and edited by an index, whatever lies in its collection, and without that index by looking through it"
  )
  func byIndex() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let owner = try server.owner()
    try owner.script(
      """
      INSERT INTO seamesh.partitions SELECT sha256(n::text::bytea), 'agency=' || n FROM generate_series(1, 20) n;
      INSERT INTO seamesh.documents (partition, collection, id, id_json, alive, generation, body, state, judge)
      SELECT sha256((n % 20 + 1)::text::bytea), 'reports', n::text::bytea, to_jsonb('r-' || n), true, 1,
        jsonb_build_object('text', repeat('x', 500), 'open', true), '\\x01', '' FROM generate_series(1, 20000) n;
      ANALYZE seamesh.documents;
      """)
    let place = #"WHERE partition = 'agency=8' AND collection = 'reports' AND id = '"r-19987"'"#
    let questions = [
      "SELECT body FROM seamesh_office.documents \(place)",
      #"UPDATE seamesh_office.documents SET body = body || '{"open": false}' \#(place)"#,
      #"SELECT seamesh_office.change('agency=8', 'reports', '"r-19987"', '{"open": false}')"#,
    ]
    for question in questions { #expect(try blocks(question, server) < 100, "\(question)") }
    #expect(try owner.number("SELECT count(*) FROM seamesh.edits WHERE document = '\"r-19987\"'") == 4)
    try owner.script("DROP INDEX seamesh.documents_by_id")
    for question in questions { #expect(try blocks(question, server) > 1_000, "\(question)") }
  }

  @Test("an id of the greatest length, and one that is no text, may stand in the index")
  func longIDs() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let owner = try server.owner()
    // As JSONB an array takes twelve bytes and more for a number that takes one in an id.
    try owner.script(
      """
      INSERT INTO seamesh.partitions VALUES (sha256('a'), 'a');
      INSERT INTO seamesh.documents (partition, collection, id, id_json, alive, generation, body, state, judge)
      SELECT sha256('a'), 'reports', '\\x01', (SELECT jsonb_agg(sqrt(n)) FROM generate_series(1, 1000) n), true, 1, '{}', '\\x01', '';
      """)
    #expect(try owner.number("SELECT count(*) FROM seamesh_office.documents WHERE jsonb_array_length(id) = 1000") == 1)
  }

  /// Pages that it looks at, by a connection that has planned it before.
  private func blocks(_ question: String, _ server: TestPostgreSQL) throws -> Int {
    let connection = try server.owner()
    // A scan begins at the beginning, so that it does not come by what it looks for early.
    try connection.script("SET synchronize_seqscans = off")
    _ = try connection.query(question)
    let rows = try connection.query("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) \(question)").rows
    let text = Data(rows.first?.first.flatMap { $0 } ?? [])
    let plans = try #require(try JSONSerialization.jsonObject(with: text) as? [[String: Any]])
    let plan = try #require(plans.first?["Plan"] as? [String: Any])
    return (plan["Shared Hit Blocks"] as? Int ?? 0) + (plan["Shared Read Blocks"] as? Int ?? 0)
  }
}
