/// Where one document's write lies in its payload: everything that acceptance and storage ask for before a merge.
/// Ranges are indices of the buffer that was scanned.
package struct DocumentWriteView: Hashable, Sendable {
  /// The UTF-8 of the collection's name.
  package let collection: Range<Int>
  /// The encoded id.
  package let id: Range<Int>
  package let kind: DocumentWrite.Kind
  package let generation: UInt64
  /// The encoded array of operations, its head included.
  package let operations: Range<Int>
  package let operationCount: Int

  package init(
    collection: Range<Int>, id: Range<Int>, kind: DocumentWrite.Kind, generation: UInt64, operations: Range<Int>,
    operationCount: Int
  ) {
    (self.collection, self.id, self.kind, self.generation) = (collection, id, kind, generation)
    (self.operations, self.operationCount) = (operations, operationCount)
  }

  /// The same in a buffer in which the payload begins at `start`, where it began at 0.
  package func moved(to start: Int) -> DocumentWriteView {
    func moved(_ range: Range<Int>) -> Range<Int> { range.lowerBound + start..<range.upperBound + start }
    return DocumentWriteView(
      collection: moved(collection), id: moved(id), kind: kind, generation: generation, operations: moved(operations),
      operationCount: operationCount)
  }
}

/// Where one document's write of a change lies.
package struct PlacedWrite: Sendable {
  /// Of the change.
  package let sequence: UInt64
  package let timestamp: HybridTimestamp
  package let view: DocumentWriteView

  package init(sequence: UInt64, timestamp: HybridTimestamp, view: DocumentWriteView) {
    (self.sequence, self.timestamp, self.view) = (sequence, timestamp, view)
  }
}

/// The documents that a run writes, as bytes and places in them. The sync core passes it from who decoded the run to who
/// stores it, and does not look inside.
package struct RunDocuments: Sendable {
  package let writes: [PlacedWrite]
  /// The buffer in which the writes lie: the run's own bytes, or those of a payload that travelled apart.
  package let buffer: ArraySlice<UInt8>
  /// The payload that travelled ahead of its run, where one did.
  package let apart: ApartPayload?

  package init(writes: [PlacedWrite] = [], buffer: ArraySlice<UInt8> = [], apart: ApartPayload? = nil) {
    (self.writes, self.buffer, self.apart) = (writes, buffer, apart)
  }
}
