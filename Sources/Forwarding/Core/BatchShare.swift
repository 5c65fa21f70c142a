/// Which share of the limits of a batch is used, as a shift.
struct BatchShare: Equatable, Sendable {
  /// Grows where a backend rejects a batch, to find the row.
  private var narrowing = 0
  /// Grows where a batch takes a backend longer than it grants.
  private var slowing = 0
  /// Batches that it took since then.
  private var taken = 0

  /// Beyond that every batch has one row anyway.
  private static let limit = 40
  /// Each try of a larger one may cost the backend all the time that it grants.
  private static let takenBeforeGrowing = 8

  var isNarrowed: Bool { narrowing > 0 }
  var shift: Int { min(narrowing + slowing, BatchShare.limit) }

  func of(_ count: Int) -> Int { max(1, count >> shift) }

  mutating func narrow() { narrowing = min(narrowing + 4, BatchShare.limit) }

  /// So that the next batch is half as large as this one at the most. False where that has but one row.
  mutating func slow(below batch: LedgerBatch, bytes: Int, _ limits: ForwarderLimits) -> Bool {
    let size = BatchSize(batch)
    guard max(batch.itemCount, size.marks) > 1, shift < BatchShare.limit else { return false }
    taken = 0
    repeat {
      slowing += 1
    } while shift < BatchShare.limit
      && !size.isHalved((of(bytes), of(limits.batchChanges), of(limits.batchMarks)))
    return true
  }

  mutating func take() {
    // Slowly back to whole batches: rejected rows often come together.
    narrowing = max(0, narrowing - 2)
    taken += 1
    guard taken >= BatchShare.takenBeforeGrowing else { return }
    (slowing, taken) = (max(0, slowing - 1), 0)
  }
}

/// What is in a batch, of each kind that has a limit.
private struct BatchSize {
  let bytes: Int
  let rows: Int
  let marks: Int

  init(_ batch: LedgerBatch) {
    let documents = batch.documents.reduce(0) { $0 + $1.byteCount }
    let statements = batch.statements.reduce(0) { $0 + $1.encoded.count }
    bytes = batch.runs.reduce(statements + documents) { $0 + $1.body.count }
    rows = max(batch.documents.count, batch.runs.reduce(batch.statements.count) { $0 + $1.changes.count })
    marks = batch.marks.count
  }

  /// One of the limits then comes to half of what is in it.
  func isHalved(_ room: (bytes: Int, rows: Int, marks: Int)) -> Bool {
    room.bytes <= bytes / 2 || room.rows <= rows / 2 || room.marks <= marks / 2
  }
}
