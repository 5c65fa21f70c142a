import Replication

/// What a receipt is asked for: a document, or all that counts in a partition.
package struct ReceiptPlace: Sendable, Equatable {
  package let partition: PartitionName
  /// Nil for the whole partition.
  package let document: Document?

  package struct Document: Sendable, Equatable {
    package let collection: Text
    package let id: Value
    package init(_ collection: Text, id: Value) { (self.collection, self.id) = (collection, id) }
  }

  package init(_ partition: PartitionName, _ document: Document? = nil) {
    (self.partition, self.document) = (partition, document)
  }
}

/// A receipt that is told again whenever it changes, but for ages. `next` blocks for at most `timeoutMilliseconds`, answering nil
/// when nothing happened until then; the first is there at once.
package protocol ReceiptSubscription: Sendable {
  func next(timeoutMilliseconds: Int) throws(NodeError) -> ReceiptReport?
  func cancel()
}

/// How safe certain changes are: those that a document stands on, or all that counts in a partition.
package struct ReceiptReport: Sendable, Equatable {
  package var partition = ""
  /// Nil for a partition.
  package var collection: String?
  package var id: Value?
  /// The last change of each replica that is asked about.
  package var changes: [Change] = []
  /// The changes are those of the whole partition although a document was asked for: which change ended it is not kept.
  package var isOfWholePartition = false
  package var words: [Word] = []

  package struct Change: Sendable, Equatable {
    package let replica: String
    package let sequence: UInt64
    package init(replica: String, sequence: UInt64) { (self.replica, self.sequence) = (replica, sequence) }
  }

  /// What a device says, under its signature.
  package struct Word: Sendable, Equatable {
    package var device = ""
    package var label = ""
    package var user = ""
    package var role = ""
    package var isSelf = false
    /// It has said that the backend has them, not that it has them itself.
    package var isOfBackend = false
    /// Changes of those asked about that it does not have, as it last said.
    package var lacking: UInt64 = 0
    /// Only a member's word counts.
    package var standing = Receipt.Standing.member
    package var ageMilliseconds: Int64 = 0
    package init() {}

    package var counts: Bool { lacking == 0 && standing == .member }
  }

  package init() {}

  /// What of it is news to who has seen another: an age is none.
  package var ageless: ReceiptReport {
    var report = self
    for index in report.words.indices { report.words[index].ageMilliseconds = 0 }
    return report
  }

  /// The device has said that it holds all of it.
  func isHeld(by device: String) -> Bool {
    words.contains { $0.device == device && !$0.isOfBackend && $0.lacking == 0 }
  }

  private func counted(_ isMeant: (Word) -> Bool) -> [Word] { words.filter { $0.counts && isMeant($0) } }

  /// Other devices that hold all of it.
  package var holders: [Word] { counted { !$0.isOfBackend && !$0.isSelf } }
  /// Of these, members whose role is `relay`.
  package var relays: [Word] { holders.filter { $0.role == ReceiptReport.relayRole } }
  /// Who has read all of it in the backend.
  package var forwarders: [Word] { counted(\.isOfBackend) }

  package static let relayRole = "relay"
  package static let photos = "not yet built"
}
