import Replication

extension Transaction {
  /// Remembers a re-issued change for ever: an original must not be issued a third time, nor count beside it (rule C22).
  package func addReissue(_ reissue: Reissue, in partition: PartitionNumber) throws(StoreError) {
    let insert = try database.statement(
      """
      INSERT INTO reissues (partition, replica, sequence, hash, origin_replica, origin_sequence, origin_hash)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING
      """)
    try insert.bind(1, partition.rawValue)
    try insert.bind(2, copied: reissue.dot.replica.bytes)
    try insert.bind(3, try Transaction.integer(reissue.dot.sequence, "sequence"))
    try insert.bind(4, copied: reissue.hash.bytes)
    try insert.bind(5, copied: reissue.origin.dot.replica.bytes)
    try insert.bind(6, try Transaction.integer(reissue.origin.dot.sequence, "sequence"))
    try insert.bind(7, copied: reissue.origin.hash.bytes)
    try insert.run()
  }
}

extension StoreReading where Self: ~Copyable {
  /// Every re-issued change known in a partition.
  package func reissues(in partition: PartitionNumber) throws(StoreError) -> Set<Reissue> {
    let rows = try database.statement(
      """
      SELECT replica, sequence, hash, origin_replica, origin_sequence, origin_hash FROM reissues WHERE partition=?1
      """)
    defer { rows.reset() }
    try rows.bind(1, partition.rawValue)
    var found: Set<Reissue> = []
    while try rows.step() {
      guard let replica = ReplicaID(rows.bytes(0)), let hash = Digest(rows.bytes(2)),
        let original = ReplicaID(rows.bytes(3)), let originalHash = Digest(rows.bytes(5))
      else { throw .damaged("a re-issued change does not read") }
      let origin = ChangeOrigin(
        dot: Dot(replica: original, sequence: UInt64(clamping: rows.integer(4))), hash: originalHash)
      let dot = Dot(replica: replica, sequence: UInt64(clamping: rows.integer(1)))
      found.insert(Reissue(dot: dot, hash: hash, origin: origin))
    }
    return found
  }
}
