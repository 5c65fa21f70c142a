extension Migration {
  /// Format 4: what the content of a row comes to stands beside it (``RowSum``), so that a page that the disk gave back
  /// otherwise than it was written is noticed. Null: written by an earlier build, and read as it is.
  static let sums = Migration(
    version: 4,
    sql: """
      ALTER TABLE runs ADD COLUMN sum INTEGER;
      ALTER TABLE documents ADD COLUMN sum INTEGER;
      ALTER TABLE large_payloads ADD COLUMN sum INTEGER;
      """)
}
