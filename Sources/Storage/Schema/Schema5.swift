extension Migration {
  /// Format 5: what one change has written lies in its run alone, where it travelled in one.
  static let references = Migration(
    version: 5,
    sql: """
      -- Where `run` is set, `state` goes on with the `length` bytes from `start` on in the body of that run: the operations
      -- of the one change that has made the document.
      ALTER TABLE documents ADD COLUMN run    INTEGER;  -- arrival of the run
      ALTER TABLE documents ADD COLUMN start  INTEGER;
      ALTER TABLE documents ADD COLUMN length INTEGER;
      """)
}
