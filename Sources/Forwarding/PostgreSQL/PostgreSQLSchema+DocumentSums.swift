extension PostgreSQLSchema {
  /// What ``DocumentSum`` computes without a server.
  static let documentSums8 = """
    -- Of a row as it was written: whoever verifies finds what was altered since. It is no signature; documents have none.
    -- JSON has no U+0001 in it, so that no two rows make the same bytes.
    CREATE FUNCTION seamesh.document_sum(
      of_partition bytea, of_collection text, of_id bytea, of_id_json jsonb, is_alive boolean, of_generation bigint,
      of_body jsonb, of_state bytea, of_refusal text
    ) RETURNS bytea
    LANGUAGE sql STABLE AS $$
      SELECT pg_catalog.sha256(of_partition || pg_catalog.int4send(pg_catalog.length(of_id)) || of_id
        || pg_catalog.int4send(pg_catalog.length(of_state)) || of_state || pg_catalog.convert_to(pg_catalog.concat(
          pg_catalog.octet_length(of_collection), ' ', of_collection, pg_catalog.chr(1), of_id_json, pg_catalog.chr(1),
          is_alive::integer, ' ', of_generation, pg_catalog.chr(1), of_body, pg_catalog.chr(1) || of_refusal), 'UTF8'))
    $$;
    ALTER TABLE seamesh.documents ADD COLUMN sum bytea;
    UPDATE seamesh.documents d SET sum = seamesh.document_sum(
      d.partition, d.collection, d.id, d.id_json, d.alive, d.generation, d.body, d.state, d.refusal);

    \(writeDocuments8)
    """

  static let writeDocuments8 = """
    -- As it was, but that each row has its sum.
    CREATE OR REPLACE FUNCTION seamesh.write_documents(
      appended integer, by_relay bytea, known_statements bigint, reached text,
      ids bytea[], names text[],
      document_partitions integer[], document_collections text[], document_ids bytea[], document_id_texts text[],
      document_alive integer[], document_generations bigint[], document_bodies text[], document_states bytea[],
      document_refusals text[],
      range_partitions integer[], after_collections text[], after_ids bytea[], through_collections text[],
      through_ids bytea[],
      head_partitions integer[], head_replicas bytea[], head_sequences bigint[], head_forked integer[],
      OUT stale_documents text, OUT stale_ranges text
    )
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
    #variable_conflict use_column
    DECLARE
      behind bytea[];
      stale bigint[];
      ranges bigint[];
      writer text := split_part(reached, '<', 3);
      kept bigint;
    BEGIN
      IF writer <> '' THEN
        SELECT s.step INTO kept FROM seamesh.document_steps s WHERE s.relay = by_relay AND s.process = writer FOR UPDATE;
        IF coalesce(kept, 0) <> split_part(reached, '<', 5)::bigint THEN
          RAISE EXCEPTION 'documents that do not go on from those that are there' USING ERRCODE = 'SM003';
        END IF;
        INSERT INTO seamesh.document_steps AS s (relay, process, step)
          VALUES (by_relay, writer, split_part(reached, '<', 4)::bigint)
          ON CONFLICT (relay, process) DO UPDATE SET step = excluded.step, noted = now();
        -- Of processes that ended long ago.
        IF kept IS NULL THEN
          DELETE FROM seamesh.document_steps s WHERE s.relay = by_relay AND s.noted < now() - interval '30 days';
        END IF;
      END IF;
      IF split_part(reached, '<', 1) <> '' AND split_part(reached, '<', 2) <> coalesce(
        (SELECT p.position FROM seamesh.document_positions p WHERE p.relay = by_relay FOR UPDATE), '')
      THEN
        RAISE EXCEPTION 'a position that does not go on from the one that is kept' USING ERRCODE = 'SM003';
      END IF;
      IF cardinality(ids) > 0 THEN
        INSERT INTO seamesh.partitions (partition, name)
          SELECT p.id, p.name FROM unnest(ids, names) AS p (id, name) WHERE p.name <> '' ORDER BY 1
          ON CONFLICT DO NOTHING;
        -- One relay after the other, before it is looked at what the ledger has.
        PERFORM FROM seamesh.partitions p WHERE p.partition = ANY (ids) ORDER BY p.partition FOR UPDATE;
        behind := seamesh.partitions_behind(
          ids, known_statements, ids, head_partitions, head_replicas, head_sequences, head_forked);
        IF behind IS NOT NULL THEN
          SELECT array_agg(g.place) INTO stale
          FROM unnest(document_partitions, document_collections, document_ids, document_states) WITH ORDINALITY
            AS g (partition, collection, id, state, place)
          JOIN seamesh.documents d ON d.partition = ids[g.partition] AND d.collection = g.collection AND d.id = g.id
          WHERE d.partition = ANY (behind) AND d.judge <> by_relay AND d.state <> g.state;
        END IF;

        -- Before the documents of the batch are in, so that these need not be told from what is gone.
        WITH gone AS (
          SELECT r.number, d.partition, d.collection, d.id, d.judge
          FROM unnest(range_partitions, after_collections, after_ids, through_collections, through_ids) WITH ORDINALITY
            AS r (partition, after_collection, after_id, through_collection, through_id, number)
          CROSS JOIN LATERAL (
            SELECT d.partition, d.collection, d.id, d.judge FROM seamesh.documents d
            WHERE r.through_id <> '' AND d.partition = ids[r.partition] AND d.alive
              AND (d.collection, d.id) > (r.after_collection COLLATE "C", r.after_id)
              AND (d.collection, d.id) <= (r.through_collection COLLATE "C", r.through_id)
            UNION ALL
            SELECT d.partition, d.collection, d.id, d.judge FROM seamesh.documents d
            WHERE r.through_id = '' AND d.partition = ids[r.partition] AND d.alive
              AND (d.collection, d.id) > (r.after_collection COLLATE "C", r.after_id)) d
          WHERE (r.partition, d.collection, d.id) NOT IN (
            SELECT g.partition, g.collection COLLATE "C", g.id
            FROM unnest(document_partitions, document_collections, document_ids) AS g (partition, collection, id))
        ), taken AS (
          UPDATE seamesh.documents d SET alive = false, generation = 0, body = NULL, state = '', refusal = NULL,
            judge = by_relay, written = now(),
            sum = seamesh.document_sum(d.partition, d.collection, d.id, d.id_json, false, 0, NULL, '', NULL),
            unsure = o.partition = ANY (coalesce(behind, '{}'))
          FROM gone o WHERE d.partition = o.partition AND d.collection = o.collection AND d.id = o.id
            AND (behind IS NULL OR o.partition <> ALL (behind) OR o.judge = by_relay)
        )
        SELECT array_agg(DISTINCT o.number) INTO ranges FROM gone o
        WHERE o.partition = ANY (behind) AND o.judge <> by_relay;

        INSERT INTO seamesh.documents AS d (partition, collection, id, id_json, alive, generation, body, state, refusal, judge,
            unsure, sum)
          SELECT g.*, seamesh.document_sum(g.partition, g.collection, g.id, g.id_json, g.alive, g.generation, g.body, g.state,
            g.refusal)
          FROM (SELECT ids[g.partition] AS partition, g.collection, g.id, nullif(g.id_text, '')::jsonb AS id_json,
            g.alive = 1 AS alive, g.generation, nullif(g.body, '')::jsonb AS body, g.state,
            nullif(g.refusal, '') AS refusal, by_relay, ids[g.partition] = ANY (coalesce(behind, '{}'))
          FROM unnest(document_partitions, document_collections, document_ids, document_id_texts, document_alive,
              document_generations, document_bodies, document_states, document_refusals) WITH ORDINALITY
            AS g (partition, collection, id, id_text, alive, generation, body, state, refusal, place)
          WHERE stale IS NULL OR g.place <> ALL (stale)
          ORDER BY 1, 2, 3) g
          ON CONFLICT (partition, collection, id) DO UPDATE SET id_json = excluded.id_json, alive = excluded.alive,
            generation = excluded.generation, body = excluded.body, state = excluded.state, refusal = excluded.refusal,
            judge = excluded.judge, written = now(), unsure = excluded.unsure, sum = excluded.sum
          WHERE (d.state, d.alive, d.refusal, d.body) IS DISTINCT FROM
            (excluded.state, excluded.alive, excluded.refusal, excluded.body) OR d.unsure AND NOT excluded.unsure;
      END IF;
      IF split_part(reached, '<', 1) <> '' AND stale IS NULL AND ranges IS NULL THEN
        INSERT INTO seamesh.document_positions AS p (relay, position) VALUES (by_relay, split_part(reached, '<', 1))
          ON CONFLICT (relay) DO UPDATE SET position = excluded.position, noted = now()
          WHERE p.position <> excluded.position;
      END IF;
      stale_documents := array_to_string(stale, ',');
      stale_ranges := array_to_string(ranges, ',');
    END
    $$;
    """
}
