import Replication

/// The writes that ``Store/write(_:_:)`` makes one by one and commits together. Not to be kept beyond its transaction.
package struct Transaction: StoreReading {
  let store: Store
  package var database: Database { store.database }
  package var numbers: NumberCache { store.numbers }

  init(store: Store) { self.store = store }

  func count(_ counters: Counters, in partition: PartitionNumber) {
    store.changedCounters[partition, default: Counters()] += counters
  }

  /// The store's integers are signed: what does not fit is refused, never wrapped.
  static func integer(_ value: UInt64, _ what: @autoclosure () -> String) throws(StoreError) -> Int64 {
    guard let integer = Int64(exactly: value) else { throw .outOfRange(what: what(), value: value) }
    return integer
  }
}

extension Transaction {
  /// The partition's number, made at its first mention. A name is kept as soon as one is given.
  package func number(of id: PartitionID, name: PartitionName? = nil) throws(StoreError) -> PartitionNumber {
    if let known = try partitionNumber(id) {
      if let name, !numbers.isNamed(id) {
        try learn(name, of: known)
        numbers.noteNamed(id)
      }
      return known
    }
    let insert = try database.statement("INSERT INTO partitions (id, hash, name) VALUES (?1, ?2, ?3)")
    try insert.bind(1, store.nextPartition)
    try insert.bind(2, copied: id.digest.bytes)
    if let name { try insert.bind(3, name.text) } else { try insert.bind(3, nil) }
    try insert.run()
    let number = PartitionNumber(rawValue: store.nextPartition)
    store.nextPartition += 1
    numbers.remember(id, number)
    if name != nil { numbers.noteNamed(id) }
    return number
  }

  private func learn(_ name: PartitionName, of number: PartitionNumber) throws(StoreError) {
    let update = try database.statement("UPDATE partitions SET name=?2 WHERE id=?1 AND name IS NULL")
    try update.bind(1, number.rawValue)
    try update.bind(2, name.text)
    try update.run()
  }

  /// Takes away a partition of which nothing is stored but its row; any other stays. Counters do not tell: they miss
  /// what this transaction wrote, and deleted documents.
  package func removeEmptyPartition(_ id: PartitionID) throws(StoreError) {
    let delete = try database.statement(
      """
      DELETE FROM partitions WHERE hash=?1
        AND NOT EXISTS (SELECT 1 FROM chains WHERE partition=partitions.id)
        AND NOT EXISTS (SELECT 1 FROM documents WHERE partition=partitions.id)
        AND NOT EXISTS (SELECT 1 FROM reissues WHERE partition=partitions.id)
      """)
    try delete.bind(1, copied: id.digest.bytes)
    try delete.run()
    if database.changedRows > 0 { numbers.forget(id) }
  }

  /// The chain's number, made at its first mention. `genesis` is `hash(0)`, where both its marks then stand.
  package func number(
    of replica: ReplicaID, in partition: PartitionNumber, genesis: Digest
  ) throws(StoreError) -> ChainNumber {
    if let known = try chainNumber(partition, replica) { return known }
    let insert = try database.statement(
      "INSERT INTO chains (partition, replica, received_hash, accepted_hash) VALUES (?1, ?2, ?3, ?3)")
    try insert.bind(1, partition.rawValue)
    try insert.bind(2, copied: replica.bytes)
    try insert.bind(3, copied: genesis.bytes)
    try insert.run()
    let number = ChainNumber(rawValue: database.lastInsertedRow, partition: partition)
    numbers.remember(NumberCache.ChainKey(partition: partition, replica: replica), number)
    return number
  }

  package func setMarks(
    of chain: ChainNumber, received: ChainMark, accepted: ChainMark, holdReason: String? = nil
  ) throws(StoreError) {
    let update = try database.statement(
      """
      UPDATE chains SET received_sequence=?2, received_hash=?3, accepted_sequence=?4, accepted_hash=?5, hold_reason=?6
      WHERE id=?1
      """)
    try update.bind(1, chain.rawValue)
    try update.bind(2, try Transaction.integer(received.sequence, "sequence"))
    try update.bind(3, copied: received.hash.bytes)
    try update.bind(4, try Transaction.integer(accepted.sequence, "sequence"))
    try update.bind(5, copied: accepted.hash.bytes)
    if let holdReason { try update.bind(6, Text(holdReason)) } else { try update.bind(6, nil) }
    try update.run()
  }

  /// The collection's number, made at its first mention.
  package func number(ofCollection name: Text) throws(StoreError) -> CollectionNumber {
    if let known = try collectionNumber(name) { return known }
    let insert = try database.statement("INSERT INTO collections (name) VALUES (?1)")
    try insert.bind(1, name)
    try insert.run()
    let number = CollectionNumber(rawValue: database.lastInsertedRow)
    numbers.remember(name, number)
    return number
  }
}
