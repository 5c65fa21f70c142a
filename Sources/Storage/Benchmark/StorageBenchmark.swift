import Replication

/// What this machine's SQLite can do, and how much of it the store's own path keeps: figures to compare within one run.
package enum StorageBenchmark {
  package static let rowCount = 200_000
  package static let rowsPerTransaction = 10_000
  private static let rowByteCount = 200
  private static let rounds = 3

  /// Rows per second of the bare limit: 24-byte ascending key and 200-byte blob in one clustered table, committed at
  /// `synchronous=FULL`, the best of three rounds. Makes and removes a file in `directory`.
  package static func rawLimit(directory: String, rows: Int = rowCount) throws(StoreError) -> Double {
    try best { () throws(StoreError) in
      let path = directory + "/bench-raw.db"
      try removeDatabase(path)
      let rate = try insertRaw(path, rows: rows)
      try removeDatabase(path)
      return rate
    }
  }

  /// New documents per second by the store's own path, below decoding and hashing: runs of 64 appended to the log and
  /// their documents put in, ids ascending, one chain; the best of three rounds.
  package static func ownInserts(directory: String, rows: Int = rowCount) throws -> Double {
    try best {
      let place = directory + "/bench-store"
      try removeStore(place)
      let rate = try insertDocuments(place, rows: rows)
      try removeStore(place)
      return rate
    }
  }

  private static func best<Failure: Error>(_ round: () throws(Failure) -> Double) throws(Failure) -> Double {
    var best = 0.0
    for _ in 0..<rounds { best = max(best, try round()) }
    return best
  }

  private static func insertRaw(_ path: String, rows: Int) throws(StoreError) -> Double {
    let database = try Database(path: path, access: .create)
    try database.execute(
      """
      PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF; PRAGMA cache_size=-65536;
      PRAGMA wal_autocheckpoint=16384;
      CREATE TABLE rows (key BLOB PRIMARY KEY NOT NULL, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
      """)
    let insert = try database.statement("INSERT INTO rows (key, body) VALUES (?1, ?2)")
    let body = [UInt8](repeating: 0x33, count: rowByteCount)
    let start = ContinuousClock.now
    for first in stride(from: 0, to: rows, by: rowsPerTransaction) {
      try database.execute("BEGIN")
      for row in first..<min(first + rowsPerTransaction, rows) {
        let key = ascendingKey(row)
        try key.span.bytes.withUnsafeBytes { (key) throws(StoreError) in
          try body.span.bytes.withUnsafeBytes { (body) throws(StoreError) in
            try insert.bind(1, borrowed: key)
            try insert.bind(2, borrowed: body)
            try insert.run()
          }
        }
      }
      try database.execute("COMMIT")
    }
    return Double(rows) / ((ContinuousClock.now - start) / .seconds(1))
  }

  private static func insertDocuments(_ directory: String, rows: Int) throws -> Double {
    let owner = Digest(words: (1, 2, 3, 4))
    let store = try Store.open(directory: directory, fleet: FleetID(owner), device: DeviceID(owner))
    store.pace = .catchUp
    let state = [UInt8](repeating: 0x33, count: rowByteCount)
    let body = [UInt8](repeating: 0x33, count: (rowByteCount + 64) * Run.changeLimit)
    let start = ContinuousClock.now
    for first in stride(from: 0, to: rows, by: rowsPerTransaction) {
      let numbers = first..<min(first + rowsPerTransaction, rows)
      try store.write(.full) { transaction in
        let partition = try transaction.number(of: PartitionID(owner))
        let collection = try transaction.number(ofCollection: "bench")
        let chain = try transaction.number(of: ReplicaID(high: 1, low: 1), in: partition, genesis: owner)
        for run in stride(from: numbers.lowerBound, to: numbers.upperBound, by: Run.changeLimit) {
          let last = min(run + Run.changeLimit, numbers.upperBound)
          try transaction.appendRun(
            chain, first: UInt64(run + 1), last: UInt64(last), context: VersionVector(),
            body: body[..<(body.count * (last - run) / Run.changeLimit)])
        }
        for row in numbers {
          _ = try transaction.insertNew(partition, collection, key: ascendingKey(row), state: state)
        }
      }
    }
    return Double(rows) / ((ContinuousClock.now - start) / .seconds(1))
  }

  private static func ascendingKey(_ row: Int) -> [UInt8] {
    var key = [UInt8](repeating: 0, count: 16)
    key.reserveCapacity(24)
    appendBigEndian(UInt64(row), to: &key)
    return key
  }

  private static func removeDatabase(_ path: String) throws(StoreError) {
    for suffix in ["", "-wal", "-shm"] { try FileSystem.remove(path + suffix) }
  }

  private static func removeStore(_ directory: String) throws(StoreError) {
    try removeDatabase(directory + "/" + Store.fileName)
    try FileSystem.remove(directory + "/" + DirectoryLock.fileName)
    try FileSystem.removeDirectory(directory)
  }
}
