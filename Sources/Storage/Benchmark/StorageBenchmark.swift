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

  /// In which order new ids come, with the batch in which a node takes them in.
  package enum Order: Sendable {
    /// As from one device that makes them from the time: batches of ``rowsPerTransaction``.
    case ascending
    /// As applications choose them: batches of ``DocumentFold/documentLimit``.
    case random

    var batch: Int {
      switch self {
      case .ascending: rowsPerTransaction
      case .random: DocumentFold.documentLimit
      }
    }
  }

  /// New documents per second by the store's own path, from scanned changes on: runs of 64 appended to the log, their
  /// documents folded in, marks moved; the best of three rounds. Making the changes is not counted.
  package static func ownInserts(
    directory: String, order: Order, rows: Int = rowCount
  ) throws -> Double {
    try best {
      let place = directory + "/bench-store"
      try removeStore(place)
      let rate = try insertDocuments(place, order, rows: rows)
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

  private static func insertDocuments(_ directory: String, _ order: Order, rows: Int) throws -> Double {
    let owner = Digest(words: (1, 2, 3, 4))
    let store = try Store.open(directory: directory, fleet: FleetID(owner), device: DeviceID(owner))
    store.pace = .catchUp
    let chain = try store.write(.full) { transaction in
      let partition = try transaction.number(of: PartitionID(owner))
      return try transaction.number(of: BenchmarkBatch.replica, in: partition, genesis: owner)
    }
    var elapsed = Duration.zero
    for first in stride(from: 0, to: rows, by: order.batch) {
      let batch = try BenchmarkBatch(
        first: first, count: min(order.batch, rows - first), isAscending: order == .ascending)
      let start = ContinuousClock.now
      try store.write(.full) { try take(batch, chain, $0) }
      elapsed += ContinuousClock.now - start
    }
    return Double(rows) / (elapsed / .seconds(1))
  }

  private static func take(
    _ batch: BenchmarkBatch, _ chain: ChainNumber, _ transaction: borrowing Transaction
  ) throws(StoreError) {
    var accepted = AcceptedBatch()
    for run in batch.runs {
      let last = run.first + UInt64(run.writes.count) - 1
      let arrival = try transaction.appendRun(
        chain, first: run.first, last: last, context: VersionVector(), body: run.body[...])
      let mark = ChainMark(sequence: last, hash: .zero)
      try transaction.setMarks(of: chain, received: mark, accepted: mark)
      accepted.append(
        run.writes, of: BenchmarkBatch.replica, in: chain.partition, context: VersionVector(), sight: .plain,
        buffer: run.body[...], arrival: arrival)
    }
    _ = try DocumentFold.fold(accepted, in: transaction)
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
