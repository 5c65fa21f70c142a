extension PostgreSQLSchema {
  /// Statements are told by which they are and no more by how many: behind a ledger that was put back a number could stand for
  /// others. And a relay can ask, beside the ends of its chains, whether the ledger is still the one that it left.
  static let ledgerStateStep = Step(
    number: 7, functions: ["ledger_state"],
    sql: """
      -- Of all statements, by their ids: the first eight bytes of their SHA-256, in the order of bytes.
      CREATE FUNCTION seamesh.statement_sum() RETURNS bigint
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT ('x' || encode(substring(sha256(coalesce(string_agg(s.id, ''::bytea ORDER BY s.id), ''::bytea)) FROM 1 FOR 8),
          'hex'))::bit(64)::bigint FROM seamesh.statements s
      $$;

      -- Which statements it has; and what the numbers of the last batches of all processes of relays come to, which grows with
      -- each batch.
      CREATE FUNCTION seamesh.ledger_state(OUT statements bigint, OUT batches bigint)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT seamesh.statement_sum(), coalesce((SELECT sum(s.step) FROM seamesh.document_steps s), 0)::bigint
      $$;

      -- As it was, but that "known_statements" says which and not how many.
      CREATE OR REPLACE FUNCTION seamesh.partitions_behind(
        asked bytea[], known_statements bigint, ids bytea[],
        head_partitions integer[], head_replicas bytea[], head_sequences bigint[], head_forked integer[]
      ) RETURNS bytea[]
      LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
      SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
      BEGIN
        IF known_statements <> seamesh.statement_sum() THEN
          RETURN asked;
        END IF;
        RETURN (
          SELECT array_agg(w.partition) FROM unnest(asked) AS w (partition)
          LEFT JOIN unnest(ids) WITH ORDINALITY AS i (partition, number) ON i.partition = w.partition
          WHERE i.number IS NULL OR EXISTS (
            WITH RECURSIVE chain (replica) AS (
              (SELECT c.replica FROM seamesh.changes c WHERE c.partition = w.partition ORDER BY 1 LIMIT 1)
              UNION ALL
              SELECT (SELECT c.replica FROM seamesh.changes c WHERE c.partition = w.partition AND c.replica > l.replica
                ORDER BY 1 LIMIT 1) FROM chain l WHERE l.replica IS NOT NULL
            )
            SELECT FROM chain l
            LEFT JOIN unnest(head_partitions, head_replicas, head_sequences, head_forked)
              AS h (partition, replica, sequence, forked) ON h.partition = i.number AND h.replica = l.replica
            WHERE l.replica IS NOT NULL AND (
              coalesce(h.sequence, 0) < (SELECT c.sequence FROM seamesh.changes c WHERE c.partition = w.partition
                AND c.replica = l.replica ORDER BY c.sequence DESC LIMIT 1)
              OR coalesce(h.forked, 0) = 0 AND EXISTS (SELECT FROM seamesh.forks f WHERE f.partition = w.partition
                AND f.replica = l.replica))));
      END
      $$;

      -- Since when relays have left it, one after the other.
      ALTER TABLE seamesh.edits ADD COLUMN left_since timestamptz;

      -- As it was, but that what no relay could do for a day is refused: who asked for it reads it again, or asks anew.
      CREATE OR REPLACE FUNCTION seamesh.settle_edits(
        of_fleet bytea, by_relay bytea, edits bytea[], outcomes text[], reasons text[]
      ) RETURNS void
      LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        UPDATE seamesh.edits e SET
          settled = CASE WHEN o.outcome = 'left' THEN NULL ELSE now() END,
          refusal = CASE o.outcome WHEN 'refused' THEN o.reason WHEN 'given up' THEN o.reason || ', for a day by now' END,
          waits_for = CASE WHEN o.outcome = 'left' THEN o.reason END,
          left_since = CASE WHEN o.outcome = 'left' THEN coalesce(e.left_since, now()) END,
          relay = CASE WHEN o.outcome = 'left' THEN NULL ELSE e.relay END
        FROM (
          SELECT w.id, n.reason, CASE WHEN n.outcome = 'left' AND w.left_since < now() - interval '1 day' THEN 'given up'
            ELSE n.outcome END AS outcome
          FROM unnest(edits, outcomes, reasons) AS n (edit, outcome, reason)
          JOIN seamesh.edits w ON length(n.edit) = 16 AND w.id = encode(n.edit, 'hex')::uuid
        ) AS o, seamesh.ledger l
        WHERE l.fleet = of_fleet AND e.id = o.id AND e.relay = by_relay AND e.settled IS NULL
      $$;

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
  ].map { "'\($0)'" }.joined(separator: ", ")
}
