extension PostgreSQLSchema {
  /// What people at the backend are told that was silent before.
  static let step8 = Step(
    number: 8, functions: ["hold_relay"],
    sql: """
      \(change8)
      \(holdRelay8)
      \(documentSums8)

      \(describe(lookingAt: functionsThrough8))
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      """)

  /// What a role needs through step 8.
  static let functionsThrough8 = [
    "describe", "statement_ids", "positions", "append", "write_documents", "document_position", "dead_letters",
    "make_views", "write_marks", "note_edits", "note_conflicts", "document_step", "unsure_documents", "ledger_state",
    "hold_relay",
  ]

  /// As it was, but for the functions that it looks at.
  static func describe(lookingAt functions: [String]) -> String {
    """
    CREATE OR REPLACE FUNCTION seamesh.describe(OUT format integer, OUT fleet bytea, OUT ledger bytea, OUT lacking text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
      SELECT (SELECT max(number) FROM seamesh.migrations), l.fleet, uuid_send(l.id),
        coalesce((SELECT string_agg('seamesh.' || p.proname, ', ' ORDER BY p.proname) FROM pg_proc p
          WHERE p.pronamespace = 'seamesh'::regnamespace
            AND p.proname IN (\(functions.map { "'\($0)'" }.joined(separator: ", ")))
            AND NOT has_function_privilege(session_user, p.oid, 'EXECUTE')), '')
      FROM seamesh.ledger l
    $$;
    """
  }
}
