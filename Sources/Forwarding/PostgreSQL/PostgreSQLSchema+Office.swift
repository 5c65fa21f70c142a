extension PostgreSQLSchema {
  /// What a role needs to bring edits home, beside what forwarding needs. It reads what the office wrote.
  static func homeBoundFunctions(of format: Int) -> [String] {
    ["claim_edits", "settle_edits"] + (format < step10.number ? [] : ["confirm_edits"])
      + (format < step13.number ? [] : ["claim_carried_edits"])
  }

  static let officeStep = Step(
    number: 4, functions: ["note_edits", "note_conflicts"],
    sql: """
      -- What the office wants changed, in the order in which it was said. Nobody takes a row away.
      CREATE TABLE seamesh.edits (
        id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        number      bigint GENERATED ALWAYS AS IDENTITY,
        partition   text NOT NULL,
        collection  text NOT NULL,
        document    jsonb NOT NULL,   -- its id
        read        bytea,            -- merge state of the version that was read; null: there was no document
        body        jsonb,            -- null: it is to be deleted
        by_user     text NOT NULL,
        by_role     text NOT NULL,
        why         text NOT NULL,
        made        timestamptz NOT NULL DEFAULT clock_timestamp(),
        relay       bytea,            -- who brings it home
        claimed     timestamptz,
        settled     timestamptz,      -- nothing is left to do: a change has it, it was refused, or nothing was to be changed
        refusal     text,
        waits_for   text              -- why the last relay left it
      );
      CREATE INDEX edits_waiting ON seamesh.edits (number) WHERE settled IS NULL;
      -- Changes of the ledger that name an edit as their cause.
      CREATE TABLE seamesh.edit_changes (
        partition bytea NOT NULL,
        replica   bytea NOT NULL,
        sequence  bigint NOT NULL,
        hash      bytea NOT NULL,
        edit      uuid NOT NULL,
        PRIMARY KEY (partition, replica, sequence, hash)
      );
      CREATE INDEX edit_changes_by_edit ON seamesh.edit_changes (edit);
      -- What of a document is not shown and waits for somebody to decide. It speaks of one state of the document, and of no other.
      CREATE TABLE seamesh.document_conflicts (
        partition  bytea NOT NULL,
        collection text COLLATE "C" NOT NULL,
        id         bytea NOT NULL,
        of_state   bytea NOT NULL,   -- SHA-256 of the document's `state`
        entries    jsonb NOT NULL,
        PRIMARY KEY (partition, collection, id)
      );

      -- Called with what the batch made of the documents, so after them.
      CREATE FUNCTION seamesh.note_conflicts(
        stale_documents text, partitions bytea[], collections text[], ids bytea[], states bytea[], entries text[]
      ) RETURNS integer
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
      #variable_conflict use_column
      BEGIN
        IF cardinality(ids) > 0 THEN
          INSERT INTO seamesh.document_conflicts AS c (partition, collection, id, of_state, entries)
            SELECT n.partition, n.collection, n.id, sha256(n.state), n.entries::jsonb
            FROM unnest(partitions, collections, ids, states, entries) AS n (partition, collection, id, state, entries)
            JOIN seamesh.documents d ON d.partition = n.partition AND d.collection = n.collection AND d.id = n.id
              AND d.state = n.state
            ORDER BY 1, 2, 3
            ON CONFLICT (partition, collection, id) DO UPDATE SET of_state = excluded.of_state, entries = excluded.entries
            WHERE c.of_state <> excluded.of_state;
        END IF;
        RETURN cardinality(ids);
      END
      $$;

      -- Called with what the batch of the ledger appended, so after it.
      CREATE FUNCTION seamesh.note_edits(
        appended integer, partitions bytea[], replicas bytea[], sequences bigint[], hashes bytea[], edits bytea[]
      ) RETURNS integer
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
      BEGIN
        IF cardinality(edits) > 0 THEN
          INSERT INTO seamesh.edit_changes (partition, replica, sequence, hash, edit)
            SELECT n.partition, n.replica, n.sequence, n.hash, encode(n.edit, 'hex')::uuid
            FROM unnest(partitions, replicas, sequences, hashes, edits) AS n (partition, replica, sequence, hash, edit)
            WHERE length(n.edit) = 16 ORDER BY 1, 2, 3, 4
            ON CONFLICT DO NOTHING;
          UPDATE seamesh.edits e SET settled = now()
            FROM unnest(edits) AS n (edit)
            WHERE length(n.edit) = 16 AND e.id = encode(n.edit, 'hex')::uuid AND e.settled IS NULL;
        END IF;
        RETURN cardinality(edits);
      END
      $$;

      -- A relay that was silent for ten minutes has lost its claim. Whoever asks has brought all that it holds to the ledger
      -- before: so what has no change there is in its store neither. What could not be done comes behind what is new.
      CREATE FUNCTION seamesh.claim_edits(of_fleet bytea, by_relay bytea, most integer)
      RETURNS TABLE (number bigint, id bytea, partition text, collection text, document jsonb, read bytea, body jsonb,
        by_user text, made_ms bigint)
      LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        UPDATE seamesh.edits e SET relay = by_relay, claimed = clock_timestamp(), waits_for = NULL
        WHERE e.id IN (
          SELECT w.id FROM seamesh.edits w, seamesh.ledger l
          WHERE l.fleet = of_fleet AND w.settled IS NULL
            AND (w.relay IS NULL OR w.relay = by_relay OR w.claimed < clock_timestamp() - interval '10 minutes')
            AND NOT EXISTS (SELECT FROM seamesh.edit_changes c WHERE c.edit = w.id)
          ORDER BY w.claimed NULLS FIRST, w.number LIMIT most FOR UPDATE OF w SKIP LOCKED)
        RETURNING e.number, uuid_send(e.id), e.partition, e.collection, e.document, e.read, e.body, e.by_user,
          (extract(epoch FROM e.made) * 1000)::bigint
      $$;

      CREATE FUNCTION seamesh.settle_edits(of_fleet bytea, by_relay bytea, edits bytea[], outcomes text[], reasons text[])
      RETURNS void
      LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        UPDATE seamesh.edits e SET
          settled = CASE WHEN o.outcome = 'left' THEN NULL ELSE now() END,
          refusal = CASE WHEN o.outcome = 'refused' THEN o.reason END,
          waits_for = CASE WHEN o.outcome = 'left' THEN o.reason END,
          relay = CASE WHEN o.outcome = 'left' THEN NULL ELSE e.relay END
        FROM unnest(edits, outcomes, reasons) AS o (edit, outcome, reason), seamesh.ledger l
        WHERE l.fleet = of_fleet AND length(o.edit) = 16 AND e.id = encode(o.edit, 'hex')::uuid AND e.relay = by_relay
          AND e.settled IS NULL
      $$;

      -- What is in it may have outlived tables that were dropped.
      CREATE SCHEMA IF NOT EXISTS seamesh_office;

      -- As it was, but for the functions that it looks at.
      CREATE OR REPLACE FUNCTION seamesh.describe(OUT format integer, OUT fleet bytea, OUT ledger bytea, OUT lacking text)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT (SELECT max(number) FROM seamesh.migrations), l.fleet, uuid_send(l.id),
          coalesce((SELECT string_agg('seamesh.' || p.proname, ', ' ORDER BY p.proname) FROM pg_proc p
            WHERE p.pronamespace = 'seamesh'::regnamespace
              AND p.proname IN ('describe', 'statement_ids', 'positions', 'append', 'write_documents', 'document_position',
                'dead_letters', 'make_views', 'write_marks', 'note_edits', 'note_conflicts')
              AND NOT has_function_privilege(session_user, p.oid, 'EXECUTE')), '')
        FROM seamesh.ledger l
      $$;

      \(documentsView4)
      \(conflictsView4)
      \(editsView4)
      \(edit4)
      \(takeEdit4)
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh_office FROM PUBLIC;
      """)

  static let edit4 = """
    -- Asks for a document to be as `body` says, nil: deleted; `read` is the column of that name as it was read, nil where there
    -- was no document. What the document is turned into is the difference to that version.
    CREATE OR REPLACE FUNCTION seamesh_office.edit(
      partition text, collection text, id jsonb, read bytea, body jsonb, why text DEFAULT NULL, by_user text DEFAULT NULL
    ) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    #variable_conflict use_variable
    DECLARE
      made uuid;
      named text := coalesce(nullif(by_user, ''), nullif(current_setting('seamesh.by_user', true), ''), session_user);
      reason text := coalesce(why, current_setting('seamesh.why', true), '');
    BEGIN
      IF coalesce(partition, '') = '' OR coalesce(collection, '') = '' OR id IS NULL THEN
        RAISE EXCEPTION 'an edit names a partition, a collection and an id' USING ERRCODE = 'SM010';
      ELSIF read IS NULL AND body IS NULL THEN
        RAISE EXCEPTION 'to delete a document, give the version that was read' USING ERRCODE = 'SM010';
      ELSIF body IS NOT NULL AND jsonb_typeof(body) <> 'object' THEN
        RAISE EXCEPTION 'a document is a JSON object' USING ERRCODE = 'SM010';
      ELSIF body ? '_id' AND body->'_id' <> id THEN
        RAISE EXCEPTION 'a document keeps its id' USING ERRCODE = 'SM010';
      ELSIF octet_length(named) > 255 OR octet_length(reason) > 4096 THEN
        RAISE EXCEPTION 'a user has at most 255 bytes, and a reason 4096' USING ERRCODE = 'SM010';
      END IF;
      INSERT INTO seamesh.edits AS e (partition, collection, document, read, body, by_user, by_role, why)
        VALUES (partition, collection, id, read, body - '_id', named, session_user, reason) RETURNING e.id INTO made;
      RETURN made;
    END
    $$;
    """

  static let takeEdit4 = """
    -- INSERT, UPDATE and DELETE on the view are edits. Who and why: SET LOCAL seamesh.by_user and seamesh.why.
    CREATE OR REPLACE FUNCTION seamesh_office.take_edit() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        NEW.id := coalesce(NEW.id, NEW.body->'_id',
          jsonb_build_object('$oid', left(replace(gen_random_uuid()::text, '-', ''), 24)));
        IF NEW.body IS NULL THEN RAISE EXCEPTION 'a document is a JSON object' USING ERRCODE = 'SM010'; END IF;
        PERFORM seamesh_office.edit(NEW.partition, NEW.collection, NEW.id, NULL, NEW.body);
        RETURN NEW;
      ELSIF TG_OP = 'DELETE' THEN
        PERFORM seamesh_office.edit(OLD.partition, OLD.collection, OLD.id, OLD.read, NULL);
        RETURN OLD;
      ELSIF (NEW.partition, NEW.collection, NEW.id, NEW.read) IS DISTINCT FROM
          (OLD.partition, OLD.collection, OLD.id, OLD.read) THEN
        RAISE EXCEPTION 'of a document nothing but its body is edited' USING ERRCODE = 'SM010';
      ELSIF NEW.body IS NULL THEN
        RAISE EXCEPTION 'to delete a document, DELETE its row' USING ERRCODE = 'SM010';
      END IF;
      IF NEW.body IS DISTINCT FROM OLD.body THEN
        PERFORM seamesh_office.edit(OLD.partition, OLD.collection, OLD.id, OLD.read, NEW.body);
      END IF;
      RETURN NEW;
    END
    $$;
    CREATE TRIGGER take_edit INSTEAD OF INSERT OR UPDATE OR DELETE ON seamesh_office.documents
      FOR EACH ROW EXECUTE FUNCTION seamesh_office.take_edit();
    """

  static let documentsView4 = """
    -- `read` is the version that is before whoever reads the row: it goes back with an edit.
    CREATE VIEW seamesh_office.documents AS
      SELECT p.name AS partition, d.collection, d.id_json AS id, d.body, d.written, d.state AS read
      FROM seamesh.documents d JOIN seamesh.partitions p ON p.partition = d.partition
      WHERE d.body IS NOT NULL AND d.id_json IS NOT NULL;
    """

  static let conflictsView4 = """
    -- Values that are not shown, since another was written without having seen them: nobody has decided yet.
    CREATE VIEW seamesh_office.conflicts AS
      SELECT p.name AS partition, d.collection, d.id_json AS id, e.path, e.kind, e.value, e.written, d.body
      FROM seamesh.document_conflicts c
      JOIN seamesh.documents d ON d.partition = c.partition AND d.collection = c.collection AND d.id = c.id
        AND c.of_state = sha256(d.state)
      JOIN seamesh.partitions p ON p.partition = c.partition,
      LATERAL jsonb_to_recordset(c.entries) AS e (path text, kind text, value jsonb, written timestamptz);
    """

  static let editsView4 = """
    -- What became of the edits. `held`: the change is in the ledger and does not count.
    CREATE VIEW seamesh_office.edits AS
      SELECT e.id, e.number, e.made, e.by_user, e.by_role, e.why, e.partition, e.collection, e.document, e.body,
        CASE WHEN c.accepted THEN 'applied' WHEN c.edit IS NOT NULL THEN 'held' WHEN e.refusal IS NOT NULL THEN 'refused'
          WHEN e.settled IS NOT NULL THEN 'unchanged' WHEN e.relay IS NOT NULL THEN 'claimed' ELSE 'waiting' END AS state,
        coalesce(e.refusal, e.waits_for) AS reason, e.settled, c.replica, c.sequence
      FROM seamesh.edits e
      LEFT JOIN LATERAL (
        SELECT x.edit, m.accepted, x.replica, x.sequence FROM seamesh.edit_changes x
        LEFT JOIN seamesh.marked_changes m ON m.partition = x.partition AND m.replica = x.replica
          AND m.sequence = x.sequence AND m.hash = x.hash
        WHERE x.edit = e.id ORDER BY m.accepted DESC NULLS LAST LIMIT 1) c ON true;
    """
}
