extension PostgreSQLSchema {
  /// Every batch with documents goes on from the one before it of its process, so that a backend that was put back between two
  /// of them refuses the next; and rows of relays that lacked something are told to others, who may know better.
  static let documentNewsStep = Step(
    number: 6, functions: ["document_step", "unsure_documents"],
    sql: """
      -- Who wrote it did not know all that the ledger had.
      ALTER TABLE seamesh.documents ADD COLUMN unsure boolean NOT NULL DEFAULT false;
      CREATE INDEX unsure_documents ON seamesh.documents (partition, collection, id) WHERE unsure;
      -- Of each process of a relay, the last batch with documents that is here.
      CREATE TABLE seamesh.document_steps (
        relay    bytea NOT NULL CHECK (length(relay) = 32),
        process  text NOT NULL,
        step     bigint NOT NULL,
        noted    timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (relay, process)
      );

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

      CREATE FUNCTION seamesh.document_step(of_relay bytea, of_process text) RETURNS bigint
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT coalesce((SELECT s.step FROM seamesh.document_steps s WHERE s.relay = of_relay AND s.process = of_process), 0)
      $$;

      -- Of others, behind the one that is named.
      CREATE FUNCTION seamesh.unsure_documents(
        of_relay bytea, after_partition bytea, after_collection text, after_id bytea, most integer
      ) RETURNS TABLE (partition bytea, collection text, id bytea)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT d.partition, d.collection, d.id FROM seamesh.documents d
        WHERE d.unsure AND d.judge <> of_relay
          AND (d.partition, d.collection, d.id) > (after_partition, after_collection COLLATE "C", after_id)
        ORDER BY 1, 2, 3 LIMIT most
      $$;

      \(writeDocuments6)
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      """)

  private static let functionNames = [
    "describe", "statement_ids", "positions", "append", "write_documents", "document_position", "dead_letters",
    "make_views",
    "write_marks", "note_edits", "note_conflicts", "document_step", "unsure_documents",
  ].map { "'\($0)'" }.joined(separator: ", ")
}
