import Storage
import Wire

/// What the store alone makes of new documents: the log, the fold and the marks, without network, hashes and signatures.
struct StorageBench {
  let run: BenchRun

  func measure() throws(Failure) {
    let raw = try run.rawInsert()
    for order in [StorageBenchmark.Order.ascending, .random] {
      let inserts: StorageBenchmark.Inserts
      do {
        inserts = try StorageBenchmark.ownInserts(
          run.scratch, order: order, rows: run.sizes.documents, rounds: run.sizes.storageRounds)
      } catch {
        throw Failure(.failed, words(of: error))
      }
      run.report.add(
        Figure(
          "store-\(order)", "store alone, \(order) ids", inserts.rate / raw, "of plain insert",
          basis:
            "\(Figure.text(inserts.rate)) new documents/s into log and documents, durable; best of \(run.sizes.storageRounds)"
        ),
        Figure(
          "store-bytes-\(order)", "store on disk, \(order) ids", inserts.bytesPerDocument, "B/document",
          basis: "\(Figure.text(Double(run.sizes.documents))) documents of one change each, with that"))
    }
  }
}
