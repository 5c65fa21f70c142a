import Replication

/// Where the operations of a document lie that one change has made: in the body of its run, and nowhere else.
struct RunReference: Hashable {
  /// Arrival of the run.
  let run: Int64
  let start: Int64
  let length: Int64

  /// Shorter ones cost less beside the document than the look-up of a run.
  static let leastLength = 64

  init(run: Int64, start: Int64, length: Int64) { (self.run, self.start, self.length) = (run, start, length) }

  /// Nil where the row holds its whole state.
  init?(_ rows: PreparedStatement, from column: Int32) {
    guard let run = rows.optionalInteger(column) else { return nil }
    self.init(run: run, start: rows.integer(column + 1), length: rows.integer(column + 2))
  }
}

/// Reads operations out of runs, and keeps the body of one: documents that were made one after another lie in one run. It is
/// kept from the second document on that asks for it, since those of one page may as well lie in as many runs.
final class RunBodies {
  private var kept: (run: Int64, body: [UInt8])?
  private var lastRead: Int64?

  func forget() { (kept, lastRead) = (nil, nil) }

  /// Calls `use` with the operations; with nothing where no run has them.
  func withOperations<Result>(
    _ reference: RunReference, in database: Database,
    _ use: (UnsafeRawBufferPointer) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    if let kept, kept.run == reference.run {
      return try kept.body.span.bytes.withUnsafeBytes { (body) throws(StoreError) in
        try use(reference.operations(in: body))
      }
    }
    let rows = try database.statement("SELECT body FROM runs WHERE arrival=?1")
    defer { rows.reset() }
    try rows.bind(1, reference.run)
    guard try rows.step() else { return try use(UnsafeRawBufferPointer(start: nil, count: 0)) }
    let body = rows.borrowedBytes(0)
    if lastRead == reference.run { kept = (reference.run, Array(body)) }
    lastRead = reference.run
    return try use(reference.operations(in: body))
  }
}

extension RunReference {
  /// Nothing where the body is shorter than that.
  fileprivate func operations(in body: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard start >= 0, length >= 0, start <= Int64(body.count), length <= Int64(body.count) - start else {
      return UnsafeRawBufferPointer(start: nil, count: 0)
    }
    return UnsafeRawBufferPointer(rebasing: body[Int(start)..<Int(start + length)])
  }
}
