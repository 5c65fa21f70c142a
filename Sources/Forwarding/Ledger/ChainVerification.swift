import Engine
import Replication
import Storage
import Wire

/// Walks the tables that are kept by chain, side by side in the order of their keys, and holds them against one another.
struct ChainVerification {
  private let tables: any LedgerTables
  private let statements: LedgerStatements
  private let cryptography: Cryptography
  private let decoder: FrameDecoder
  private let runs: LedgerCursor
  private let changes: LedgerCursor
  private let forks: LedgerCursor
  private let marks: LedgerCursor
  private var contexts: ContextResolver

  init(_ tables: any LedgerTables, _ statements: LedgerStatements, _ cryptography: Cryptography) {
    (self.tables, self.statements, self.cryptography) = (tables, statements, cryptography)
    decoder = FrameDecoder(fleet: statements.fleet, cryptography)
    (runs, changes) = (LedgerCursor(tables, .runs), LedgerCursor(tables, .changes))
    (forks, marks) = (LedgerCursor(tables, .forks), LedgerCursor(tables, .accepted))
    contexts = ContextResolver(tables)
  }

  /// Partition and replica of the next chain of which any table has a row.
  func nextChain() throws -> [RowValue]? {
    try [runs, changes, forks, marks].compactMap { try $0.peek().map { Array($0.key.prefix(2)) } }
      .min { $0.lexicographicallyPrecedes($1) }
  }

  /// In any table.
  func firstRow(of prefix: [RowValue]) throws -> LedgerRow? {
    for cursor in [runs, changes, forks, marks] {
      if let row = try next(cursor, of: prefix) { return row }
    }
    return nil
  }

  private func next(_ cursor: LedgerCursor, of prefix: [RowValue]) throws -> LedgerRow? {
    guard let row = try cursor.peek(), Array(row.key.prefix(2)) == prefix else { return nil }
    return row
  }

  /// Where what there is of a chain goes on from: of a forked one, several branches may go on from the same change.
  private struct Beginning: Equatable {
    let first: UInt64
    let hashBefore: Digest

    init(_ run: LedgerRun) { (first, hashBefore) = (run.first, run.hashBefore) }
  }

  mutating func verify(
    _ prefix: [RowValue], in name: PartitionName, _ tally: inout LedgerTally, _ progress: (LedgerTally) -> Void
  ) throws {
    var window = ChangeWindow()
    var beginning: Beginning?
    while let row = try next(runs, of: prefix) {
      let run = try LedgerRun(row)
      let inspected = try inspect(run, name)
      try expectAgreement(run, inspected.run)
      try runs.next()
      while let change = try next(changes, of: prefix), try change.number("sequence") <= run.last {
        try window.add(change)
        try changes.next()
      }
      if run.first > 1, !window.has(run.first - 1, run.hashBefore), beginning != Beginning(run) {
        guard beginning == nil, window.isEmpty(below: run.first) else {
          throw LedgerFinding(.runs, run.keyBefore, "the run that ends there is missing: one goes on from it")
        }
      }
      beginning = beginning ?? Beginning(run)
      try window.claim(inspected.run, row)
      try window.drop(below: run.last)
      if try lacksRight(inspected.summary, run) { tally.runsWithoutRight += 1 }
      tally.runs += 1
      tally.bytes += Int64(run.body.count)
      progress(tally)
    }
    if let row = try next(changes, of: prefix) { throw row.finding("no run has this change") }
    try window.drop(below: .max)
    try expectFork(prefix, window.forkPoint)
    try expectMark(prefix, &tally)
    note(window, beginsAt: beginning?.first, prefix, name, &tally)
  }

  private func note(
    _ window: ChangeWindow, beginsAt first: UInt64?, _ prefix: [RowValue], _ name: PartitionName,
    _ tally: inout LedgerTally
  ) {
    guard let first, case .bytes(let replica) = prefix[1], let replica = ReplicaID(replica) else { return }
    tally.chains += 1
    tally.changes += window.count
    if window.forkPoint != nil { tally.forkedChains += 1 }
    guard first > 1 else { return }
    tally.incompleteChains += 1
    if tally.incomplete.count < LedgerTally.incompleteLimit {
      tally.incomplete.append(LedgerTally.IncompleteChain(partition: name, replica: replica, first: first))
    }
  }

  // MARK: What was signed

  private mutating func inspect(_ run: LedgerRun, _ name: PartitionName) throws -> InspectedRun {
    let context = try context(of: run)
    do {
      return try decoder.inspect(run.body, context: context, in: name, under: statements.authority) { payload in
        let key: [RowValue] = [run.row.values[0], .bytes(payload.bytes)]
        guard let row = try tables.row(of: .payloads, key) else {
          throw LedgerFinding(.payloads, key, "the payload of a change is not there")
        }
        let bytes = try row.bytes("bytes")
        guard Digest.of(bytes, cryptography.hash) == payload else { throw row.finding("bytes do not have this hash") }
        return bytes
      }
    } catch let error as RunError {
      throw run.row.finding("\(error)")
    } catch let error as InspectionError {
      throw run.row.finding("\(error)")
    }
  }

  private mutating func context(of run: LedgerRun) throws -> VersionVector {
    do {
      return try contexts.context(of: run)
    } catch let finding as LedgerFinding {
      // The run before it was looked for by what the row says, which may be what is wrong.
      do {
        let (fleet, partition) = (statements.fleet, run.chain.partition)
        let signed = try RunCodec.decode(run.body[...], fleet: fleet, partition: partition, hash: cryptography.hash)
        try expectAgreement(run, signed)
      } catch let error as RunError {
        throw run.row.finding("\(error)")
      }
      throw finding
    }
  }

  private func expectAgreement(_ run: LedgerRun, _ signed: DecodedRun) throws(LedgerFinding) {
    func expect(_ agrees: Bool, _ column: String) throws(LedgerFinding) {
      guard agrees else { throw run.row.finding("\(column) is not what was signed") }
    }
    try expect(signed.chain.replica == run.chain.replica, "replica")
    try expect(signed.first == run.first, "first")
    try expect(signed.last == run.last, "last")
    try expect(signed.hashBefore == run.hashBefore, "hash_before")
    try expect(signed.hashAtLast == run.hash, "hash")
  }

  /// As a node asks before it takes a run from a peer. True: it holds, and lacks a right, which a statement since may have
  /// taken away.
  private func lacksRight(_ summary: RunSummary, _ run: LedgerRun) throws(LedgerFinding) -> Bool {
    let (fleet, hash, partition) = (statements.fleet, cryptography.hash, run.chain.partition)
    let log = PartitionLog(summary.partition, authority: statements.authority) { replica in
      ChainIdentity(fleet: fleet, partition: partition, replica: replica).genesis(hash)
    }
    switch log.deliver(summary) {
    case .refuse(let reason): throw run.row.finding("a run that nobody may send: \(reason.rawValue)")
    case .aside(.lacksRight): return true
    default: return false
    }
  }

  // MARK: What is noted beside it

  private func expectFork(_ prefix: [RowValue], _ forkPoint: UInt64?) throws {
    guard let row = try next(forks, of: prefix) else {
      guard let forkPoint else { return }
      throw LedgerFinding(.forks, prefix, "the chain has two branches behind change \(forkPoint), which is not noted")
    }
    try forks.next()
    guard let forkPoint else { throw row.finding("the chain has one branch alone") }
    guard try row.number("after") == forkPoint else {
      throw row.finding("after is not \(forkPoint), behind which the branches part")
    }
  }

  private func expectMark(_ prefix: [RowValue], _ tally: inout LedgerTally) throws {
    guard let row = try next(marks, of: prefix) else { return }
    try marks.next()
    guard let tip = TipHash(try row.bytes("tip")) else { throw row.finding("tip has not 16 bytes") }
    guard statements.devices.contains(DeviceID(try row.digest("judge"))) else {
      throw row.finding("judge is no device of the fleet")
    }
    tally.marks += 1
    let sequence = try row.number("sequence")
    guard sequence > 0 else {
      guard tip == .zero else { throw row.finding("nothing is marked, and yet there is a tip") }
      return
    }
    let start: [RowValue] = prefix + [.integer(Int64(clamping: sequence)), .bytes([])]
    var after = start
    while let found = try tables.page(of: .changes, after: after, rows: 1).first, Array(found.key.prefix(2)) == prefix,
      try found.number("sequence") == sequence
    {
      if try found.digest("hash").tip == tip { return }
      after = found.key
    }
    throw row.finding("the mark names no change that is there")
  }
}

/// Rows of `changes` of one chain that a run may still claim. Runs come in the order of their last changes, so no more than
/// the changes of one run on each branch.
struct ChangeWindow {
  private struct Place: Hashable {
    let sequence: UInt64
    let hash: Digest
  }

  private struct Waiting {
    let row: LedgerRow
    var isClaimed = false
    var isOfRun = false
  }

  private var waiting: [Place: Waiting] = [:]
  private var highest: UInt64 = 0
  private(set) var count = 0
  /// The number before the first that two changes have.
  private(set) var forkPoint: UInt64?

  func has(_ sequence: UInt64, _ hash: Digest) -> Bool { waiting[Place(sequence: sequence, hash: hash)] != nil }

  /// Nothing that was added stands below.
  func isEmpty(below sequence: UInt64) -> Bool { !waiting.keys.contains { $0.sequence < sequence } }

  mutating func add(_ row: LedgerRow) throws {
    let sequence = try row.number("sequence")
    if count > 0, sequence == highest { forkPoint = forkPoint ?? sequence &- 1 }
    highest = sequence
    count += 1
    waiting[Place(sequence: sequence, hash: try row.digest("hash"))] = Waiting(row: row)
  }

  /// The run's changes have rows that say of them what was signed.
  mutating func claim(_ run: DecodedRun, _ runRow: LedgerRow) throws {
    var before = run.hashBefore
    for (change, hash) in zip(run.changes, run.hashes) {
      let place = Place(sequence: change.header.sequence, hash: hash)
      guard var found = waiting[place] else {
        let key = [
          runRow.values[0], runRow.values[1], .integer(Int64(clamping: place.sequence)), .bytes(hash.bytes),
        ]
        throw LedgerFinding(.changes, key, "a change of a run is not there")
      }
      try expect(found.row, change.header, after: before)
      found.isClaimed = true
      // Who signs a beginning of a run again may have it in two.
      if try found.row.number("run_last") == run.last { found.isOfRun = true }
      waiting[place] = found
      before = hash
    }
  }

  private func expect(_ row: LedgerRow, _ header: ChangeHeader, after before: Digest) throws(LedgerFinding) {
    func expect(_ agrees: Bool, _ column: String) throws(LedgerFinding) {
      guard agrees else { throw row.finding("\(column) is not what was signed") }
    }
    try expect(try row.digest("hash_before") == before, "hash_before")
    try expect(try row.number("stamp_ms") == header.timestamp.milliseconds, "stamp_ms")
    try expect(try row.number("stamp_counter") == UInt64(header.timestamp.counter), "stamp_counter")
    try expect(try row.signed("wall_ms") == header.wall.milliseconds, "wall_ms")
    try expect(try row.number("payload_bytes") == UInt64(header.payloadByteCount), "payload_bytes")
  }

  /// Runs that end at `last` or later cannot claim what is let go.
  mutating func drop(below last: UInt64) throws {
    let kept = UInt64(Run.changeLimit)
    let limit = last > kept ? last - kept : 0
    guard last == .max || waiting.count > 4 * Run.changeLimit else { return }
    let gone = waiting.filter { $0.key.sequence < limit }
    for (place, row) in gone.sorted(by: { $0.key.sequence < $1.key.sequence }) {
      guard row.isClaimed else { throw row.row.finding("no run has this change") }
      guard row.isOfRun else { throw row.row.finding("run_last is not the end of its run") }
      waiting[place] = nil
    }
  }
}
