import Replication

/// When what is in the log came here, by this node's clock.
extension StoreReading where Self: ~Copyable {
  /// Of every chain of which something came after a moment: the number of the change before the first that did.
  package func changes(
    before moment: Int64
  ) throws(StoreError) -> [(partition: PartitionID, replica: ReplicaID, last: UInt64)] {
    let rows = try database.statement(
      """
      SELECT partitions.hash, chains.replica, min(runs.first) FROM runs
      JOIN chains ON chains.id=runs.chain JOIN partitions ON partitions.id=chains.partition
      WHERE runs.arrived>?1 GROUP BY runs.chain
      """)
    defer { rows.reset() }
    try rows.bind(1, moment)
    var found: [(partition: PartitionID, replica: ReplicaID, last: UInt64)] = []
    while try rows.step() {
      guard let partition = Digest(rows.bytes(0)), let replica = ReplicaID(rows.bytes(1)) else {
        throw .damaged("a chain's ids")
      }
      found.append((PartitionID(partition), replica, UInt64(clamping: rows.integer(2) - 1)))
    }
    return found
  }
}
