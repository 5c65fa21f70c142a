import Glibc

/// What the parts of one `seamesh bench` share.
struct BenchRun {
  let sizes: BenchSizes
  let scratch: BenchScratch
  let terminal: Terminal
  let report: BenchReport

  private static let rawInsertKey = "raw-insert"

  /// Rows per second of the plain SQLite insert that other figures are divided by; measured and shown once in a run.
  func rawInsert() throws(Failure) -> Double {
    if let known = report.figures.first(where: { $0.key == BenchRun.rawInsertKey }) { return known.value }
    let rate = try rawInsertNow()
    report.add(
      Figure(
        BenchRun.rawInsertKey, "plain SQLite insert", rate, "rows/s",
        basis: "24-byte ascending key, 200-byte blob, WITHOUT ROWID, WAL, FULL, 10,000 a transaction; best of 3"))
    return rate
  }

  /// The same, measured anew: what else the machine does changes from one half minute to the next.
  func rawInsertNow() throws(Failure) -> Double {
    sync()
    return try RawInsert.rate(scratch, rows: sizes.documents)
  }
}
