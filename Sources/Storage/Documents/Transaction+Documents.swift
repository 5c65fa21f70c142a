import Replication

extension Transaction {
  /// Puts in a document that has never been there. False, and nothing is changed, where it is there already, alive or
  /// deleted: a new document costs no look-up before it.
  package func insertNew(
    _ partition: PartitionNumber, _ collection: CollectionNumber, key: UnsafeRawBufferPointer, isAlive: Bool = true,
    state: UnsafeRawBufferPointer
  ) throws(StoreError) -> Bool {
    let insert = try database.statement(
      """
      INSERT INTO documents (partition, collection, key, alive, state, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
      ON CONFLICT DO NOTHING
      """)
    try insert.bind(1, partition.rawValue)
    try insert.bind(2, collection.rawValue)
    try insert.bind(3, borrowed: key)
    try insert.bind(4, isAlive ? 1 : 0)
    try insert.bind(5, borrowed: state)
    try insert.bind(
      6, RowSum(ofDocument: key, in: partition, collection, isAlive: isAlive, state: state).value)
    try insert.run()
    guard database.changedRows == 1 else { return false }
    if isAlive { count(Counters(documents: 1), in: partition) }
    return true
  }

  package func insertNew(
    _ partition: PartitionNumber, _ collection: CollectionNumber, key: [UInt8], isAlive: Bool = true, state: [UInt8]
  ) throws(StoreError) -> Bool {
    try key.span.bytes.withUnsafeBytes { (key) throws(StoreError) in
      try state.span.bytes.withUnsafeBytes { (state) throws(StoreError) in
        try insertNew(partition, collection, key: key, isAlive: isAlive, state: state)
      }
    }
  }

  /// Gives a document that was read in this transaction another state.
  package func replace(
    _ document: DocumentRow, in partition: PartitionNumber, _ collection: CollectionNumber, isAlive: Bool,
    state: [UInt8]
  ) throws(StoreError) {
    let update = try database.statement(
      "UPDATE documents SET alive=?2, state=?3, sum=?4, run=NULL, start=NULL, length=NULL WHERE id=?1")
    try update.bind(1, document.row)
    try update.bind(2, isAlive ? 1 : 0)
    let sum = document.key.span.bytes.withUnsafeBytes { key in
      state.span.bytes.withUnsafeBytes {
        RowSum(ofDocument: key, in: partition, collection, isAlive: isAlive, state: $0)
      }
    }
    try update.bind(4, sum.value)
    try state.span.bytes.withUnsafeBytes { (bytes) throws(StoreError) in
      try update.bind(3, borrowed: bytes)
      try update.run()
    }
    if isAlive != document.isAlive { count(Counters(documents: isAlive ? 1 : -1), in: partition) }
  }

  /// Takes a document away as if it had never been: where every change to it was un-merged.
  package func remove(_ document: DocumentRow, in partition: PartitionNumber) throws(StoreError) {
    let delete = try database.statement("DELETE FROM documents WHERE id=?1")
    try delete.bind(1, document.row)
    try delete.run()
    if document.isAlive { count(Counters(documents: -1), in: partition) }
  }
}
