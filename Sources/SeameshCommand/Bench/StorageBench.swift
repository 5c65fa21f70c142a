import Storage

/// What the store alone makes of new documents: the log, the fold and the marks, without network, hashes and signatures.
struct StorageBench {
  let run: BenchRun

  func measure() throws(Failure) {
    let (scratch, rows) = (run.scratch, run.sizes.documents)
    let raw = try scratch.rawLimit(rows: rows)
    run.report.add(.rawInsert(raw))
    for order in [StorageBenchmark.Order.ascending, .random] {
      let rate: Double
      do {
        rate = try StorageBenchmark.ownInserts(directory: scratch.path, order: order, rows: rows)
      } catch {
        throw Failure(.failed, "\(error)")
      }
      run.report.add(
        Figure(
          "store-\(order)", "store alone, \(order) ids", rate / raw, "of plain insert",
          basis: "\(Figure.text(rate)) new documents/s into log and documents, durable; best of 3"))
    }
  }
}

extension BenchScratch {
  /// Rows per second of the plain SQLite insert that other figures are divided by.
  func rawLimit(rows: Int) throws(Failure) -> Double {
    do throws(StoreError) {
      return try StorageBenchmark.rawLimit(directory: path, rows: rows)
    } catch {
      throw Failure(.failed, "\(error)")
    }
  }
}

extension Figure {
  static func rawInsert(_ rate: Double) -> Figure {
    Figure(
      "raw-insert", "plain SQLite insert", rate, "rows/s",
      basis: "24-byte ascending key, 200-byte blob, WITHOUT ROWID, WAL, FULL, 10,000 a transaction; best of 3")
  }
}
