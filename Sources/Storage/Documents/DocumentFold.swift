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

  /// Applies `changes`, each in order of delivery and covered by no accepted change's context (rule M12): others need
  /// ``rebuild(_:of:in:accepted:context:)``.
  package static func fold(
    _ changes: [AcceptedChange], in transaction: borrowing Transaction
  ) throws(StoreError) -> FoldReport {
    let batch = try FoldBatch(changes, in: transaction)
    var report = FoldReport(keys: batch.keys, capacity: batch.items.count)
    var start = 0
    while start < batch.items.count {
      let end = batch.endOfDocument(from: start)
      let outcome = try apply(changes, batch, start..<end, in: transaction)
      report.append(outcome, scope: batch.scopes[Int(batch.items[start].scope)], key: batch.items[start].keyRange)
      start = end
    }
    return report
  }

  private static func apply(
    _ changes: [AcceptedChange], _ batch: FoldBatch, _ range: Range<Int>, in transaction: borrowing Transaction
  ) throws(StoreError) -> FoldReport.Outcome {
    if range.count == 1, let outcome = try create(changes, batch, batch.items[range.lowerBound], in: transaction) {
      return outcome
    }
    let scope = batch.scopes[Int(batch.items[range.lowerBound].scope)]
    let key = Array(batch.keys[batch.items[range.lowerBound].keyRange])
    let row = try transaction.document(scope.partition, scope.collection, key: key)
    var state = try row.map(DocumentState.init(stored:)) ?? DocumentState()
    for item in batch.items[range] {
      let change = changes[Int(item.change)]
      state.apply(try change.write(Int(item.document)))
    }
    try transaction.store(state, row, scope.partition, scope.collection, key: key)
    return FoldReport.Outcome(wasAlive: row?.isAlive ?? false, isAlive: state.isAlive)
  }

  /// The way of nearly all documents of a first sync: their state is put together from bytes, and nothing is looked up.
  /// Nil where the document is there already, or the write does not create it.
  private static func create(
    _ changes: [AcceptedChange], _ batch: FoldBatch, _ item: FoldBatch.Item, in transaction: borrowing Transaction
  ) throws(StoreError) -> FoldReport.Outcome? {
    // Field by field: a copy of the whole change would count four references up and down, for each document.
    let index = Int(item.change)
    let view = changes[index].documents[Int(item.document)]
    guard view.kind == .create else { return nil }
    let scope = batch.scopes[Int(item.scope)]
    let state = DocumentStateCodec.created(
      dot: changes[index].context.dot, timestamp: changes[index].context.timestamp, generation: view.generation,
      operations: changes[index].payload[view.operations])
    let isNew = try batch.keys.span.bytes.withUnsafeBytes { (keys) throws(StoreError) in
      try state.span.bytes.withUnsafeBytes { (state) throws(StoreError) in
        try transaction.insertNew(
          scope.partition, scope.collection, key: UnsafeRawBufferPointer(rebasing: keys[item.keyRange]), state: state)
      }
    }
    return isNew ? FoldReport.Outcome(wasAlive: false, isAlive: true) : nil
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
    let partition: PartitionNumber
    let collection: CollectionNumber
    let key: Range<Int>
    let outcome: Outcome
  }

  // Keys stay in one buffer: in a first sync nobody watches, and an array for each would be the dearest part.
  private let keys: [UInt8]
  private var items: [Item] = []

  init(keys: [UInt8], capacity: Int) {
    self.keys = keys
    items.reserveCapacity(capacity)
  }

  mutating func append(_ outcome: Outcome, scope: FoldBatch.Scope, key: Range<Int>) {
    items.append(Item(partition: scope.partition, collection: scope.collection, key: key, outcome: outcome))
  }

  package var count: Int { items.count }

  package subscript(index: Int) -> ChangedDocument {
    let item = items[index]
    return ChangedDocument(
      partition: item.partition, collection: item.collection, key: Array(keys[item.key]),
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
    let view = documents[index]
    do throws(PayloadError) {
      let operations = try PayloadDecoder.decodeOperations(payload[view.operations], dot: context.dot)
      return AcceptedWrite(
        context,
        DocumentWrite(
          collection: view.collection(in: payload), id: try view.id(in: payload), kind: view.kind,
          generation: view.generation, operations: operations))
    } catch {
      throw .damaged("payload of change \(context.dot.sequence): \(error)")
    }
  }
}

extension DocumentState {
  package init(stored row: DocumentRow) throws(StoreError) {
    do throws(CBORError) {
      let stored = try DocumentStateCodec.decode(row.state[...])
      self.init(generation: stored.generation, groups: stored.groups)
    } catch {
      throw .damaged("state of document \(row.row): \(error)")
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
      try replace(row, in: partition, isAlive: state.isAlive, state: state.storedBytes)
    } else {
      _ = try insertNew(partition, collection, key: key, isAlive: state.isAlive, state: state.storedBytes)
    }
  }
}
