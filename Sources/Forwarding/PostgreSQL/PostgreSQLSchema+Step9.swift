extension PostgreSQLSchema {
  /// When a relay said last that its documents are all there is known, and a document of the office's is found by its id.
  static let step9 = Step(
    number: 9, functions: [],
    sql: """
      \(writeDocuments9)

      -- Where one is looked for by its partition's name and its id. An id may be longer than what an index in order holds, which a
      -- hash does not mind. Databases that have no index on JSON go without, and look through the collection.
      CREATE INDEX partitions_by_name ON seamesh.partitions (name);
      DO $$
      BEGIN
        CREATE INDEX documents_by_id ON seamesh.documents USING hash (id_json);
      EXCEPTION WHEN feature_not_supported THEN NULL;
      END
      $$;
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA seamesh FROM PUBLIC;
      """)

  /// As it was, but that a position that stays the same is noted anew: what came since is what documents may lack.
  private static let writeDocuments9 = writeDocuments8.replacing(
    "WHERE p.position <> excluded.position;", with: ";")
}
