import Replication

/// Short numbers by what they stand for, so that the hot path asks SQLite once per name. Those of chains and collections
/// never change once committed; the writer drops all of them when a transaction rolls back.
///
/// A partition that is taken away and met again gets another number. Its writer forgets the old one; a reader is not told,
/// and so remembers none.
package final class NumberCache {
  /// Entries of one kind; then that kind is dropped and fills anew. More than a node's open partitions.
  static let limit = 65_536

  private(set) var partitions: [PartitionID: PartitionNumber] = [:]
  private(set) var chains: [ChainKey: ChainNumber] = [:]
  private(set) var collections: [Text: CollectionNumber] = [:]
  private(set) var collectionNames: [CollectionNumber: Text] = [:]

  private let remembersPartitions: Bool

  struct ChainKey: Hashable {
    let partition: PartitionNumber
    let replica: ReplicaID
  }

  init(remembersPartitions: Bool) { self.remembersPartitions = remembersPartitions }

  func remember(_ id: PartitionID, _ number: PartitionNumber) {
    guard remembersPartitions else { return }
    if partitions.count >= NumberCache.limit { partitions.removeAll(keepingCapacity: true) }
    partitions[id] = number
  }

  func forget(_ id: PartitionID) { partitions[id] = nil }

  func remember(_ key: ChainKey, _ number: ChainNumber) {
    if chains.count >= NumberCache.limit { chains.removeAll(keepingCapacity: true) }
    chains[key] = number
  }

  func remember(_ name: Text, _ number: CollectionNumber) {
    if collections.count >= NumberCache.limit {
      collections.removeAll(keepingCapacity: true)
      collectionNames.removeAll(keepingCapacity: true)
    }
    collections[name] = number
    collectionNames[number] = name
  }

  func removeAll() {
    partitions.removeAll()
    chains.removeAll()
    collections.removeAll()
    collectionNames.removeAll()
  }
}

/// Per chain the full context that differences of its next runs refer to.
final class ContextCache {
  struct Base {
    let arrival: Int64
    let context: VersionVector
    var uses: Int
  }

  /// Chains; then all are dropped, and each one's next run carries its full context once.
  static let limit = 4_096

  private var bases: [Int64: Base] = [:]

  subscript(chain: ChainNumber) -> Base? { bases[chain.rawValue] }

  func set(_ base: Base, for chain: ChainNumber) {
    if bases.count >= ContextCache.limit, bases[chain.rawValue] == nil { bases.removeAll(keepingCapacity: true) }
    bases[chain.rawValue] = base
  }

  func countUse(of chain: ChainNumber) { bases[chain.rawValue]?.uses += 1 }
  func removeAll() { bases.removeAll() }
}
