import Replication
import Wire

/// Puts in new documents one after another, with one statement, one buffer and one count for all of them.
struct DocumentCreation {
  private let insert: PreparedStatement
  private let database: Database
  private var scope: FoldBatch.Scope?
  private var writer = CBORWriter(reserving: 1_024)
  private var created: [PartitionNumber: Int64] = [:]
  /// Of ``scope``, not counted in ``created`` yet.
  private var createdInScope: Int64 = 0

  init(_ transaction: borrowing Transaction) throws(StoreError) {
    database = transaction.database
    insert = try database.statement(
      """
      INSERT INTO documents (partition, collection, key, alive, state, sum, run, start, length)
      VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING
      """)
  }

  /// False, and nothing is changed, where the document is there already, alive or deleted. The sum beside it is of its whole
  /// state, wherever that lies.
  mutating func create(
    in scope: FoldBatch.Scope, key keys: [UInt8], _ key: Range<Int>, _ write: PlacedWrite, by replica: ReplicaID,
    operations: ArraySlice<UInt8>, lyingAt reference: RunReference?
  ) throws(StoreError) -> Bool {
    if scope != self.scope { try enter(scope) }
    writer.clear()
    writer.createdState(
      dot: Dot(replica: replica, sequence: write.sequence), timestamp: write.timestamp,
      generation: write.view.generation, operations: operations)
    try keys.span.bytes.withUnsafeBytes { (keys) throws(StoreError) in
      try writer.bytes.span.bytes.withUnsafeBytes { (state) throws(StoreError) in
        let key = UnsafeRawBufferPointer(rebasing: keys[key])
        try insert.bind(3, borrowed: key)
        let kept = state.count - (reference == nil ? 0 : operations.count)
        try insert.bind(4, borrowed: UnsafeRawBufferPointer(rebasing: state[..<kept]))
        let sum = RowSum(ofDocument: key, in: scope.partition, scope.collection, isAlive: true, state: state)
        try insert.bind(5, sum.value)
        try insert.bind(6, reference?.run)
        try insert.bind(7, reference?.start)
        try insert.bind(8, reference?.length)
        try insert.run()
      }
    }
    guard database.changedRows == 1 else { return false }
    createdInScope += 1
    return true
  }

  /// Values stay bound from one row to the next.
  private mutating func enter(_ scope: FoldBatch.Scope) throws(StoreError) {
    leave()
    try insert.bind(1, scope.partition.rawValue)
    try insert.bind(2, scope.collection.rawValue)
    self.scope = scope
  }

  private mutating func leave() {
    if let scope, createdInScope > 0 { created[scope.partition, default: 0] += createdInScope }
    createdInScope = 0
  }

  /// Adds what was created to the partitions' counters.
  mutating func count(in transaction: borrowing Transaction) {
    leave()
    for (partition, count) in created { transaction.count(Counters(documents: count), in: partition) }
    created.removeAll()
  }
}
