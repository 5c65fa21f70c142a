import Replication

/// What one commit changed. Who follows a node's commits is told of them in no other way.
package struct CommitRecord: Sendable {
  package struct Moved: Sendable {
    package let partition: PartitionID
    package let name: PartitionName
    /// What counted of the partition when a record last named it, or at the start of the node.
    package let before: VersionVector
    /// What counts of it now.
    package let accepted: VersionVector
  }

  /// Partitions whose log or documents changed, with what counts of them now.
  package let partitions: [Moved]
  package let documents: [ChangedDocuments]
  /// Places of the runs that it put into the log, in the order of arrival; nil where it put in none.
  package let arrivals: ClosedRange<Int64>?
  /// It put in signed facts about the fleet or a room.
  package let hasStatements: Bool
  /// Partitions of which it put in what a device says that it holds.
  package let words: Set<PartitionID>

  package init(
    partitions: [Moved] = [], documents: [ChangedDocuments] = [], arrivals: ClosedRange<Int64>? = nil,
    hasStatements: Bool = false, words: Set<PartitionID> = []
  ) {
    (self.partitions, self.documents, self.arrivals) = (partitions, documents, arrivals)
    (self.hasStatements, self.words) = (hasStatements, words)
  }

  /// Nothing of logs, documents or statements: words at the most.
  package var isOfWordsAlone: Bool { partitions.isEmpty && !hasStatements && documents.allSatisfy { $0.count == 0 } }
  var isEmpty: Bool { isOfWordsAlone && words.isEmpty }
}

/// Hears of each commit on the engine's thread: once it is durable, before the core is told and before anyone is
/// answered.
package protocol CommitListener: AnyObject {
  func committed(_ record: CommitRecord)
}
