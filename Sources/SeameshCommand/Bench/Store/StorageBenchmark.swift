import Replication
import Storage

/// What the store's own path makes of new documents.
enum StorageBenchmark {
  /// In which order new ids come, with the batch in which a node takes them in.
  enum Order: Sendable {
    /// As from one device that makes them from the time: batches of ``RawInsert/rowsPerTransaction``.
    case ascending
    /// As applications choose them: batches of ``DocumentFold/documentLimit``.
    case random

    var batch: Int {
      switch self {
      case .ascending: RawInsert.rowsPerTransaction
      case .random: DocumentFold.documentLimit
      }
    }
  }

  struct Inserts {
    /// Documents per second, of the best round.
    var rate = 0.0
    /// Of the database's file, with all of the log carried over.
    var bytesPerDocument = 0.0
  }

  /// New documents by the store's own path, from scanned changes on: runs of 64 appended to the log, their documents folded
  /// in, marks moved. Making the changes is not counted.
  static func ownInserts(_ scratch: BenchScratch, order: Order, rows: Int, rounds: Int) throws -> Inserts {
    var inserts = Inserts()
    for _ in 0..<rounds {
      let place = try scratch.directory("store")
      defer { scratch.remove("store") }
      inserts.rate = max(inserts.rate, try insertDocuments(place, order, rows: rows))
      let byteCount = BenchScratch.byteCount(of: place + "/" + Store.fileName)
      inserts.bytesPerDocument = Double(byteCount) / Double(rows)
    }
    return inserts
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
    _ = try store.carryOverAll()
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
}
