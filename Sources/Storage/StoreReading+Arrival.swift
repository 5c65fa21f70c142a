import Replication

/// A run with the place that it belongs to, for whoever passes on the whole log.
package struct ArrivedRun: Hashable, Sendable {
  package let partition: PartitionID
  package let replica: ReplicaID
  package let run: StoredRun
  /// More than one branch of its chain is here.
  package let isForked: Bool
  /// When it came, in milliseconds since 1970 by this node's clock; nil where nobody told.
  package let arrived: Int64?
}

/// A run that is not as it was written, or whose context does not read.
package struct UnreadRun: Sendable {
  package let partition: PartitionID
  package let replica: ReplicaID
  package let first: UInt64
  package let last: UInt64
  package let arrival: Int64
  /// One sentence.
  package let reason: String

  package init(
    partition: PartitionID, replica: ReplicaID, first: UInt64, last: UInt64, arrival: Int64, reason: String
  ) {
    (self.partition, self.replica, self.first, self.last) = (partition, replica, first, last)
    (self.arrival, self.reason) = (arrival, reason)
  }
}

/// What lies behind a place of the log.
package struct ArrivedRuns: Sendable {
  package var runs: [ArrivedRun] = []
  /// Those that are wanted and do not read, in the order in which they came.
  package var unread: [UnreadRun] = []
  /// Everything up to here was looked at.
  package var end: Int64
  /// There is nothing behind ``end``.
  package var isAll = false
}

/// How much is read at once.
package struct ArrivalLimits: Hashable, Sendable {
  /// Of bodies; the last run may pass it.
  package var bytes: Int
  /// The last run may pass it.
  package var changes: Int
  /// Rows that are looked at, wanted or not.
  package var rows: Int

  package init(bytes: Int, changes: Int, rows: Int = 65_536) {
    (self.bytes, self.changes, self.rows) = (bytes, changes, rows)
  }
}

extension StoreReading where Self: ~Copyable {
  /// Runs of all partitions that came after `arrival`, in the order in which they came, as far as `isWanted` says so of their
  /// chain, last change and arrival. Bodies of others are not read. One that does not read keeps none of the others.
  package func runs(
    cameAfter arrival: Int64, within limits: ArrivalLimits, isWanted: (PartitionID, ReplicaID, UInt64, Int64) -> Bool
  ) throws(StoreError) -> ArrivedRuns {
    let rows = try database.statement(
      """
      SELECT runs.arrival, runs.chain, first, last, context_base, context, body, arrived, chains.partition, replica, hash,
        hold_reason IS NOT NULL, sum
      FROM runs JOIN chains ON chains.id=runs.chain JOIN partitions ON partitions.id=chains.partition
      WHERE runs.arrival>?1 ORDER BY runs.arrival
      """)
    defer { rows.reset() }
    try rows.bind(1, arrival)
    var found = ArrivedRuns(end: arrival)
    var (bytes, changes, looked) = (0, 0, 0)
    while looked < limits.rows, bytes < limits.bytes, changes < limits.changes {
      guard try rows.step() else {
        found.isAll = true
        break
      }
      looked += 1
      guard let replica = ReplicaID(rows.bytes(9)), let partition = Digest(rows.bytes(10)) else {
        throw .damaged("a chain's ids")
      }
      found.end = rows.integer(0)
      guard isWanted(PartitionID(partition), replica, UInt64(clamping: rows.integer(3)), found.end) else { continue }
      let run: StoredRun
      do throws(StoreError) {
        run = try storedRun(rows)
      } catch {
        guard error.isOfOneRow else { throw error }
        found.unread.append(
          UnreadRun(
            partition: PartitionID(partition), replica: replica, first: UInt64(clamping: rows.integer(2)),
            last: UInt64(clamping: rows.integer(3)), arrival: found.end, reason: error.description))
        continue
      }
      (bytes, changes) = (bytes + run.body.count, changes + Int(clamping: run.last - run.first + 1))
      let arrived = rows.integer(7)
      found.runs.append(
        ArrivedRun(
          partition: PartitionID(partition), replica: replica, run: run, isForked: rows.integer(11) == 1,
          arrived: arrived == 0 ? nil : arrived))
    }
    return found
  }

  /// Changes of runs that came after `arrival`, and bytes of these runs. Looks at each of them.
  package func amount(cameAfter arrival: Int64) throws(StoreError) -> (changes: Int64, bytes: Int64) {
    let rows = try database.statement("SELECT sum(last-first+1), sum(length(body)) FROM runs WHERE arrival>?1")
    defer { rows.reset() }
    try rows.bind(1, arrival)
    return try rows.step() ? (rows.optionalInteger(0) ?? 0, rows.optionalInteger(1) ?? 0) : (0, 0)
  }

  /// When the first run came that did after `arrival`, in milliseconds since 1970; nil where there is none, or nobody told.
  package func firstArrived(after arrival: Int64) throws(StoreError) -> Int64? {
    let rows = try database.statement("SELECT arrived FROM runs WHERE arrival>?1 ORDER BY arrival LIMIT 1")
    defer { rows.reset() }
    try rows.bind(1, arrival)
    guard try rows.step(), rows.integer(0) != 0 else { return nil }
    return rows.integer(0)
  }

  private func storedRun(_ rows: PreparedStatement) throws(StoreError) -> StoredRun {
    try requireIntact(rows, sum: 12)
    let base = try rows.optionalInteger(4).map { arrival throws(StoreError) in try fullContext(at: arrival) }
    guard let context = StoredContext.decode(rows.bytes(5), onto: base ?? VersionVector()) else {
      throw .damagedRun(try run(at: rows, sum: 12))
    }
    let (first, last) = (UInt64(clamping: rows.integer(2)), UInt64(clamping: rows.integer(3)))
    guard first > 0, first <= last, last - first < UInt64(Run.changeLimit) else {
      throw .damagedLog("the numbers of run \(rows.integer(0))")
    }
    return StoredRun(
      arrival: rows.integer(0),
      chain: ChainNumber(rawValue: rows.integer(1), partition: PartitionNumber(rawValue: rows.integer(8))),
      first: first, last: last, context: context, body: rows.bytes(6), hasSum: rows.optionalInteger(12) != nil)
  }

  /// Where the first run of a chain lies that reaches above `sequence`; nil where none does.
  package func firstArrival(of chain: ChainNumber, above sequence: UInt64) throws(StoreError) -> Int64? {
    let rows = try database.statement("SELECT min(arrival) FROM runs WHERE chain=?1 AND last>?2")
    defer { rows.reset() }
    try rows.bind(1, chain.rawValue)
    try rows.bind(2, Int64(clamping: sequence))
    return try rows.step() ? rows.optionalInteger(0) : nil
  }

  /// The highest number of a chain that had come at `arrival`, on whatever branch.
  package func highest(of chain: ChainNumber, cameThrough arrival: Int64) throws(StoreError) -> UInt64 {
    // From the chain's end backwards: the sign keeps SQLite from walking the whole log.
    let rows = try database.statement(
      "SELECT last FROM runs WHERE chain=?1 AND +arrival<=?2 ORDER BY last DESC LIMIT 1")
    defer { rows.reset() }
    try rows.bind(1, chain.rawValue)
    try rows.bind(2, arrival)
    return try rows.step() ? UInt64(clamping: rows.integer(0)) : 0
  }

  /// The highest number that is here of a chain, on whatever branch.
  package func highest(of chain: ChainNumber) throws(StoreError) -> UInt64 {
    let rows = try database.statement("SELECT max(last) FROM runs WHERE chain=?1")
    defer { rows.reset() }
    try rows.bind(1, chain.rawValue)
    return try rows.step() ? UInt64(clamping: rows.optionalInteger(0) ?? 0) : 0
  }

  package func statementIDs() throws(StoreError) -> [Digest] {
    let rows = try database.statement("SELECT id FROM statements")
    defer { rows.reset() }
    var found: [Digest] = []
    while try rows.step() {
      guard let id = Digest(rows.bytes(0)) else { throw .damaged("a statement's id") }
      found.append(id)
    }
    return found
  }

  /// Statements that came after `arrival`, in that order: at least one where there is one, then within the limit of bytes.
  package func statements(cameAfter arrival: Int64, byteLimit: Int) throws(StoreError) -> [StoredStatement] {
    let rows = try database.statement(
      "SELECT arrival, id, encoded, arrived FROM statements WHERE arrival>?1 ORDER BY arrival")
    defer { rows.reset() }
    try rows.bind(1, arrival)
    var found: [StoredStatement] = []
    var bytes = 0
    while try rows.step() {
      bytes += rows.byteCount(2)
      guard found.isEmpty || bytes <= byteLimit else { break }
      guard let id = Digest(rows.bytes(1)) else { throw .damaged("a statement's id") }
      let arrived = rows.integer(3)
      found.append(
        StoredStatement(
          arrival: rows.integer(0), arrived: arrived == 0 ? nil : arrived, id: id, encoded: rows.bytes(2)))
    }
    return found
  }

  /// Of all partitions.
  package func totals() throws(StoreError) -> Counters { try database.partitionTotals() }
}
