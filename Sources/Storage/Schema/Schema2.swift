extension Migration {
  /// Format 2: the first that holds the final layouts of changes, runs and statements. Never changed again; what comes
  /// next is a migration of its own. Nothing leads here from format 1, which was never released.
  static let first = Migration(
    version: 2,
    sql: """
      -- What belongs to the store as a whole. Keys: see MetaKey.
      CREATE TABLE meta (
        key   TEXT PRIMARY KEY NOT NULL,
        value BLOB NOT NULL
      ) STRICT, WITHOUT ROWID;

      -- A partition that this node has met. The counters are kept by each transaction, so that no start counts rows.
      CREATE TABLE partitions (
        id        INTEGER PRIMARY KEY,
        hash      BLOB    NOT NULL UNIQUE,      -- partition id, 32 bytes
        name      TEXT,                         -- null: the name has not been learnt yet
        flags     INTEGER NOT NULL DEFAULT 0,   -- see PartitionFlags
        documents INTEGER NOT NULL DEFAULT 0,   -- alive
        changes   INTEGER NOT NULL DEFAULT 0,   -- received, accepted or held
        log_bytes INTEGER NOT NULL DEFAULT 0    -- bytes of run bodies
      ) STRICT;

      -- The changes of one replica in one partition: how far they are here, and how far they count.
      CREATE TABLE chains (
        id                INTEGER PRIMARY KEY,
        partition         INTEGER NOT NULL REFERENCES partitions(id),
        replica           BLOB    NOT NULL,            -- 16 bytes
        received_sequence INTEGER NOT NULL DEFAULT 0,  -- 0: nothing
        received_hash     BLOB    NOT NULL,            -- 32 bytes, chain hash at received_sequence
        accepted_sequence INTEGER NOT NULL DEFAULT 0,  -- at most received_sequence
        accepted_hash     BLOB    NOT NULL,            -- 32 bytes, chain hash at accepted_sequence
        hold_reason       TEXT,                        -- why the change after accepted_sequence does not count
        UNIQUE (partition, replica)
      ) STRICT;

      -- The log: one row per run, in order of arrival. Changes are not indexed one by one: an entry each costs a fifth
      -- to a half of the whole write.
      CREATE TABLE runs (
        arrival        INTEGER PRIMARY KEY,
        chain          INTEGER NOT NULL REFERENCES chains(id),
        first          INTEGER NOT NULL,
        last           INTEGER NOT NULL,
        arrived        INTEGER NOT NULL, -- ms since 1970, UTC, by this node's clock; 0: not told
        context_base   INTEGER,          -- arrival of the run of this chain whose full context `context` refers to
        context        BLOB    NOT NULL, -- entries of replica 16, sequence 8 (0: taken away), tip 16
        body           BLOB    NOT NULL  -- as it is sent, without the context
      ) STRICT;
      CREATE INDEX runs_by_chain ON runs (chain, last);

      -- Changes that write again what was lost at a fork: never forgotten, so that no original counts twice.
      CREATE TABLE reissues (
        partition       INTEGER NOT NULL REFERENCES partitions(id),
        replica         BLOB    NOT NULL,  -- 16 bytes
        sequence        INTEGER NOT NULL,
        hash            BLOB    NOT NULL,  -- 32 bytes, chain hash at sequence
        origin_replica  BLOB    NOT NULL,  -- 16 bytes
        origin_sequence INTEGER NOT NULL,
        origin_hash     BLOB    NOT NULL,  -- 32 bytes
        PRIMARY KEY (partition, hash)
      ) STRICT, WITHOUT ROWID;

      CREATE TABLE collections (
        id   INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE
      ) STRICT;

      -- Bodies lie in a rowid table and keys in a narrow index: with keys in random order that is four times as fast as
      -- one clustered table, whose interior nodes would carry the bodies.
      CREATE TABLE documents (
        id         INTEGER PRIMARY KEY,
        partition  INTEGER NOT NULL REFERENCES partitions(id),
        collection INTEGER NOT NULL REFERENCES collections(id),
        key        BLOB    NOT NULL,  -- canonical bytes of the document's id
        alive      INTEGER NOT NULL,  -- 0: deleted, kept for merging
        state      BLOB    NOT NULL   -- entries that merge needs, and with them what is shown
      ) STRICT;
      CREATE UNIQUE INDEX documents_by_key ON documents (partition, collection, key);

      -- Signed facts about the fleet, in order of arrival.
      CREATE TABLE statements (
        arrival INTEGER PRIMARY KEY,
        id      BLOB    NOT NULL UNIQUE,  -- 32 bytes
        arrived INTEGER NOT NULL,         -- ms since 1970, UTC, by this node's clock; 0: not told
        encoded BLOB    NOT NULL
      ) STRICT;

      -- What this node wants: a partition's name, or a prefix and *.
      CREATE TABLE subscriptions (
        pattern TEXT PRIMARY KEY NOT NULL
      ) STRICT, WITHOUT ROWID;

      -- Codes that this device gave out, each for one other device.
      CREATE TABLE invitations (
        serial  INTEGER PRIMARY KEY,
        secret  BLOB    NOT NULL,  -- 32 bytes
        user    TEXT    NOT NULL,
        role    TEXT    NOT NULL,
        profile BLOB    NOT NULL,  -- CBOR map of texts
        expires INTEGER NOT NULL,  -- ms since 1970, UTC
        state   INTEGER NOT NULL,  -- 0 open, 1 cancelled, 2 used
        device  BLOB               -- of who used it: the key, 32 bytes
      ) STRICT;

      CREATE TABLE peers (
        device       BLOB    PRIMARY KEY NOT NULL,  -- 32 bytes
        last_contact INTEGER NOT NULL               -- ms since 1970, UTC
      ) STRICT, WITHOUT ROWID;

      CREATE TABLE peer_addresses (
        device    BLOB    NOT NULL REFERENCES peers(device),
        address   TEXT    NOT NULL,  -- as it is dialled
        last_used INTEGER NOT NULL,  -- ms since 1970, UTC
        PRIMARY KEY (device, address)
      ) STRICT, WITHOUT ROWID;

      -- What a device has sent so far of a payload too large to travel inside its run.
      CREATE TABLE staged_shares (
        id         INTEGER PRIMARY KEY,
        partition  BLOB    NOT NULL,  -- its id, 32 bytes
        payload    BLOB    NOT NULL,  -- SHA-256, 32 bytes
        device     BLOB    NOT NULL,  -- 32 bytes
        total      INTEGER NOT NULL,  -- bytes of the whole payload
        byte_count INTEGER NOT NULL,  -- here, from the first on
        whole      INTEGER NOT NULL,  -- 1: here as a whole, and of this hash
        UNIQUE (partition, payload, device)
      ) STRICT;

      CREATE TABLE staged_pieces (
        id    INTEGER PRIMARY KEY,
        share INTEGER NOT NULL REFERENCES staged_shares(id),
        start INTEGER NOT NULL,  -- offset of the first byte
        bytes BLOB    NOT NULL
      ) STRICT;
      CREATE UNIQUE INDEX staged_pieces_by_share ON staged_pieces (share, start);

      -- Payloads too large to travel inside their run, whole: part of the log.
      CREATE TABLE large_payloads (
        id    INTEGER PRIMARY KEY,
        hash  BLOB NOT NULL UNIQUE,  -- SHA-256, 32 bytes
        bytes BLOB NOT NULL
      ) STRICT;
      """)
}
