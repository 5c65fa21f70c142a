import Engine
import Replication
import Wire

extension StoreReading where Self: ~Copyable {
  /// Runs of one chain that hold changes above `sequence`, of all branches, ascending by their last one: at least one
  /// where there is one, then while their bodies stay within `byteLimit`. Runs that end at the same sequence, which lie
  /// on several branches of a fork, come together, so that the last sequence of an answer is where to go on. Cost: one
  /// seek and what is answered.
  package func runs(
    of chain: ChainNumber, after sequence: UInt64, byteLimit: Int
  ) throws(StoreError) -> [StoredRun] {
    let rows = try database.statement(
      """
      SELECT arrival, chain, first, last, context_base, context, body, sum FROM runs
      WHERE chain=?1 AND last>?2 ORDER BY last, arrival
      """)
    defer { rows.reset() }
    try rows.bind(1, chain.rawValue)
    try rows.bind(2, Int64(clamping: sequence))
    return try collect(rows, byteLimit: byteLimit, partition: chain.partition)
  }

  /// The highest run of a chain, such as the own one to go on from.
  package func lastRun(of chain: ChainNumber) throws(StoreError) -> StoredRun? {
    let rows = try database.statement(
      """
      SELECT arrival, chain, first, last, context_base, context, body, sum FROM runs
      WHERE chain=?1 ORDER BY last DESC, arrival DESC LIMIT 1
      """)
    defer { rows.reset() }
    try rows.bind(1, chain.rawValue)
    return try collect(rows, byteLimit: .max, partition: chain.partition).first
  }

  /// Where runs of a chain lie that end above `sequence`, ascending by their last change: from the index alone. Those that
  /// end at the same one come together, whatever the limit.
  package func places(
    of chain: ChainNumber, after sequence: UInt64, limit: Int
  ) throws(StoreError) -> [RunPlace] {
    let rows = try database.statement(
      "SELECT last, arrival FROM runs WHERE chain=?1 AND last>?2 ORDER BY last, arrival")
    defer { rows.reset() }
    try rows.bind(1, chain.rawValue)
    try rows.bind(2, Int64(clamping: sequence))
    var found: [RunPlace] = []
    while try rows.step() {
      let place = RunPlace(last: UInt64(clamping: rows.integer(0)), arrival: rows.integer(1))
      guard found.count < limit || place.last == found.last?.last else { break }
      found.append(place)
    }
    return found
  }

  package func run(at arrival: Int64, in partition: PartitionNumber) throws(StoreError) -> StoredRun? {
    let rows = try database.statement(
      "SELECT arrival, chain, first, last, context_base, context, body, sum FROM runs WHERE arrival=?1")
    defer { rows.reset() }
    try rows.bind(1, arrival)
    return try collect(rows, byteLimit: .max, partition: partition).first
  }

  /// The bytes of a chain's run, held against the sum of its own row: whatever became of the one that its context refers to.
  package func body(ofRunAt arrival: Int64, of chain: ChainNumber) throws(StoreError) -> [UInt8]? {
    let rows = try database.statement(
      "SELECT arrival, chain, first, last, context_base, context, body, sum FROM runs WHERE arrival=?1 AND chain=?2")
    defer { rows.reset() }
    try rows.bind(1, arrival)
    try rows.bind(2, chain.rawValue)
    guard try rows.step() else { return nil }
    try requireIntact(rows, sum: 7)
    return rows.bytes(6)
  }

  /// Whether the sum of a chain's run is that of its row with these bytes in place of its own.
  package func isWritten(
    _ body: ArraySlice<UInt8>, asRunAt arrival: Int64, of chain: ChainNumber
  ) throws(StoreError) -> Bool {
    let rows = try database.statement(
      "SELECT arrival, chain, first, last, context_base, context, sum FROM runs WHERE arrival=?1 AND chain=?2")
    defer { rows.reset() }
    try rows.bind(1, arrival)
    try rows.bind(2, chain.rawValue)
    guard try rows.step(), let sum = rows.optionalInteger(6) else { return false }
    return body.withUnsafeBytes { bytes in
      RowSum(
        ofRun: rows.integer(0), of: rows.integer(1), rows.integer(2), rows.integer(3), base: rows.optionalInteger(4),
        context: rows.borrowedBytes(5), body: bytes
      ).value == sum
    }
  }

  /// Holds the rows of runs that came after `arrival` against their sums, in the order in which they came, and what travelled
  /// apart from them.
  ///
  /// - Parameter damagedBases: arrivals of damaged runs before these, to which their contexts may refer.
  func scrubRuns(
    cameAfter arrival: Int64, damagedBases: Set<Int64>, byteLimit: Int, countLimit: Int
  ) throws(StoreError) -> ScrubbedRuns {
    let rows = try database.statement(
      "SELECT arrival, chain, first, last, context_base, context, body, sum FROM runs WHERE arrival>?1 ORDER BY arrival"
    )
    defer { rows.reset() }
    try rows.bind(1, arrival)
    var (scrubbed, count) = (ScrubbedRuns(end: arrival, damagedBases: damagedBases), 0)
    scrubbed.logEnd = try database.integer("SELECT max(arrival) FROM runs") ?? 0
    while count == 0 || scrubbed.byteCount < byteLimit && count < countLimit {
      do throws(StoreError) {
        guard try rows.step() else {
          scrubbed.isAll = true
          break
        }
        try scrub(rows, &scrubbed)
        count += 1
      } catch {
        // What was found before it counts.
        guard count > 0 else { throw error }
        break
      }
    }
    return scrubbed
  }

  private func scrub(_ rows: PreparedStatement, _ scrubbed: inout ScrubbedRuns) throws(StoreError) {
    scrubbed.byteCount += rows.byteCount(5) + rows.byteCount(6)
    let (arrival, base) = (rows.integer(0), rows.optionalInteger(4))
    let isRow = isIntact(rows, sum: 7) && (rows.optionalInteger(7) != nil || beginsAsRun(rows.bytes(6)))
    let isAlone = isRow ? try hasIntactPayload(rows, &scrubbed) : false
    if !isAlone, try !isIndexed(arrival, of: rows.integer(1), endingAt: rows.integer(3)) {
      scrubbed.misplacedCount += 1
      scrubbed.damagedBases.insert(arrival)
      // Its own number may be what is damaged, and is not to lead past all that follows.
      scrubbed.end += 1
      return
    }
    if isAlone, base.map({ !scrubbed.damagedBases.contains($0) }) ?? true {
      scrubbed.intact.insert(arrival)
      if rows.optionalInteger(7) == nil {
        scrubbed.withoutSum.append((try partition(of: rows.integer(1)), try run(at: rows, sum: 7)))
      }
    } else {
      scrubbed.damaged.append((try partition(of: rows.integer(1)), try run(at: rows, sum: 7)))
      if !isRow { scrubbed.damagedBases.insert(arrival) }
    }
    scrubbed.end = max(scrubbed.end, arrival)
  }

  func isIndexed(_ arrival: Int64, of chain: Int64, endingAt last: Int64) throws(StoreError) -> Bool {
    let rows = try database.statement(
      "SELECT 1 FROM runs INDEXED BY runs_by_chain WHERE chain=?1 AND last=?2 AND +arrival=?3")
    defer { rows.reset() }
    try rows.bind(1, chain)
    try rows.bind(2, last)
    try rows.bind(3, arrival)
    return try rows.step()
  }

  /// What travelled apart from a run, if anything did, is there as it was written.
  private func hasIntactPayload(
    _ rows: PreparedStatement, _ scrubbed: inout ScrubbedRuns
  ) throws(StoreError) -> Bool {
    guard rows.integer(2) == rows.integer(3), let hash = (try? RunCodec.apartPayload(of: rows.bytes(6)[...])) ?? nil
    else {
      return true
    }
    guard let count = try intactPayloadByteCount(hash) else { return false }
    scrubbed.byteCount += count
    return true
  }

  private func partition(of chain: Int64) throws(StoreError) -> PartitionID {
    let rows = try database.statement(
      "SELECT hash FROM chains JOIN partitions ON partitions.id=chains.partition WHERE chains.id=?1")
    defer { rows.reset() }
    try rows.bind(1, chain)
    guard try rows.step(), let hash = Digest(rows.bytes(0)) else { throw .damaged("the partition of chain \(chain)") }
    return PartitionID(hash)
  }

  func collect(
    _ rows: PreparedStatement, byteLimit: Int, partition: PartitionNumber
  ) throws(StoreError) -> [StoredRun] {
    var found: [StoredRun] = []
    var bytes = 0
    var base: (arrival: Int64, context: VersionVector)?
    while try rows.step() {
      let size = rows.byteCount(6)
      if let previous = found.last, bytes + size > byteLimit, previous.last != UInt64(clamping: rows.integer(3)) {
        break
      }
      bytes += size
      try requireIntact(rows, sum: 7)
      if let needed = rows.optionalInteger(4), base?.arrival != needed {
        base = (needed, try fullContext(at: needed))
      }
      let start = rows.optionalInteger(4) == nil ? VersionVector() : base?.context ?? VersionVector()
      guard let context = StoredContext.decode(rows.bytes(5), onto: start) else {
        throw .damagedRun(try run(at: rows, sum: 7))
      }
      found.append(
        StoredRun(
          arrival: rows.integer(0),
          chain: ChainNumber(rawValue: rows.integer(1), partition: partition),
          first: UInt64(clamping: rows.integer(2)), last: UInt64(clamping: rows.integer(3)), context: context,
          body: rows.bytes(6), hasSum: rows.optionalInteger(7) != nil))
    }
    return found
  }

  /// Throws where the row of a run is not as it was written. Its columns begin with those of ``collect(_:byteLimit:partition:)``.
  func requireIntact(_ rows: PreparedStatement, sum column: Int32) throws(StoreError) {
    if !isIntact(rows, sum: column) { throw .damagedRun(try run(at: rows, sum: column)) }
  }

  /// - Parameter first: in place of the row's own.
  private func isIntact(_ rows: PreparedStatement, sum column: Int32, first: Int64? = nil) -> Bool {
    guard let sum = rows.optionalInteger(column) else { return true }
    let found = RowSum(
      ofRun: rows.integer(0), of: rows.integer(1), first ?? rows.integer(2), rows.integer(3),
      base: rows.optionalInteger(4), context: rows.borrowedBytes(5), body: rows.borrowedBytes(6))
    return found.value == sum
  }

  /// Nothing else tells here whether a row without a sum is as it was written.
  private func beginsAsRun(_ body: [UInt8]) -> Bool { (try? RunCodec.hashBefore(of: body[...])) != nil }

  func run(at rows: PreparedStatement, sum column: Int32) throws(StoreError) -> DamagedRun {
    var first = rows.integer(2)
    // Its number may be all that is damaged: the body begins with it as well.
    if let beginning = try? RunCodec.beginning(of: rows.bytes(6)[...]),
      isIntact(rows, sum: column, first: Int64(clamping: beginning.first))
    {
      first = Int64(clamping: beginning.first)
    }
    return DamagedRun(
      replica: try replica(of: rows.integer(1)), first: UInt64(clamping: first),
      last: UInt64(clamping: rows.integer(3)), arrival: rows.integer(0))
  }

  private func replica(of chain: Int64) throws(StoreError) -> ReplicaID {
    let rows = try database.statement("SELECT replica FROM chains WHERE id=?1")
    defer { rows.reset() }
    try rows.bind(1, chain)
    guard try rows.step(), let replica = ReplicaID(rows.bytes(0)) else { throw .damaged("chain \(chain)") }
    return replica
  }

  func fullContext(at arrival: Int64) throws(StoreError) -> VersionVector {
    if let known = numbers.context(at: arrival) { return known }
    let rows = try database.statement(
      """
      SELECT arrival, chain, first, last, context_base, context, body, sum FROM runs
      WHERE arrival=?1 AND context_base IS NULL
      """)
    defer { rows.reset() }
    try rows.bind(1, arrival)
    guard try rows.step() else { throw .damagedLog("the context of run \(arrival), to which others refer") }
    try requireIntact(rows, sum: 7)
    guard let context = StoredContext.decode(rows.bytes(5)) else { throw .damagedRun(try run(at: rows, sum: 7)) }
    numbers.remember(context, at: arrival)
    return context
  }
}
