extension PostgreSQLSchema {
  static let change8 = """
    -- Sets fields at the top of a document that is there, and raises where there is none: an UPDATE of the view's would touch no
    -- row then, and say so to nobody but who looks at its count.
    CREATE OR REPLACE FUNCTION seamesh_office.change(
      partition text, collection text, id jsonb, fields jsonb, why text DEFAULT NULL, by_user text DEFAULT NULL
    ) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    #variable_conflict use_variable
    DECLARE
      present record;
      place text := format('%s %s in %s', collection, id, partition);
    BEGIN
      IF coalesce(jsonb_typeof(fields), '') <> 'object' THEN
        RAISE EXCEPTION 'fields are a JSON object' USING ERRCODE = 'SM010';
      END IF;
      SELECT d.alive, d.body, d.state, d.refusal INTO present
      FROM seamesh.documents d JOIN seamesh.partitions p ON p.partition = d.partition
      WHERE p.name = change.partition AND d.collection = change.collection AND d.id_json = change.id;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no document %', place USING ERRCODE = 'P0002',
          HINT = 'What is there: SELECT partition, collection, id FROM seamesh_office.documents';
      ELSIF NOT present.alive THEN
        RAISE EXCEPTION 'the document % was deleted', place USING ERRCODE = 'P0002';
      ELSIF present.body IS NULL THEN
        RAISE EXCEPTION 'the document % has no body here: %', place, present.refusal USING ERRCODE = 'P0002';
      END IF;
      RETURN seamesh_office.edit(partition, collection, id, present.state, present.body || fields, why, by_user);
    END
    $$;
    REVOKE ALL ON FUNCTION seamesh_office.change FROM PUBLIC;
    """
}
