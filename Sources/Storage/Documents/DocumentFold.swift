import Replication
import Wire

/// One newly accepted change, as far as documents are concerned.
package struct AcceptedChange: Sendable {
  package let partition: PartitionNumber
  package let context: WriteContext
  /// The buffer in which the views' ranges lie.
  package let payload: ArraySlice<UInt8>
  package let documents: [DocumentWriteView]

  package init(
    partition: PartitionNumber, context: WriteContext, payload: ArraySlice<UInt8>, documents: [DocumentWriteView]
  ) {
    (self.partition, self.context, self.payload, self.documents) = (partition, context, payload, documents)
  }
}

/// Carries accepted changes from the log into documents.
///
/// Sorted by place, so that a page of the database that a large batch touches often is touched once: with ids in random
/// order, batches of 50,000 are one and a half to two times as fast as batches of 10,000.
package enum DocumentFold {
  /// Documents of a batch that keep memory within some 30 MB; larger ones work and gain little more.
  package static let documentLimit = 32_768

  /// Applies changes, each in order of delivery and covered by no accepted change's context (rule M12): others need
  /// ``rebuild(_:of:in:accepted:context:)``. One whose row does not read stays as it is, and the report names it: it is to
  /// be made anew from the log, once that has these changes.
  package static func fold(
    _ accepted: AcceptedBatch, in transaction: borrowing Transaction
  ) throws(StoreError) -> FoldReport {
    let batch = try FoldBatch(accepted, in: transaction)
    var report = FoldReport(keys: batch.keys, capacity: batch.items.count)
    var creation = try DocumentCreation(transaction)
    var start = 0
    while start < batch.items.count {
      let end = batch.endOfDocument(from: start)
      let (scope, key) = (batch.scopes[Int(batch.items[start].scope)], batch.items[start].keyRange)
      if end == start + 1, try create(accepted, batch, batch.items[start], &creation) {
        report.append(FoldReport.Outcome(wasAlive: false, isAlive: true), scope: scope, key: key)
      } else {
        do throws(StoreError) {
          report.append(try merge(accepted, batch, start..<end, in: transaction), scope: scope, key: key)
        } catch {
          guard case .damagedDocument = error else { throw error }
          report.noteDamaged(scope: scope, key: key)
        }
      }
      start = end
    }
    creation.count(in: transaction)
    return report
  }

  private static func merge(
    _ accepted: AcceptedBatch, _ batch: FoldBatch, _ range: Range<Int>, in transaction: borrowing Transaction
  ) throws(StoreError) -> FoldReport.Outcome {
    let scope = batch.scopes[Int(batch.items[range.lowerBound].scope)]
    let key = Array(batch.keys[batch.items[range.lowerBound].keyRange])
    let row = try transaction.document(scope.partition, scope.collection, key: key)
    var state = try row.map(DocumentState.init(stored:)) ?? DocumentState()
    for item in batch.items[range] {
      state.apply(try accepted.write(Int(item.write), of: accepted.sources[Int(item.source)]))
    }
    try transaction.store(state, row, scope.partition, scope.collection, key: key)
    return FoldReport.Outcome(wasAlive: row?.isAlive ?? false, isAlive: state.isAlive)
  }

  /// The way of nearly all documents of a first sync: their state is put together from bytes, and nothing is looked up.
  /// False where the document is there already, or the write does not create it, or may name list elements by dots that
  /// other dots stand for here.
  private static func create(
    _ accepted: AcceptedBatch, _ batch: FoldBatch, _ item: FoldBatch.Item, _ creation: inout DocumentCreation
  ) throws(StoreError) -> Bool {
    let write = accepted.writes[Int(item.write)]
    // Field by field: a copy of the source would count its references up and down, for each document.
    let source = Int(item.source)
    guard write.view.kind == .create, accepted.sources[source].sight.kin.isEmpty else { return false }
    let operations = write.view.operations
    let reference = accepted.sources[source].arrival.flatMap { run in
      operations.count < RunReference.leastLength
        ? nil
        : RunReference(
          run: run, start: Int64(operations.lowerBound - accepted.sources[source].buffer.startIndex),
          length: Int64(operations.count))
    }
    return try creation.create(
      in: batch.scopes[Int(item.scope)], key: batch.keys, item.keyRange, write,
      by: accepted.sources[source].replica, operations: accepted.sources[source].buffer[operations],
      lyingAt: reference)
  }
}

/// The documents that a fold changed, by partition, collection and key.
package struct FoldReport: Sendable {
  struct Outcome {
    let wasAlive: Bool
    let isAlive: Bool
  }

  package struct ChangedDocument: Hashable, Sendable {
    package let partition: PartitionNumber
    package let collection: CollectionNumber
    /// Canonical bytes of the id.
    package let key: [UInt8]
    package let wasAlive: Bool
    package let isAlive: Bool
  }

  private struct Item {
    let scope: Int
    let key: Range<Int>
    let outcome: Outcome
  }

  // Keys stay in one buffer: in a first sync nobody watches, and an array for each would be the dearest part.
  let keys: [UInt8]
  private var items: [Item] = []
  /// Those whose rows do not read.
  private(set) var damaged: [(scope: FoldBatch.Scope, key: Range<Int>)] = []
  private(set) var scopes: [FoldBatch.Scope] = []

  init(keys: [UInt8], capacity: Int) {
    self.keys = keys
    items.reserveCapacity(capacity)
  }

  mutating func append(_ outcome: Outcome, scope: FoldBatch.Scope, key: Range<Int>) {
    // Documents come sorted by scope.
    if scopes.last != scope { scopes.append(scope) }
    items.append(Item(scope: scopes.count - 1, key: key, outcome: outcome))
  }

  mutating func noteDamaged(scope: FoldBatch.Scope, key: Range<Int>) { damaged.append((scope, key)) }

  /// By index of their scope.
  var places: [(place: Int, key: Range<Int>)] { items.map { ($0.scope, $0.key) } }

  package var count: Int { items.count }

  package subscript(index: Int) -> ChangedDocument {
    let item = items[index]
    return ChangedDocument(
      partition: scopes[item.scope].partition, collection: scopes[item.scope].collection, key: Array(keys[item.key]),
      wasAlive: item.outcome.wasAlive, isAlive: item.outcome.isAlive)
  }

  /// Living documents more (or, negative, fewer) than before.
  package var aliveDelta: Int {
    items.reduce(0) { $0 + ($1.outcome.isAlive ? 1 : 0) - ($1.outcome.wasAlive ? 1 : 0) }
  }
}

extension AcceptedChange {
  /// One of the change's writes, decoded for a merge.
  func write(_ index: Int) throws(StoreError) -> AcceptedWrite {
    try AcceptedWrite(context, documents[index], in: payload)
  }
}

extension DocumentState {
  package init(stored row: DocumentRow) throws(StoreError) {
    guard row.isIntact else {
      throw .damagedDocument("its state is not as it was written (row \(row.row))")
    }
    do throws(CBORError) {
      let stored = try DocumentStateCodec.decode(row.state[...])
      self.init(generation: stored.generation, groups: stored.groups)
    } catch {
      throw .damagedDocument("its state does not read (row \(row.row): \(error))")
    }
    guard isAlive == row.isAlive else {
      throw .damagedDocument("its state is not what its row says (row \(row.row))")
    }
  }

  package var storedBytes: [UInt8] { DocumentStateCodec.encode(generation: generation, groups: groups) }
}

extension Transaction {
  /// Writes a merged state over `row`, or as a new document where there was none.
  func store(
    _ state: DocumentState, _ row: DocumentRow?, _ partition: PartitionNumber, _ collection: CollectionNumber,
    key: [UInt8]
  ) throws(StoreError) {
    if let row {
      try replace(row, in: partition, collection, isAlive: state.isAlive, state: state.storedBytes)
    } else {
      _ = try insertNew(partition, collection, key: key, isAlive: state.isAlive, state: state.storedBytes)
    }
  }
}
