import Replication

/// How far a store's log has come. Whoever follows the log keeps one, in memory or on disk, to go on from there.
///
/// Runs are told by their arrival. Where documents are rebuilt they change without a run, so each partition has the number
/// of its last rebuild as well.
package struct LogPosition: Hashable, Sendable {
  /// Which copy of the store it belongs to; 0 until the store comes from a backup. Other runs arrive in each copy.
  let copy: UInt64
  /// The last run; 0 where there is none.
  package internal(set) var arrival: Int64
  /// Rebuilds so far, of all partitions.
  var rebuilds: UInt64

  package init(copy: UInt64 = 0, arrival: Int64 = 0, rebuilds: UInt64 = 0) {
    (self.copy, self.arrival, self.rebuilds) = (copy, arrival, rebuilds)
  }

  /// The same, but of the log only what came up to there.
  package func reaching(_ arrival: Int64) -> LogPosition {
    LogPosition(copy: copy, arrival: arrival, rebuilds: rebuilds)
  }

  /// Whether it can be of the log that ends at `end`; one of a copy, or of a store that was put back from one, is not.
  package func belongs(to end: LogPosition) -> Bool {
    copy == end.copy && arrival <= end.arrival && rebuilds <= end.rebuilds
  }

  /// As it is kept outside of memory.
  package var text: String { "\(copy).\(arrival).\(rebuilds)" }

  /// Nil where it is no ``text``.
  package init?(text: String) {
    let fields = text.split(separator: ".", omittingEmptySubsequences: false)
    guard fields.count == 3, let copy = UInt64(fields[0]), let arrival = Int64(fields[1]), arrival >= 0,
      let rebuilds = UInt64(fields[2])
    else { return nil }
    self.init(copy: copy, arrival: arrival, rebuilds: rebuilds)
  }
}

extension Database {
  func logEnd() throws(StoreError) -> LogPosition {
    LogPosition(
      copy: try number(.copy) ?? 0, arrival: try integer("SELECT max(arrival) FROM runs") ?? 0,
      rebuilds: try number(.rebuilds) ?? 0)
  }
}

extension StoreReading where Self: ~Copyable {
  /// Where the log ends.
  package func logEnd() throws(StoreError) -> LogPosition { try database.logEnd() }

  /// Whether all that changed in the partition's documents since `position` is what runs write that arrived since.
  package func runsTellAll(of partition: PartitionNumber, since position: LogPosition) throws(StoreError) -> Bool {
    let end = try logEnd()
    guard position.belongs(to: end) else { return false }
    return try database.number(named: Transaction.rebuildKey(partition)) ?? 0 <= position.rebuilds
  }

  /// Partitions in whose documents something changed since `position` that no later run tells; nil: it may be any.
  package func partitionsRebuilt(since position: LogPosition) throws(StoreError) -> [PartitionID]? {
    let end = try logEnd()
    guard position.belongs(to: end) else { return nil }
    guard end.rebuilds > position.rebuilds else { return [] }
    var rebuilt: [PartitionID] = []
    for partition in try partitions() {
      let last = try database.number(named: Transaction.rebuildKey(partition.number)) ?? 0
      if last > position.rebuilds { rebuilt.append(partition.id) }
    }
    return rebuilt
  }

  /// Runs of one partition that came after `arrival`, in the order in which they came: at least one where there is one,
  /// then while their bodies stay within `byteLimit`. Looks at every later run of the store.
  package func runs(
    of partition: PartitionNumber, cameAfter arrival: Int64, byteLimit: Int
  ) throws(StoreError) -> [StoredRun] {
    // The sign keeps SQLite from reading whole chains by their index.
    let rows = try database.statement(
      """
      SELECT arrival, chain, first, last, context_base, context, body, sum FROM runs
      WHERE arrival>?1 AND +chain IN (SELECT id FROM chains WHERE partition=?2) ORDER BY arrival
      """)
    defer { rows.reset() }
    try rows.bind(1, arrival)
    try rows.bind(2, partition.rawValue)
    return try collect(rows, byteLimit: byteLimit, partition: partition)
  }
}

extension Transaction {
  /// Documents of the partition are about to change without a run that tells it.
  func noteRebuild(of partition: PartitionNumber) throws(StoreError) {
    store.end.rebuilds += 1
    try setInteger(store.end.rebuilds, for: .rebuilds)
    try database.setNumber(named: Transaction.rebuildKey(partition), store.end.rebuilds)
  }

  /// In `meta`: the number of the partition's last rebuild.
  static func rebuildKey(_ partition: PartitionNumber) -> Text { Text("rebuilt-\(partition.rawValue)") }
}
