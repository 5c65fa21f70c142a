import Replication
import Storage

/// Which documents a commit changed, for whoever watches.
struct DocumentChanges: Sendable {
  struct Place: Hashable, Sendable {
    let partition: PartitionNumber
    let collection: CollectionNumber
  }

  private(set) var keys: [Place: Set<[UInt8]>] = [:]
  var isEmpty: Bool { keys.isEmpty }

  mutating func note(_ partition: PartitionNumber, _ collection: CollectionNumber, key: [UInt8]) {
    keys[Place(partition: partition, collection: collection), default: []].insert(key)
  }

  mutating func note(_ report: FoldReport) {
    for index in 0..<report.count {
      let document = report[index]
      note(document.partition, document.collection, key: document.key)
    }
  }
}
