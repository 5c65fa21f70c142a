extension PostgreSQLSchema {
  static let documentsStep = Step(
    number: 2, functions: ["write_documents", "document_position", "dead_letters", "make_views"],
    sql: """
      -- Documents as a relay merged them. A deleted one stays as a row without a body.
      CREATE TABLE seamesh.documents (
        partition   bytea NOT NULL CHECK (length(partition) = 32),
        collection  text COLLATE "C" NOT NULL,
        id          bytea NOT NULL,    -- canonical bytes
        id_json     jsonb,             -- null where JSONB cannot hold it
        alive       boolean NOT NULL,
        generation  bigint NOT NULL,   -- odd: alive
        body        jsonb,             -- null where it is deleted, or a dead letter
        state       bytea NOT NULL,    -- merge state with the dots that it stands on, every value exact
        refusal     text,              -- of a dead letter: why it has no body
        judge       bytea NOT NULL,    -- the relay's device
        written     timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (partition, collection, id)
      );
      CREATE INDEX documents_by_collection ON seamesh.documents (collection) WHERE body IS NOT NULL;
      CREATE INDEX dead_letters ON seamesh.documents (partition) WHERE refusal IS NOT NULL;
      -- Up to where of its own log a relay has brought documents.
      CREATE TABLE seamesh.document_positions (
        relay    bytea PRIMARY KEY CHECK (length(relay) = 32),
        position text NOT NULL,
        noted    timestamptz NOT NULL DEFAULT now()
      );

      -- As it was, but for the functions that it looks at.
      CREATE OR REPLACE FUNCTION seamesh.describe(OUT format integer, OUT fleet bytea, OUT ledger bytea, OUT lacking text)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT (SELECT max(number) FROM seamesh.migrations), l.fleet, uuid_send(l.id),
          coalesce((SELECT string_agg('seamesh.' || p.proname, ', ' ORDER BY p.proname) FROM pg_proc p
            WHERE p.pronamespace = 'seamesh'::regnamespace
              AND p.proname IN ('describe', 'statement_ids', 'positions', 'append', 'write_documents', 'document_position',
                'dead_letters', 'make_views')
              AND NOT has_function_privilege(session_user, p.oid, 'EXECUTE')), '')
        FROM seamesh.ledger l
      $$;

      CREATE FUNCTION seamesh.document_position(of_relay bytea) RETURNS text
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT coalesce((SELECT p.position FROM seamesh.document_positions p WHERE p.relay = of_relay), '')
      $$;

      CREATE FUNCTION seamesh.dead_letters(most integer)
      RETURNS TABLE (partition bytea, name text, collection text, id bytea, refusal text)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT d.partition, p.name, d.collection, d.id, d.refusal
        FROM seamesh.documents d LEFT JOIN seamesh.partitions p ON p.partition = d.partition
        WHERE d.refusal IS NOT NULL ORDER BY 1, 3, 4 LIMIT most
      $$;

      \(writeDocuments2)
      \(views2)
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      """)

  /// Columns are taken from what the documents have, never from whoever calls.
  private static let views2 = """
    CREATE SCHEMA IF NOT EXISTS seamesh_views;

    -- A name that needs no escaping, and is another one for each name.
    CREATE FUNCTION seamesh.sane_name(name text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
      SELECT CASE WHEN name ~ '^[A-Za-z][A-Za-z0-9_]{0,47}$' THEN name
        ELSE left(regexp_replace(regexp_replace(name, '[^A-Za-z0-9_]', '_', 'g'), '^([^A-Za-z])', 'x\\1'), 38)
          || '_' || left(md5(name), 8) END
    $$;

    -- A view for each collection, with a column for each field that its documents have at the top: the 200 most frequent.
    -- A field with values of one kind has that type, any other is text. A value of another kind that comes later is null.
    CREATE FUNCTION seamesh.make_views() RETURNS TABLE (view_name text, of_collection text, columns integer)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    #variable_conflict use_column
    DECLARE
      found text;
      query text;
      fields text;
      number integer;
    BEGIN
      PERFORM pg_advisory_xact_lock(hashtext('seamesh.make_views'));
      FOR found IN SELECT DISTINCT d.collection FROM seamesh.documents d WHERE d.body IS NOT NULL ORDER BY 1 LIMIT 256 LOOP
        SELECT count(*), string_agg(', ' || CASE f.kind
            WHEN 'number' THEN format('CASE jsonb_typeof(d.body->%1$L) WHEN ''number'' THEN (d.body->%1$L)::numeric END', f.key)
            WHEN 'boolean' THEN format('CASE jsonb_typeof(d.body->%1$L) WHEN ''boolean'' THEN (d.body->%1$L)::boolean END', f.key)
            WHEN 'date' THEN format('CASE WHEN d.body->%1$L->>''$date'' ~ ''^(?!0000)[0-9]{4}-'' '
              'THEN (d.body->%1$L->>''$date'')::timestamptz END', f.key)
            ELSE format('CASE jsonb_typeof(d.body->%1$L) WHEN ''object'' '
              'THEN coalesce(d.body->%1$L->>''$oid'', d.body->>%1$L) ELSE d.body->>%1$L END', f.key)
          END || ' AS ' || quote_ident(seamesh.sane_name(f.key)), '' ORDER BY f.key COLLATE "C")
        INTO number, fields
        FROM (
          SELECT e.key, CASE count(DISTINCT e.kind) WHEN 1 THEN min(e.kind) ELSE 'mixed' END AS kind
          FROM (SELECT o.key, CASE WHEN jsonb_typeof(o.value) = 'object' AND o.value ? '$date' THEN 'date'
              ELSE jsonb_typeof(o.value) END AS kind
            FROM seamesh.documents d, jsonb_each(d.body) o
            WHERE d.collection = found AND d.body IS NOT NULL AND jsonb_typeof(o.value) <> 'null') e
          GROUP BY e.key ORDER BY count(*) DESC, e.key LIMIT 200) f;
        view_name := seamesh.sane_name(found);
        of_collection := found;
        columns := number;
        query := format('VIEW seamesh_views.%I AS SELECT p.name AS _partition, '
          'CASE jsonb_typeof(d.id_json) WHEN ''object'' THEN coalesce(d.id_json->>''$oid'', d.id_json::text) '
          'ELSE d.id_json #>> ''{}'' END AS _id, d.written AS _written%s '
          'FROM seamesh.documents d JOIN seamesh.partitions p ON p.partition = d.partition '
          'WHERE d.collection = %L AND d.body IS NOT NULL', view_name, coalesce(fields, ''), found);
        BEGIN
          EXECUTE 'CREATE OR REPLACE ' || query;
        EXCEPTION WHEN invalid_table_definition THEN
          EXECUTE format('DROP VIEW seamesh_views.%I', view_name);
          EXECUTE 'CREATE ' || query;
        END;
        RETURN NEXT;
      END LOOP;
    END
    $$;
    """

  private static let writeDocuments2 = """
    -- Called with what the batch of the ledger appended, so after it. A row that another relay wrote is left alone where the
    -- ledger has anything that this relay does not know: an older word never takes a newer one's place.
    CREATE FUNCTION seamesh.write_documents(
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
    SET plan_cache_mode = force_generic_plan SET jit = off AS $$
    #variable_conflict use_column
    DECLARE
      behind integer[];
      stale bigint[];
      ranges bigint[];
    BEGIN
      IF cardinality(ids) > 0 THEN
        INSERT INTO seamesh.partitions (partition, name)
          SELECT p.id, p.name FROM unnest(ids, names) AS p (id, name) WHERE p.name <> '' ORDER BY 1
          ON CONFLICT DO NOTHING;
        -- One relay after the other, before it is looked at what the ledger has.
        PERFORM FROM seamesh.partitions p WHERE p.partition = ANY (ids) ORDER BY p.partition FOR UPDATE;
        SELECT array_agg(w.number) INTO behind FROM unnest(ids) WITH ORDINALITY AS w (partition, number)
        WHERE known_statements < (SELECT count(*) FROM seamesh.statements) OR EXISTS (
          WITH RECURSIVE chain (replica) AS (
            (SELECT c.replica FROM seamesh.changes c WHERE c.partition = w.partition ORDER BY 1 LIMIT 1)
            UNION ALL
            SELECT (SELECT c.replica FROM seamesh.changes c WHERE c.partition = w.partition AND c.replica > l.replica
              ORDER BY 1 LIMIT 1) FROM chain l WHERE l.replica IS NOT NULL
          )
          SELECT FROM chain l
          LEFT JOIN unnest(head_partitions, head_replicas, head_sequences, head_forked)
            AS h (partition, replica, sequence, forked) ON h.partition = w.number AND h.replica = l.replica
          WHERE l.replica IS NOT NULL AND (
            coalesce(h.sequence, 0) < (SELECT c.sequence FROM seamesh.changes c WHERE c.partition = w.partition
              AND c.replica = l.replica ORDER BY c.sequence DESC LIMIT 1)
            OR coalesce(h.forked, 0) = 0 AND EXISTS (SELECT FROM seamesh.forks f WHERE f.partition = w.partition
              AND f.replica = l.replica)));

        SELECT array_agg(g.place) INTO stale
        FROM unnest(document_partitions, document_collections, document_ids, document_states) WITH ORDINALITY
          AS g (partition, collection, id, state, place)
        JOIN seamesh.documents d ON d.partition = ids[g.partition] AND d.collection = g.collection AND d.id = g.id
        WHERE g.partition = ANY (behind) AND d.judge <> by_relay AND d.state <> g.state;

        INSERT INTO seamesh.documents AS d (partition, collection, id, id_json, alive, generation, body, state, refusal, judge)
          SELECT ids[g.partition], g.collection, g.id, nullif(g.id_text, '')::jsonb, g.alive = 1, g.generation,
            nullif(g.body, '')::jsonb, g.state, nullif(g.refusal, ''), by_relay
          FROM unnest(document_partitions, document_collections, document_ids, document_id_texts, document_alive,
              document_generations, document_bodies, document_states, document_refusals) WITH ORDINALITY
            AS g (partition, collection, id, id_text, alive, generation, body, state, refusal, place)
          WHERE stale IS NULL OR g.place <> ALL (stale)
          ORDER BY 1, 2, 3
          ON CONFLICT (partition, collection, id) DO UPDATE SET id_json = excluded.id_json, alive = excluded.alive,
            generation = excluded.generation, body = excluded.body, state = excluded.state, refusal = excluded.refusal,
            judge = excluded.judge, written = now()
          WHERE (d.state, d.alive, d.refusal, d.body) IS DISTINCT FROM
            (excluded.state, excluded.alive, excluded.refusal, excluded.body);

        WITH gone AS (
          SELECT r.number, r.partition, d.partition AS of_partition, d.collection, d.id, d.judge
          FROM unnest(range_partitions, after_collections, after_ids, through_collections, through_ids) WITH ORDINALITY
            AS r (partition, after_collection, after_id, through_collection, through_id, number)
          JOIN seamesh.documents d ON d.partition = ids[r.partition] AND d.alive
            AND (r.after_id = '' OR (d.collection, d.id) > (r.after_collection COLLATE "C", r.after_id))
            AND (r.through_id = '' OR (d.collection, d.id) <= (r.through_collection COLLATE "C", r.through_id))
          WHERE NOT EXISTS (SELECT FROM unnest(document_partitions, document_collections, document_ids)
            AS g (partition, collection, id) WHERE g.partition = r.partition AND g.collection = d.collection AND g.id = d.id)
        ), taken AS (
          UPDATE seamesh.documents d SET alive = false, generation = 0, body = NULL, state = '', refusal = NULL,
            judge = by_relay, written = now()
          FROM gone o WHERE d.partition = o.of_partition AND d.collection = o.collection AND d.id = o.id
            AND (behind IS NULL OR o.partition <> ALL (behind) OR o.judge = by_relay)
        )
        SELECT array_agg(DISTINCT o.number) INTO ranges FROM gone o
        WHERE o.partition = ANY (behind) AND o.judge <> by_relay;
      END IF;
      IF reached <> '' AND stale IS NULL AND ranges IS NULL THEN
        INSERT INTO seamesh.document_positions AS p (relay, position) VALUES (by_relay, reached)
          ON CONFLICT (relay) DO UPDATE SET position = excluded.position, noted = now()
          WHERE p.position <> excluded.position;
      END IF;
      stale_documents := array_to_string(stale, ',');
      stale_ranges := array_to_string(ranges, ',');
    END
    $$;
    """
}
