import Replication

/// What a query found.
package struct FoundDocuments: Sendable, Equatable {
  package let documents: [StoredDocument]
  /// Ids of those that may belong to the result and do not read on this device. With a limit, those that were met.
  package let damaged: [Value]

  package init(_ documents: [StoredDocument], damaged: [Value] = []) {
    (self.documents, self.damaged) = (documents, damaged)
  }
}

extension FoundDocuments: RandomAccessCollection {
  package var startIndex: Int { documents.startIndex }
  package var endIndex: Int { documents.endIndex }
  package subscript(index: Int) -> StoredDocument { documents[index] }
}

/// A document that does not read on this device.
package struct DamagedStatus: Sendable, Equatable {
  package let partition: String
  package let collection: String
  package let id: Value
  package let reason: String

  package init(partition: String, collection: String, id: Value, reason: String) {
    (self.partition, self.collection, self.id, self.reason) = (partition, collection, id, reason)
  }
}
