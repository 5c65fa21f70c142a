extension PostgreSQLSchema {
  /// What people at the backend are told that was silent before.
  static let step8 = Step(
    number: 8, functions: ["hold_relay"],
    sql: """
      \(change8)
      \(holdRelay8)
      \(documentSums8)

      -- As it was, but for the functions that it looks at.
      CREATE OR REPLACE FUNCTION seamesh.describe(OUT format integer, OUT fleet bytea, OUT ledger bytea, OUT lacking text)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT (SELECT max(number) FROM seamesh.migrations), l.fleet, uuid_send(l.id),
          coalesce((SELECT string_agg('seamesh.' || p.proname, ', ' ORDER BY p.proname) FROM pg_proc p
            WHERE p.pronamespace = 'seamesh'::regnamespace
              AND p.proname IN (\(functionNames))
              AND NOT has_function_privilege(session_user, p.oid, 'EXECUTE')), '')
        FROM seamesh.ledger l
      $$;
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      """)

  private static let functionNames = [
    "describe", "statement_ids", "positions", "append", "write_documents", "document_position", "dead_letters",
    "make_views", "write_marks", "note_edits", "note_conflicts", "document_step", "unsure_documents", "ledger_state",
    "hold_relay",
  ].map { "'\($0)'" }.joined(separator: ", ")
}
