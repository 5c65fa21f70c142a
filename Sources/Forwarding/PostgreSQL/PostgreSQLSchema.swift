/// The tables of the ledger, in numbered steps. A step that was ever released is not changed any more.
package enum PostgreSQLSchema {
  struct Step: Sendable {
    let number: Int
    /// What a role needs from then on to forward, and nothing else: no right on any table.
    let functions: [String]
    let sql: String
  }

  static let steps: [Step] = [
    ledgerStep, documentsStep, marksStep, officeStep, documentPlansStep, documentNewsStep,
    ledgerStateStep, step8, step9, step10, step11, step12, step13,
  ]

  /// What this program writes.
  package static var format: Int { steps.last?.number ?? 0 }

  static func functions(of format: Int) -> [String] {
    steps.filter { $0.number <= format }.flatMap(\.functions)
  }

  /// A batch in one statement: whether this process speaks for its relay, the ledger's rows, then the marks, then the documents.
  /// Each waits for the one before it. The parameters are in the order in which ``PostgreSQLBackend`` gives them; behind the third
  /// < of the position stands the process.
  static let appendCall =
    "SELECT m.stale_marks, w.stale_documents, w.stale_ranges FROM (SELECT seamesh.append(CASE WHEN h.held THEN $1::bytea END, "
    + numbers(2...25) + ", '{}', '{}', '{}', '{}') AS appended "
    + "FROM (SELECT seamesh.hold_relay($3, split_part($31::text, '<', 3)) AS held OFFSET 0) h OFFSET 0) a, LATERAL seamesh.write_marks(a.appended, $3, $30, $4, "
    + numbers(26...29) + ", $32, " + numbers(48...51) + ") m, LATERAL seamesh.write_documents(m.appended_before, $3, "
    + numbers(30...51) + ") w, LATERAL seamesh.note_edits(a.appended, " + numbers(52...56)
    + ") n, LATERAL seamesh.note_conflicts(w.stale_documents, " + numbers(57...61) + ") c"

  private static func numbers(_ parameters: ClosedRange<Int>) -> String {
    parameters.map { "$\($0)" }.joined(separator: ", ")
  }

  private static let ledgerStep = Step(
    number: 1, functions: ["describe", "statement_ids", "positions", "append"],
    sql: """
      -- Whose ledger this is. One row.
      CREATE TABLE seamesh.ledger (
        one     boolean PRIMARY KEY DEFAULT true CHECK (one),
        fleet   bytea NOT NULL CHECK (length(fleet) = 32),
        id      uuid NOT NULL DEFAULT gen_random_uuid(),
        created timestamptz NOT NULL DEFAULT now()
      );
      CREATE TABLE seamesh.partitions (
        partition bytea PRIMARY KEY CHECK (length(partition) = 32),
        name      text NOT NULL
      );
      -- As they were signed.
      CREATE TABLE seamesh.statements (
        id      bytea PRIMARY KEY CHECK (length(id) = 32),
        encoded bytea NOT NULL,
        arrived timestamptz NOT NULL DEFAULT now()
      );
      -- As they were signed and stored: with the context beside it, a run is all that a node needs.
      CREATE TABLE seamesh.runs (
        partition   bytea NOT NULL CHECK (length(partition) = 32),
        replica     bytea NOT NULL CHECK (length(replica) = 16),
        last        bigint NOT NULL,
        hash        bytea NOT NULL CHECK (length(hash) = 32),  -- chain hash at last
        first       bigint NOT NULL CHECK (first BETWEEN 1 AND last),
        hash_before bytea NOT NULL CHECK (length(hash_before) = 32),
        context     bytea NOT NULL,  -- whole, or as it differs from that of the run before it in its chain
        body        bytea NOT NULL,
        arrived     timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (partition, replica, last, hash)
      );
      ALTER TABLE seamesh.runs ALTER COLUMN body SET STORAGE EXTERNAL;
      -- One row per change; both branches of a fork stay.
      CREATE TABLE seamesh.changes (
        partition     bytea NOT NULL,
        replica       bytea NOT NULL,
        sequence      bigint NOT NULL,
        hash          bytea NOT NULL CHECK (length(hash) = 32),  -- chain hash here
        hash_before   bytea NOT NULL,
        run_last      bigint NOT NULL,
        stamp_ms      bigint NOT NULL,   -- hybrid timestamp
        stamp_counter integer NOT NULL,
        wall_ms       bigint NOT NULL,   -- what the author's clock said; it may say anything
        payload_bytes integer NOT NULL,
        PRIMARY KEY (partition, replica, sequence, hash)
      );
      -- Payloads too large for their run.
      CREATE TABLE seamesh.payloads (
        partition bytea NOT NULL,
        hash      bytea NOT NULL CHECK (length(hash) = 32),
        bytes     bytea NOT NULL,
        PRIMARY KEY (partition, hash)
      );
      ALTER TABLE seamesh.payloads ALTER COLUMN bytes SET STORAGE EXTERNAL;
      -- Chains of which more than one branch is here, with the number before the first that differs.
      CREATE TABLE seamesh.forks (
        partition bytea NOT NULL,
        replica   bytea NOT NULL,
        after     bigint NOT NULL,
        PRIMARY KEY (partition, replica)
      );
      -- How far each chain counts, as a relay judged: the one table whose rows change.
      CREATE TABLE seamesh.accepted (
        partition bytea NOT NULL,
        replica   bytea NOT NULL,
        sequence  bigint NOT NULL,
        tip       bytea NOT NULL CHECK (length(tip) = 16),  -- first half of the chain hash there
        judge     bytea NOT NULL,                           -- the relay's device
        judged    timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (partition, replica)
      );

      -- The ledger with its mark. Where a chain forks, what counts is found from its end backwards.
      CREATE VIEW seamesh.marked_changes AS
      WITH RECURSIVE branch AS (
        SELECT c.partition, c.replica, c.sequence, c.hash, c.hash_before, f.after
        FROM seamesh.forks f
        JOIN seamesh.accepted a ON a.partition = f.partition AND a.replica = f.replica
        JOIN seamesh.changes c ON c.partition = a.partition AND c.replica = a.replica AND c.sequence = a.sequence
          AND substring(c.hash FROM 1 FOR 16) = a.tip
        WHERE a.sequence > f.after
        UNION ALL
        SELECT c.partition, c.replica, c.sequence, c.hash, c.hash_before, b.after
        FROM branch b
        JOIN seamesh.changes c ON c.partition = b.partition AND c.replica = b.replica
          AND c.sequence = b.sequence - 1 AND c.hash = b.hash_before
        WHERE b.sequence - 1 > b.after
      )
      SELECT c.*, coalesce(
          c.sequence <= a.sequence AND (
            f.after IS NULL OR c.sequence <= f.after OR EXISTS (
              SELECT FROM branch b WHERE b.partition = c.partition AND b.replica = c.replica
                AND b.sequence = c.sequence AND b.hash = c.hash)), false) AS accepted
      FROM seamesh.changes c
      LEFT JOIN seamesh.accepted a ON a.partition = c.partition AND a.replica = c.replica
      LEFT JOIN seamesh.forks f ON f.partition = c.partition AND f.replica = c.replica;

      \(functions1)
      """)

  private static let functions1 = """
    -- The first call of every relay: never changed in name, columns and meaning, so that any version can tell what it met.
    CREATE FUNCTION seamesh.describe(OUT format integer, OUT fleet bytea, OUT ledger bytea, OUT lacking text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
      SELECT (SELECT max(number) FROM seamesh.migrations), l.fleet, uuid_send(l.id),
        coalesce((SELECT string_agg('seamesh.' || p.proname, ', ' ORDER BY p.proname) FROM pg_proc p
          WHERE p.pronamespace = 'seamesh'::regnamespace
            AND p.proname IN ('describe', 'statement_ids', 'positions', 'append')
            AND NOT has_function_privilege(session_user, p.oid, 'EXECUTE')), '')
      FROM seamesh.ledger l
    $$;

    CREATE FUNCTION seamesh.statement_ids(of_fleet bytea) RETURNS SETOF bytea
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
      SELECT s.id FROM seamesh.statements s, seamesh.ledger l WHERE l.fleet = of_fleet
    $$;

    -- Of each chain: whether the change that is asked for is there, how far it goes, and how far it counts.
    CREATE FUNCTION seamesh.positions(partitions bytea[], replicas bytea[], sequences bigint[], hashes_there bytea[])
    RETURNS TABLE (number bigint, has_change boolean, highest bigint, hashes bytea, mark bigint, tip bytea)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
      SELECT q.number,
        EXISTS (SELECT FROM seamesh.changes c WHERE c.partition = q.partition AND c.replica = q.replica
          AND c.sequence = q.sequence AND c.hash = q.hash),
        coalesce(h.highest, 0),
        (SELECT string_agg(c.hash, ''::bytea) FROM seamesh.changes c WHERE c.partition = q.partition
          AND c.replica = q.replica AND c.sequence = h.highest),
        a.sequence, a.tip
      FROM unnest(partitions, replicas, sequences, hashes_there) WITH ORDINALITY
        AS q (partition, replica, sequence, hash, number)
      LEFT JOIN LATERAL (SELECT c.sequence AS highest FROM seamesh.changes c WHERE c.partition = q.partition
        AND c.replica = q.replica ORDER BY c.sequence DESC LIMIT 1) h ON true
      LEFT JOIN seamesh.accepted a ON a.partition = q.partition AND a.replica = q.replica
    $$;

    -- All of a batch or nothing. What is there already stays as it is. Rows go in by their keys, table after table, so that
    -- two relays with the same rows wait for one another and never both.
    CREATE FUNCTION seamesh.append(
      of_fleet bytea, of_ledger bytea, by_relay bytea,
      partition_ids bytea[], partition_names text[],
      statement_ids bytea[], statement_bodies bytea[],
      payload_partitions integer[], payload_hashes bytea[], payload_bodies bytea[],
      run_partitions integer[], run_replicas bytea[], run_firsts bigint[], run_lasts bigint[], run_befores bytea[],
      run_hashes bytea[], run_contexts bytea[], run_bodies bytea[],
      change_runs integer[], change_sequences bigint[], change_hashes bytea[], change_stamps bigint[],
      change_counters integer[], change_walls bigint[], change_sizes integer[],
      mark_partitions integer[], mark_replicas bytea[], mark_sequences bigint[], mark_tips bytea[]
    ) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $$
    #variable_conflict use_column
    -- With a general plan an array is taken apart once for the whole call, so that a subscript costs the same however long it
    -- is. Plans are kept while the tables grow, so none may rest on their being empty.
    DECLARE
      present record;
      appended integer;
      doubtful record;
    BEGIN
      SELECT fleet, uuid_send(id) AS id INTO STRICT present FROM seamesh.ledger WHERE one;
      IF present.fleet <> of_fleet THEN
        RAISE EXCEPTION 'another fleet' USING ERRCODE = 'SM001';
      ELSIF present.id <> of_ledger THEN
        RAISE EXCEPTION 'another ledger' USING ERRCODE = 'SM002';
      END IF;

      INSERT INTO seamesh.partitions (partition, name)
        SELECT p.id, p.name FROM unnest(partition_ids, partition_names) AS p (id, name) WHERE p.name <> '' ORDER BY 1
        ON CONFLICT DO NOTHING;
      INSERT INTO seamesh.statements (id, encoded)
        SELECT s.id, s.encoded FROM unnest(statement_ids, statement_bodies) AS s (id, encoded) ORDER BY 1
        ON CONFLICT DO NOTHING;
      INSERT INTO seamesh.payloads (partition, hash, bytes)
        SELECT partition_ids[y.partition], y.hash, y.bytes
        FROM unnest(payload_partitions, payload_hashes, payload_bodies) AS y (partition, hash, bytes) ORDER BY 1, 2
        ON CONFLICT DO NOTHING;
      INSERT INTO seamesh.runs (partition, replica, last, hash, first, hash_before, context, body)
        SELECT partition_ids[r.partition], r.replica, r.last, r.hash, r.first, r.before, r.context, r.body
        FROM unnest(run_partitions, run_replicas, run_firsts, run_lasts, run_befores, run_hashes, run_contexts, run_bodies)
          AS r (partition, replica, first, last, before, hash, context, body) ORDER BY 1, 2, 3, 4
        ON CONFLICT DO NOTHING;

      -- Where what is new does not simply lengthen a chain, its branches are looked for.
      WITH fresh AS (
        INSERT INTO seamesh.changes (partition, replica, sequence, hash, hash_before, run_last, stamp_ms, stamp_counter,
            wall_ms, payload_bytes)
          SELECT partition_ids[run_partitions[c.run]], run_replicas[c.run], c.sequence, c.hash,
            CASE WHEN c.sequence = run_firsts[c.run] THEN run_befores[c.run] ELSE change_hashes[c.place - 1] END,
            run_lasts[c.run], c.stamp, c.counter, c.wall, c.size
          FROM unnest(change_runs, change_sequences, change_hashes, change_stamps, change_counters, change_walls, change_sizes)
            WITH ORDINALITY AS c (run, sequence, hash, stamp, counter, wall, size, place) ORDER BY 1, 2, 3, 4
          ON CONFLICT DO NOTHING RETURNING partition, replica, sequence
      ), touched AS (
        SELECT partition, replica, min(sequence) AS lowest, max(sequence) AS highest, count(*) AS number
        FROM fresh GROUP BY 1, 2
      )
      SELECT coalesce(sum(t.number), 0) AS number,
        array_agg(t.partition) FILTER (WHERE t.is_doubtful) AS partitions,
        array_agg(t.replica) FILTER (WHERE t.is_doubtful) AS replicas,
        array_agg(t.lowest) FILTER (WHERE t.is_doubtful) AS lowest
      INTO doubtful
      FROM (SELECT t.*, t.number <> t.highest - t.lowest + 1
          OR (SELECT max(c.sequence) FROM seamesh.changes c WHERE c.partition = t.partition AND c.replica = t.replica)
            >= t.lowest AS is_doubtful FROM touched t) t;
      appended := doubtful.number;
      IF doubtful.partitions IS NOT NULL THEN
        INSERT INTO seamesh.forks AS f (partition, replica, after)
          SELECT d.partition, d.replica, min(c.sequence) - 1
          FROM unnest(doubtful.partitions, doubtful.replicas, doubtful.lowest) AS d (partition, replica, lowest)
          CROSS JOIN LATERAL (SELECT c.sequence FROM seamesh.changes c WHERE c.partition = d.partition
            AND c.replica = d.replica AND c.sequence >= d.lowest GROUP BY c.sequence HAVING count(*) > 1) c
          GROUP BY 1, 2 ORDER BY 1, 2
          ON CONFLICT (partition, replica) DO UPDATE SET after = excluded.after WHERE excluded.after < f.after;
      END IF;

      IF EXISTS (
        SELECT FROM unnest(run_partitions, run_replicas, run_firsts, run_befores) AS r (partition, replica, first, before)
        WHERE r.first > 1 AND NOT EXISTS (SELECT FROM seamesh.changes c WHERE c.partition = partition_ids[r.partition]
          AND c.replica = r.replica AND c.sequence = r.first - 1 AND c.hash = r.before)
      ) THEN
        RAISE EXCEPTION 'a run without the one before it' USING ERRCODE = 'SM003';
      END IF;

      INSERT INTO seamesh.accepted AS a (partition, replica, sequence, tip, judge)
        SELECT partition_ids[m.partition], m.replica, m.sequence, m.tip, by_relay
        FROM unnest(mark_partitions, mark_replicas, mark_sequences, mark_tips) AS m (partition, replica, sequence, tip)
        ORDER BY 1, 2
        ON CONFLICT (partition, replica) DO UPDATE
          SET sequence = excluded.sequence, tip = excluded.tip, judge = excluded.judge, judged = now()
          WHERE (a.sequence, a.tip) <> (excluded.sequence, excluded.tip);
      IF EXISTS (
        SELECT FROM unnest(mark_partitions, mark_replicas, mark_sequences, mark_tips) AS m (partition, replica, sequence, tip)
        WHERE m.sequence > 0 AND NOT EXISTS (SELECT FROM seamesh.changes c WHERE c.partition = partition_ids[m.partition]
          AND c.replica = m.replica AND c.sequence = m.sequence AND substring(c.hash FROM 1 FOR 16) = m.tip)
      ) THEN
        RAISE EXCEPTION 'a mark without its change' USING ERRCODE = 'SM003';
      END IF;
      RETURN appended;
    END
    $$;
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
    """
}
