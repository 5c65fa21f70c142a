import Storage

/// What the store alone makes of new documents: the log, the fold and the marks, without network, hashes and signatures.
struct StorageBench {
  let run: BenchRun

  func measure() throws(Failure) {
    let raw = try run.rawInsert()
    for order in [StorageBenchmark.Order.ascending, .random] {
      let rate: Double
      do {
        rate = try StorageBenchmark.ownInserts(
          run.scratch, order: order, rows: run.sizes.documents)
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
