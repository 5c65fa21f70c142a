extension PostgreSQLSchema {
  /// Whether an edit is still to be done is told together with what the ledger has.
  static let step10 = Step(
    number: 10, functions: [],
    sql: """
      -- Both columns are of one moment: `has_chains`, whether the ledger has each of these chains up to that number; `standing`, the
      -- ids of those of these edits that are still that relay's to do, 16 bytes each. A ledger that was put back from a copy forgot
      -- which edits changes had come of, until somebody filled it again; between two calls either may happen.
      CREATE FUNCTION seamesh.confirm_edits(
        of_fleet bytea, by_relay bytea, edits bytea[], partitions bytea[], replicas bytea[], sequences bigint[],
        OUT has_chains boolean, OUT standing bytea)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT
          NOT EXISTS (
            SELECT FROM unnest(partitions, replicas, sequences) AS q (partition, replica, sequence)
            WHERE NOT EXISTS (SELECT FROM seamesh.changes c
              WHERE c.partition = q.partition AND c.replica = q.replica AND c.sequence >= q.sequence)),
          coalesce((
            SELECT string_agg(uuid_send(e.id), ''::bytea)
            FROM unnest(edits) AS n (edit)
            JOIN seamesh.edits e ON length(n.edit) = 16 AND e.id = encode(n.edit, 'hex')::uuid
            JOIN seamesh.ledger l ON l.fleet = of_fleet
            WHERE e.relay = by_relay AND e.settled IS NULL
              AND NOT EXISTS (SELECT FROM seamesh.edit_changes c WHERE c.edit = e.id)), ''::bytea)
      $$;
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      """)
}
