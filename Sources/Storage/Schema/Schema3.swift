extension Migration {
  /// Format 3: what devices say that they hold.
  static let holdings = Migration(
    version: 3,
    sql: """
      -- The last word of a device about what it holds of a partition, this device's own among them.
      CREATE TABLE holdings (
        id        INTEGER PRIMARY KEY,
        partition BLOB    NOT NULL,  -- its id, 32 bytes: it need not be here
        device    BLOB    NOT NULL,  -- the key, 32 bytes
        kind      INTEGER NOT NULL,  -- 0 received, 1 accepted, 2 in the backend
        number    INTEGER NOT NULL,  -- the greatest that is known
        heard     INTEGER NOT NULL,  -- ms since 1970, UTC, by this node's clock
        encoded   BLOB    NOT NULL,
        UNIQUE (partition, device, kind)
      ) STRICT;
      """)
}
