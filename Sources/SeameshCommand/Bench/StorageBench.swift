import Storage

/// What the store alone makes of new documents: the log, the fold and the marks, without network, hashes and signatures.
struct StorageBench {
  let sizes: BenchSizes
  let scratch: BenchScratch

  func run(into report: inout BenchReport) throws(Failure) {
    let raw = try scratch.rawLimit(rows: sizes.documents)
    report.figures.append(.rawInsert(raw))
    for order in [StorageBenchmark.Order.ascending, .random] {
      let rate: Double
      do {
        rate = try StorageBenchmark.ownInserts(directory: scratch.path, order: order, rows: sizes.documents)
      } catch {
        throw Failure(.failed, "\(error)")
      }
      report.figures.append(
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
