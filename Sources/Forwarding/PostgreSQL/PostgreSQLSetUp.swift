import Replication
import Wire

/// Makes the tables of a ledger, or brings them up to date: by a role that may, which a relay's own need not be.
package enum PostgreSQLSetUp {
  package struct Outcome: Equatable, Sendable {
    /// 0: there was none.
    package let formatBefore: Int
    package let format: Int
  }

  /// Whoever could forward before still can.
  ///
  /// - Parameters:
  ///   - grants: who may do what from then on.
  ///   - last: the format to come to; a test takes an earlier one.
  package static func perform(
    _ address: PostgreSQLAddress, fleet: FleetID, granting grants: PostgreSQLGrants = PostgreSQLGrants(),
    environment: [String: String], through last: Int = PostgreSQLSchema.format
  ) throws(BackendProblem) -> Outcome {
    let connection = try PostgreSQLConnection(address, environment: environment, stop: StopPipe())
    // Two at once wait for one another here; an end of the connection takes all of it back.
    try connection.script(
      """
      BEGIN;
      CREATE SCHEMA IF NOT EXISTS seamesh;
      CREATE TABLE IF NOT EXISTS seamesh.migrations (
        number integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());
      LOCK TABLE seamesh.migrations IN EXCLUSIVE MODE;
      """)
    let before = try number(connection, "SELECT coalesce(max(number), 0) FROM seamesh.migrations")
    guard before <= PostgreSQLSchema.format else {
      throw BackendProblem(
        .schema,
        "the tables in \(address.shown) were made by a newer seamesh (format \(before); this one knows up to "
          + "\(PostgreSQLSchema.format))", remedy: "Use that version here, too.")
    }
    for step in PostgreSQLSchema.steps where step.number > before && step.number <= last {
      try connection.script(step.sql)
      try connection.script("INSERT INTO seamesh.migrations (number) VALUES (\(step.number))")
    }
    _ = try connection.query(
      "INSERT INTO seamesh.ledger (fleet) VALUES ($1) ON CONFLICT DO NOTHING", [.bytes(fleet.digest.bytes)])
    let owner = try connection.query("SELECT fleet FROM seamesh.ledger").rows.first?.first.flatMap { $0 }
    guard owner == fleet.digest.bytes else {
      throw PostgreSQLProblems.answered(LedgerState.otherFleet, "", address)
    }
    try makeSurface(connection, through: last)
    // A step may have brought functions that nobody was given yet.
    for role in try roles(connection, calling: "seamesh.append") {
      try connection.script(PostgreSQLGrants(relay: role).script(through: last))
    }
    for role in try roles(connection, calling: "seamesh.claim_edits") {
      try connection.script(PostgreSQLGrants(homeBound: role).script(through: last))
    }
    for role in try roles(connection, calling: "seamesh_office.edit") {
      try connection.script(PostgreSQLGrants(office: role).script(through: last))
    }
    for role in try auditors(connection) {
      try connection.script(PostgreSQLGrants(auditor: role).script(through: last))
    }
    try connection.script(grants.script(through: last))
    try connection.script("COMMIT")
    return Outcome(formatBefore: before, format: last)
  }

  /// What of the office's schemas is missing, as after tables were put back from a dump that had only those. What is there stays as it is.
  private static func makeSurface(_ connection: PostgreSQLConnection, through last: Int) throws(BackendProblem) {
    for piece in PostgreSQLSchema.surface where piece.since <= last {
      let missing = try number(connection, "SELECT CASE WHEN \(piece.presence) IS NULL THEN 1 ELSE 0 END")
      if missing == 1 { try connection.script(piece.sql) }
    }
  }

  /// Roles that may call a function, but for its owner; none where it is not there yet.
  private static func roles(
    _ connection: PostgreSQLConnection, calling function: String
  ) throws(BackendProblem) -> [String] {
    try connection.query(
      """
      SELECT DISTINCT r.rolname::text FROM pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a, pg_catalog.pg_roles r
      WHERE p.oid = to_regproc($1) AND a.privilege_type = 'EXECUTE' AND a.grantee <> p.proowner AND r.oid = a.grantee
      """, [.text(function)]
    ).rows.compactMap { row in row.first.flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) } }
  }

  /// Roles that may read the ledger, but for its owner.
  private static func auditors(_ connection: PostgreSQLConnection) throws(BackendProblem) -> [String] {
    try connection.query(
      """
      SELECT DISTINCT r.rolname::text FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a, pg_catalog.pg_roles r
      WHERE c.oid = to_regclass('seamesh.runs') AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
        AND r.oid = a.grantee
      """
    ).rows.compactMap { row in row.first.flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) } }
  }

  private static func number(_ connection: PostgreSQLConnection, _ sql: String) throws(BackendProblem) -> Int {
    Int(PostgreSQLRows.integer(try connection.query(sql).rows.first?.first.flatMap { $0 }) ?? 0)
  }
}
