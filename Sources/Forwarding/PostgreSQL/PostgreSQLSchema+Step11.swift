import Wire

extension PostgreSQLSchema {
  /// A relay can ask of statements that it does not hold where they stand, without what they say.
  static let step11 = Step(
    number: 11, functions: ["statement_heads"],
    sql: """
      -- Of those of these statements that are there: the bytes before the body, which say who signed it, in which scope and with
      -- which number. Not the body: a relay may not be in the room that a statement is of.
      CREATE FUNCTION seamesh.statement_heads(of_fleet bytea, ids bytea[]) RETURNS TABLE (id bytea, head bytea)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT s.id, substring(s.encoded FROM 1 FOR \(StatementCodec.headByteLimit))
        FROM seamesh.statements s, seamesh.ledger l WHERE l.fleet = of_fleet AND s.id = ANY (ids)
      $$;

      \(describe(lookingAt: functionsThrough8 + ["statement_heads"]))
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      """)
}
