extension PostgreSQLSchema {
  /// A relay can ask of statements that it does not hold where they stand, without what they say.
  static let step11 = Step(
    number: 11, functions: ["statement_heads"],
    sql: """
      -- Of an encoded statement the bytes before its body: the head of an array, and seven items of CBOR (version, fleet, kind,
      -- issuer, number, previous, scope), of which each says how long it is. Empty where it is none.
      CREATE FUNCTION seamesh.statement_head(encoded bytea) RETURNS bytea
      LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
      DECLARE
        place integer := 1;
        short integer;
        wide integer;
        argument bigint;
      BEGIN
        FOR item IN 1..7 LOOP
          short := get_byte(encoded, place) & 31;
          wide := CASE WHEN short BETWEEN 24 AND 27 THEN 1 << (short - 24) ELSE 0 END;
          argument := CASE WHEN wide = 0 THEN short ELSE 0 END;
          FOR digit IN 1..wide LOOP
            argument := (argument << 8) | get_byte(encoded, place + digit);
          END LOOP;
          -- Byte strings and texts have as many bytes behind that.
          IF get_byte(encoded, place) >> 5 NOT IN (2, 3) THEN
            argument := 0;
          ELSIF argument NOT BETWEEN 0 AND 255 THEN
            RETURN '';
          END IF;
          place := place + 1 + wide + argument::integer;
        END LOOP;
        RETURN substring(encoded FROM 1 FOR place);
      EXCEPTION WHEN array_subscript_error THEN
        RETURN '';
      END
      $$;

      -- Of those of these statements that are there: who signed it, in which scope, with which number and behind which one. Not what
      -- it says: a relay may not be in the room that a statement is of.
      CREATE FUNCTION seamesh.statement_heads(of_fleet bytea, ids bytea[]) RETURNS TABLE (id bytea, head bytea)
      LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT s.id, seamesh.statement_head(s.encoded)
        FROM seamesh.statements s, seamesh.ledger l WHERE l.fleet = of_fleet AND s.id = ANY (ids)
      $$;

      \(describe(lookingAt: functionsThrough8 + ["statement_heads"]))
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      """)
}
