import Replication

extension PostgreSQLSchema {
  /// What a relay takes at once of the office's edits has a bound in bytes, and what it could not do it asks for less and less often.
  static let step13 = Step(
    number: 13, functions: [],
    sql: """
      -- By whom and when it was left last.
      ALTER TABLE seamesh.edits ADD COLUMN left_by bytea, ADD COLUMN left_last timestamptz;

      -- As claim_edits, which relays of earlier programs call, but of partitions that one of the patterns names (nil: all), no more
      -- than some 16 MiB, or one. Who left an edit for a while waits a quarter of that until it takes it again, and no longer than
      -- five minutes; others a sixteenth, and half a minute.
      CREATE FUNCTION seamesh.claim_carried_edits(of_fleet bytea, by_relay bytea, most integer, patterns text[])
      RETURNS TABLE (number bigint, id bytea, partition text, collection text, document jsonb, read bytea, body jsonb,
        by_user text, made_ms bigint)
      LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        UPDATE seamesh.edits e SET relay = by_relay, claimed = clock_timestamp(), waits_for = NULL
        WHERE e.id IN (
          SELECT s.id FROM (
            SELECT c.id, row_number() OVER turn AS place, sum(c.bytes) OVER turn AS bytes FROM (
              SELECT w.id, w.claimed, w.number,
                octet_length(w.document::text) + coalesce(octet_length(w.body::text), 0) + coalesce(length(w.read), 0) AS bytes
              FROM seamesh.edits w, seamesh.ledger l
              WHERE l.fleet = of_fleet AND w.settled IS NULL
                AND (w.relay IS NULL OR w.relay = by_relay OR w.claimed < clock_timestamp() - interval '10 minutes')
                -- What can be no partition's name is refused by whoever comes first.
                AND (patterns IS NULL OR octet_length(w.partition) > \(PartitionName.byteLimit) OR w.partition ~ '[\\x01-\\x1f\\x7f]|\\*$'
                  OR EXISTS (SELECT FROM unnest(patterns) AS p (pattern) WHERE CASE right(p.pattern, 1)
                    WHEN '*' THEN starts_with(w.partition, left(p.pattern, -1)) ELSE w.partition = p.pattern END))
                AND (w.left_last IS NULL OR w.left_last + CASE w.left_by
                  WHEN by_relay THEN least((w.left_last - w.left_since) / 4, interval '5 minutes')
                  ELSE least((w.left_last - w.left_since) / 16, interval '30 seconds') END <= clock_timestamp())
                AND NOT EXISTS (SELECT FROM seamesh.edit_changes c WHERE c.edit = w.id)
              ORDER BY w.claimed NULLS FIRST, w.number LIMIT most FOR UPDATE OF w SKIP LOCKED) AS c
            WINDOW turn AS (ORDER BY c.claimed NULLS FIRST, c.number ROWS UNBOUNDED PRECEDING)) AS s
          WHERE s.place = 1 OR s.bytes <= 16777216)
        RETURNING e.number, uuid_send(e.id), e.partition, e.collection, e.document, e.read, e.body, e.by_user,
          (extract(epoch FROM e.made) * 1000)::bigint
      $$;

      -- As it was, but that the day counts from when relays began to leave it without a pause of an hour: where none was there to
      -- try, nobody could not do it.
      CREATE OR REPLACE FUNCTION seamesh.settle_edits(
        of_fleet bytea, by_relay bytea, edits bytea[], outcomes text[], reasons text[]
      ) RETURNS void
      LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        UPDATE seamesh.edits e SET
          settled = CASE WHEN o.outcome = 'left' THEN NULL ELSE now() END,
          refusal = CASE o.outcome WHEN 'refused' THEN o.reason WHEN 'given up' THEN o.reason || ', for a day by now' END,
          waits_for = CASE WHEN o.outcome = 'left' THEN o.reason END,
          left_since = CASE WHEN o.outcome = 'left' THEN o.since END,
          left_by = CASE WHEN o.outcome = 'left' THEN by_relay END,
          left_last = CASE WHEN o.outcome = 'left' THEN now() END,
          relay = CASE WHEN o.outcome = 'left' THEN NULL ELSE e.relay END
        FROM (
          SELECT s.id, s.reason, s.since,
            CASE WHEN s.outcome = 'left' AND s.since < now() - interval '1 day' THEN 'given up' ELSE s.outcome END AS outcome
          FROM (
            SELECT w.id, n.reason, n.outcome,
              CASE WHEN w.left_last >= now() - interval '1 hour' THEN w.left_since ELSE now() END AS since
            FROM unnest(edits, outcomes, reasons) AS n (edit, outcome, reason)
            JOIN seamesh.edits w ON length(n.edit) = 16 AND w.id = encode(n.edit, 'hex')::uuid) AS s
        ) AS o, seamesh.ledger l
        WHERE l.fleet = of_fleet AND e.id = o.id AND e.relay = by_relay AND e.settled IS NULL
      $$;
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;

      DO $$
      BEGIN
        IF to_regclass('seamesh_office.edits') IS NOT NULL THEN
          \(editsView13)
        END IF;
      END
      $$;
      """)

  static let editsView13 = """
    -- What became of the edits. `held`: the change is in the ledger and does not count.
    CREATE OR REPLACE VIEW seamesh_office.edits AS
      SELECT e.id, e.number, e.made, e.by_user, e.by_role, e.why, e.partition, e.collection, e.document, e.body,
        CASE WHEN c.accepted THEN 'applied' WHEN c.edit IS NOT NULL THEN 'held' WHEN e.refusal IS NOT NULL THEN 'refused'
          WHEN e.settled IS NOT NULL THEN 'unchanged' WHEN e.relay IS NOT NULL THEN 'claimed' ELSE 'waiting' END AS state,
        CASE WHEN c.accepted THEN NULL
          WHEN c.edit IS NOT NULL THEN 'the device that wrote it may not, or not yet: its change is kept and does not count; '
            || 'ask for it again, and a device that may writes it'
          ELSE coalesce(e.refusal, e.waits_for) END AS reason,
        e.settled, c.replica, c.sequence
      FROM seamesh.edits e
      LEFT JOIN LATERAL (
        SELECT x.edit, m.accepted, x.replica, x.sequence FROM seamesh.edit_changes x
        LEFT JOIN seamesh.marked_changes m ON m.partition = x.partition AND m.replica = x.replica
          AND m.sequence = x.sequence AND m.hash = x.hash
        WHERE x.edit = e.id ORDER BY m.accepted DESC NULLS LAST LIMIT 1) c ON true;
    """
}
