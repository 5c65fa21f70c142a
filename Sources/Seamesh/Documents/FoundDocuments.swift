import Replication

/// What a query found.
package struct FoundDocuments: Sendable, Equatable {
  package let documents: [StoredDocument]
  /// Ids of those that may belong to the result and do not read on this device. With a limit, those that were met.
  package let damaged: [Value]
  /// All of them are as they were at one moment.
  package let isOneState: Bool
  /// Whoever still writes the documents out holds their memory with it.
  package let share: ResultShare?

  package init(
    _ documents: [StoredDocument], damaged: [Value] = [], isOneState: Bool = true, share: ResultShare? = nil
  ) {
    (self.documents, self.damaged, self.isOneState, self.share) = (documents, damaged, isOneState, share)
  }

  package static func == (a: FoundDocuments, b: FoundDocuments) -> Bool {
    a.documents == b.documents && a.damaged == b.damaged && a.isOneState == b.isOneState
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
