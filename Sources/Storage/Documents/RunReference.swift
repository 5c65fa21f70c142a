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

/// The body that was read last: documents that were made one after another lie in one run.
final class RunBodies {
  private var last: (run: Int64, body: [UInt8])?

  func forget() { last = nil }

  /// Calls `body` with the operations; with nothing where no run has them.
  func withOperations<Result>(
    _ reference: RunReference, in database: Database,
    _ use: (UnsafeRawBufferPointer) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    if last?.run != reference.run {
      last = nil
      let rows = try database.statement("SELECT body FROM runs WHERE arrival=?1")
      defer { rows.reset() }
      try rows.bind(1, reference.run)
      guard try rows.step() else { return try use(UnsafeRawBufferPointer(start: nil, count: 0)) }
      last = (reference.run, rows.bytes(0))
    }
    guard let body = last?.body, reference.start >= 0, reference.length >= 0,
      reference.start <= Int64(body.count), reference.length <= Int64(body.count) - reference.start
    else { return try use(UnsafeRawBufferPointer(start: nil, count: 0)) }
    let range = Int(reference.start)..<Int(reference.start + reference.length)
    return try body.span.bytes.withUnsafeBytes { (bytes) throws(StoreError) in
      try use(UnsafeRawBufferPointer(rebasing: bytes[range]))
    }
  }
}
