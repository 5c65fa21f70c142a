extension PostgreSQLSchema {
  /// From this step on `seamesh.append` is given no marks.
  static let marksStep = Step(
    number: 3, functions: ["write_marks"],
    sql: """
      -- As it was, but for the functions that it looks at.
      CREATE OR REPLACE FUNCTION seamesh.describe(OUT format integer, OUT fleet bytea, OUT ledger bytea, OUT lacking text)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT (SELECT max(number) FROM seamesh.migrations), l.fleet, uuid_send(l.id),
          coalesce((SELECT string_agg('seamesh.' || p.proname, ', ' ORDER BY p.proname) FROM pg_proc p
            WHERE p.pronamespace = 'seamesh'::regnamespace
              AND p.proname IN ('describe', 'statement_ids', 'positions', 'append', 'write_documents', 'document_position',
                'dead_letters', 'make_views', 'write_marks')
              AND NOT has_function_privilege(session_user, p.oid, 'EXECUTE')), '')
        FROM seamesh.ledger l
      $$;

      \(partitionsBehind3)
      \(writeMarks3)
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      """)

  private static let partitionsBehind3 = """
    -- Those of `asked` in which the ledger has anything that a relay does not know: a statement, a chain's end or a fork. What
    -- it knows stands by the place of the partition in `ids`; of one that is not there it knows nothing.
    CREATE FUNCTION seamesh.partitions_behind(
      asked bytea[], known_statements bigint, ids bytea[],
      head_partitions integer[], head_replicas bytea[], head_sequences bigint[], head_forked integer[]
    ) RETURNS bytea[]
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
    BEGIN
      RETURN (
        SELECT array_agg(w.partition) FROM unnest(asked) AS w (partition)
        LEFT JOIN unnest(ids) WITH ORDINALITY AS i (partition, number) ON i.partition = w.partition
        WHERE i.number IS NULL OR known_statements < (SELECT count(*) FROM seamesh.statements) OR EXISTS (
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
    """

  private static let writeMarks3 = """
    -- Called with what the batch of the ledger appended, so after it. As with documents, a mark that another relay set stays
    -- where the ledger has anything that this relay does not know.
    CREATE FUNCTION seamesh.write_marks(
      appended integer, by_relay bytea, known_statements bigint,
      mark_ids bytea[], mark_partitions integer[], mark_replicas bytea[], mark_sequences bigint[], mark_tips bytea[],
      ids bytea[], head_partitions integer[], head_replicas bytea[], head_sequences bigint[], head_forked integer[],
      OUT appended_before integer, OUT stale_marks text
    )
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
    #variable_conflict use_column
    DECLARE
      contested bytea[];
      behind bytea[];
      stale bigint[];
    BEGIN
      appended_before := appended;
      IF cardinality(mark_partitions) = 0 THEN
        RETURN;
      END IF;
      IF EXISTS (
        SELECT FROM unnest(mark_partitions, mark_replicas, mark_sequences, mark_tips) AS m (partition, replica, sequence, tip)
        WHERE m.sequence > 0 AND NOT EXISTS (SELECT FROM seamesh.changes c WHERE c.partition = mark_ids[m.partition]
          AND c.replica = m.replica AND c.sequence = m.sequence AND substring(c.hash FROM 1 FOR 16) = m.tip)
      ) THEN
        RAISE EXCEPTION 'a mark without its change' USING ERRCODE = 'SM003';
      END IF;

      -- One relay after the other, in the order that documents are locked in, before it is looked at what the ledger has.
      PERFORM FROM seamesh.partitions p WHERE p.partition = ANY (mark_ids || ids) ORDER BY p.partition FOR UPDATE;
      SELECT array_agg(DISTINCT a.partition) INTO contested
      FROM unnest(mark_partitions, mark_replicas, mark_sequences, mark_tips) AS m (partition, replica, sequence, tip)
      JOIN seamesh.accepted a ON a.partition = mark_ids[m.partition] AND a.replica = m.replica
      WHERE a.judge <> by_relay AND (a.sequence, a.tip) <> (m.sequence, m.tip);
      IF contested IS NOT NULL THEN
        behind := seamesh.partitions_behind(
          contested, known_statements, ids, head_partitions, head_replicas, head_sequences, head_forked);
        SELECT array_agg(m.place) INTO stale
        FROM unnest(mark_partitions, mark_replicas, mark_sequences, mark_tips) WITH ORDINALITY
          AS m (partition, replica, sequence, tip, place)
        JOIN seamesh.accepted a ON a.partition = mark_ids[m.partition] AND a.replica = m.replica
        WHERE a.partition = ANY (behind) AND a.judge <> by_relay AND (a.sequence, a.tip) <> (m.sequence, m.tip);
      END IF;

      INSERT INTO seamesh.accepted AS a (partition, replica, sequence, tip, judge)
        SELECT mark_ids[m.partition], m.replica, m.sequence, m.tip, by_relay
        FROM unnest(mark_partitions, mark_replicas, mark_sequences, mark_tips) WITH ORDINALITY
          AS m (partition, replica, sequence, tip, place)
        WHERE stale IS NULL OR m.place <> ALL (stale)
        ORDER BY 1, 2
        ON CONFLICT (partition, replica) DO UPDATE
          SET sequence = excluded.sequence, tip = excluded.tip, judge = excluded.judge, judged = now()
          WHERE (a.sequence, a.tip) <> (excluded.sequence, excluded.tip);
      stale_marks := array_to_string(stale, ',');
    END
    $$;
    """
}
