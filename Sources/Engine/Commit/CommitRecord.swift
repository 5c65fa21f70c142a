import Replication

/// What one commit changed. Nobody is told of a commit in another way.
package struct CommitRecord: Sendable {
  package struct Moved: Sendable {
    package let partition: PartitionID
    package let name: PartitionName
    /// What counted of it after the commit before this one that concerned it, and what counts now.
    package let before: VersionVector
    package let accepted: VersionVector
  }

  /// Partitions whose log or documents changed, with what counts of them now.
  package let partitions: [Moved]
  package let documents: [ChangedDocuments]
  /// Places of the runs that it put into the log, in the order of arrival; nil where it put in none.
  package let arrivals: ClosedRange<Int64>?

  package init(
    partitions: [Moved] = [], documents: [ChangedDocuments] = [], arrivals: ClosedRange<Int64>? = nil
  ) {
    (self.partitions, self.documents, self.arrivals) = (partitions, documents, arrivals)
  }

  var isEmpty: Bool { partitions.isEmpty && documents.allSatisfy { $0.count == 0 } }
}

/// Who hears of commits, on the engine's thread, after they are durable and before anyone else.
package protocol CommitListener: AnyObject {
  func committed(_ record: CommitRecord)
}
