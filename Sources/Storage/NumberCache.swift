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
  /// Those of ``partitions`` of which the store has the name.
  private var named: Set<PartitionID> = []
  private(set) var chains: [ChainKey: ChainNumber] = [:]
  private(set) var collections: [Text: CollectionNumber] = [:]
  private(set) var collectionNames: [CollectionNumber: Text] = [:]

  /// Full contexts that were read lately, by arrival of their runs: others refer to them by turns.
  private var contexts: [(arrival: Int64, context: VersionVector)] = []
  static let contextLimit = 8

  let bodies = RunBodies()

  private let remembersPartitions: Bool

  struct ChainKey: Hashable {
    let partition: PartitionNumber
    let replica: ReplicaID
  }

  init(remembersPartitions: Bool) { self.remembersPartitions = remembersPartitions }

  func remember(_ id: PartitionID, _ number: PartitionNumber) {
    guard remembersPartitions else { return }
    if partitions.count >= NumberCache.limit {
      partitions.removeAll(keepingCapacity: true)
      named.removeAll(keepingCapacity: true)
    }
    partitions[id] = number
  }

  func isNamed(_ id: PartitionID) -> Bool { named.contains(id) }
  func noteNamed(_ id: PartitionID) { if partitions[id] != nil { named.insert(id) } }

  func forget(_ id: PartitionID) {
    partitions[id] = nil
    named.remove(id)
  }

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

  func context(at arrival: Int64) -> VersionVector? { contexts.last { $0.arrival == arrival }?.context }

  func remember(_ context: VersionVector, at arrival: Int64) {
    if contexts.count >= NumberCache.contextLimit { contexts.removeFirst() }
    contexts.append((arrival, context))
  }

  func removeAll() {
    bodies.forget()
    contexts.removeAll()
    partitions.removeAll()
    named.removeAll()
    chains.removeAll()
    collections.removeAll()
    collectionNames.removeAll()
  }
}

/// Per partition the full contexts that differences of its next runs refer to, whoever writes those: where a thousand replicas
/// have seen one another, a context of one differs from that of another by the few that wrote in between.
final class ContextCache {
  struct Base {
    let arrival: Int64
    let context: VersionVector
    var uses: Int
  }

  /// Partitions; then all are dropped, and each one's next run carries its full context once.
  static let limit = 4_096
  /// Of one partition: replicas that have seen little of each other may write by turns.
  static let basesOfOne = 4

  private var bases: [Int64: [Base]] = [:]

  subscript(partition: PartitionNumber) -> [Base] { bases[partition.rawValue] ?? [] }

  func add(_ base: Base, to partition: PartitionNumber) {
    if bases.count >= ContextCache.limit, bases[partition.rawValue] == nil { bases.removeAll(keepingCapacity: true) }
    bases[partition.rawValue, default: []].insert(base, at: 0)
    if bases[partition.rawValue, default: []].count > ContextCache.basesOfOne {
      bases[partition.rawValue]?.removeLast()
    }
  }

  func countUse(of arrival: Int64, in partition: PartitionNumber) {
    guard let index = bases[partition.rawValue]?.firstIndex(where: { $0.arrival == arrival }) else { return }
    bases[partition.rawValue]?[index].uses += 1
    if index > 0 { bases[partition.rawValue]?.swapAt(0, index) }
  }

  func removeAll() { bases.removeAll() }
}
