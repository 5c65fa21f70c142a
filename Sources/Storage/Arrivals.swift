import Engine
import Replication

/// When what is in the log came here, by this node's clock.
extension StoreReading where Self: ~Copyable {
  /// What had come here at a moment. Looks at every run of the log.
  package func arrived(before moment: Int64) throws(StoreError) -> ArrivedBefore {
    // First: whatever comes while this reads counts as later, whether it is met or not.
    let end = try logEnd().arrival
    var changes: [PartitionID: [ReplicaID: UInt64]] = [:]
    var branched: [PartitionID: [ReplicaID: Set<Int64>]] = [:]
    for chain in try laterChains(moment) {
      changes[chain.partition, default: [:]][chain.replica] = chain.last
      guard chain.isForked else { continue }
      branched[chain.partition, default: [:]][chain.replica] = try laterRuns(of: chain.number, moment)
    }
    let statements = try statements().filter { ($0.arrived ?? 0) <= moment }.map(\.id)
    return ArrivedBefore(changes: changes, branched: branched, end: end, statements: Set(statements))
  }

  /// Of every chain of which something came after a moment: the number of the change before the first that did.
  package func changes(
    before moment: Int64
  ) throws(StoreError) -> [(partition: PartitionID, replica: ReplicaID, last: UInt64)] {
    try laterChains(moment).map { ($0.partition, $0.replica, $0.last) }
  }

  private func laterChains(_ moment: Int64) throws(StoreError) -> [LaterChain] {
    let rows = try database.statement(
      """
      SELECT partitions.hash, chains.replica, min(runs.first), runs.chain, chains.hold_reason IS NOT NULL FROM runs
      JOIN chains ON chains.id=runs.chain JOIN partitions ON partitions.id=chains.partition
      WHERE runs.arrived>?1 GROUP BY runs.chain
      """)
    defer { rows.reset() }
    try rows.bind(1, moment)
    var found: [LaterChain] = []
    while try rows.step() {
      guard let partition = Digest(rows.bytes(0)), let replica = ReplicaID(rows.bytes(1)) else {
        throw .damaged("a chain's ids")
      }
      found.append(
        LaterChain(
          partition: PartitionID(partition), replica: replica, last: UInt64(clamping: rows.integer(2) - 1),
          number: rows.integer(3), isForked: rows.integer(4) == 1))
    }
    return found
  }

  /// Arrivals of a chain's runs that came after a moment.
  private func laterRuns(of chain: Int64, _ moment: Int64) throws(StoreError) -> Set<Int64> {
    let rows = try database.statement("SELECT arrival FROM runs WHERE chain=?1 AND arrived>?2")
    defer { rows.reset() }
    try rows.bind(1, chain)
    try rows.bind(2, moment)
    var found: Set<Int64> = []
    while try rows.step() { found.insert(rows.integer(0)) }
    return found
  }

  /// By chain of which runs came behind an arrival: the number before the lowest of their changes. Looks at these runs alone.
  func lowestEnds(behind arrival: Int64) throws(StoreError) -> [PartitionID: [ReplicaID: UInt64]] {
    // The sign keeps SQLite from walking the chains by their index.
    let rows = try database.statement(
      """
      SELECT partitions.hash, chains.replica, min(runs.first) FROM runs
      JOIN chains ON chains.id=+runs.chain JOIN partitions ON partitions.id=chains.partition
      WHERE runs.arrival>?1 GROUP BY +runs.chain
      """)
    defer { rows.reset() }
    try rows.bind(1, arrival)
    var found: [PartitionID: [ReplicaID: UInt64]] = [:]
    while try rows.step() {
      guard let partition = Digest(rows.bytes(0)), let replica = ReplicaID(rows.bytes(1)) else {
        throw .damaged("a chain's ids")
      }
      found[PartitionID(partition), default: [:]][replica] = UInt64(clamping: rows.integer(2) - 1)
    }
    return found
  }
}

/// A chain of which something came after a moment.
private struct LaterChain {
  let partition: PartitionID
  let replica: ReplicaID
  /// Before the first change that did.
  let last: UInt64
  let number: Int64
  let isForked: Bool
}
