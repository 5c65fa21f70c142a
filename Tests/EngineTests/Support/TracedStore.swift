import Engine
import Replication
import Storage

/// The real store, and a note of when each of its transactions begins and ends.
final class TracedStore: LogStore {
  let store: Store
  private let trace: TraceBook
  /// Whether each transaction was said to be part of a backlog.
  private(set) var backlogs: [Bool] = []
  /// Runs that were read one chain at a time.
  var runsRead = 0
  /// Runs that were read without what they had seen.
  private(set) var bodiesRead = 0
  /// What reading the log over comes to.
  var scrubFailure: (any Error)?
  /// Behind these arrivals the disk gives nothing.
  var unreadable: Set<Int64> = []
  /// What every commit comes to, behind all that its transaction did.
  var commitFailure: (any Error)?

  init(_ store: Store, _ trace: TraceBook) { (self.store, self.trace) = (store, trace) }

  var storeID: UUIDValue { store.storeID }
  var hasFailed: Bool { store.hasFailed }
  var totals: LogTotals { store.totals }

  func transact<Result>(isBacklog: Bool, _ body: (any LogTransaction) throws -> Result) throws -> Result {
    trace.note(.began)
    backlogs.append(isBacklog)
    do {
      let result = try store.transact(isBacklog: isBacklog) { transaction in
        let result = try body(transaction)
        if let commitFailure { throw commitFailure }
        return result
      }
      trace.note(.committed)
      return result
    } catch {
      trace.note(.undone)
      throw error
    }
  }

  func carryOver(_ occasion: CarryOccasion) throws { try store.carryOver(occasion) }
  var carryDelay: UInt64? { store.carryDelay }

  func statementBytes() throws -> [[UInt8]] { try store.statementBytes() }
  func subscriptions() throws -> [Text] { try store.subscriptions() }
  func invitations() throws -> [Invitation] { try store.invitations() }
  func holdings() throws -> [KeptHoldings] { try store.holdings() }
  func ownFacts() throws -> OwnFacts { try store.ownFacts() }
  func logPartitions() throws -> [LogPartition] { try store.logPartitions() }
  func logChains() throws -> [LogChain] { try store.logChains() }
  func places(of chain: ChainIdentity, after sequence: UInt64, limit: Int) throws -> [RunPlace] {
    try store.places(of: chain, after: sequence, limit: limit)
  }
  func ends(beforeRunsBehind arrival: Int64) throws -> [PartitionID: [ReplicaID: UInt64]] {
    try store.ends(beforeRunsBehind: arrival)
  }
  func run(at place: RunPlace, of chain: ChainIdentity) throws -> LogRun? {
    runsRead += 1
    return try store.run(at: place, of: chain)
  }
  func body(at place: RunPlace, of chain: ChainIdentity) throws -> [UInt8]? {
    bodiesRead += 1
    return try store.body(at: place, of: chain)
  }
  func isWritten(_ body: ArraySlice<UInt8>, at place: RunPlace, of chain: ChainIdentity) throws -> Bool {
    try store.isWritten(body, at: place, of: chain)
  }
  func scrub(
    after arrival: Int64, damagedBases: Set<Int64>, byteLimit: Int, countLimit: Int
  ) throws -> ScrubbedRuns {
    if let scrubFailure { throw scrubFailure }
    if unreadable.contains(arrival) { throw StoreError.inputOutput("a sector") }
    return try store.scrub(
      after: arrival, damagedBases: damagedBases, byteLimit: byteLimit, countLimit: countLimit)
  }
  func logChains(of partition: PartitionID) throws -> [LogChain] { try store.logChains(of: partition) }
  func runs(of chain: ChainIdentity, after sequence: UInt64, byteLimit: Int) throws -> [LogRun] {
    let runs = try store.runs(of: chain, after: sequence, byteLimit: byteLimit)
    runsRead += runs.count
    return runs
  }
  func lastRun(of chain: ChainIdentity) throws -> LogRun? { try store.lastRun(of: chain) }
  func reissues(in partition: PartitionID) throws -> Set<Reissue> { try store.reissues(in: partition) }
  func largePayload(_ hash: Digest) throws -> [UInt8]? { try store.largePayload(hash) }
  func stagedBytes(_ key: StagedKey) throws -> [UInt8] { try store.stagedBytes(key) }
  func stagedShares() throws -> [StagedShare] { try store.stagedShares() }
  func document(_ key: DocumentKey, in partition: PartitionID) throws -> LogDocument? {
    try store.document(key, in: partition)
  }
  func documentsSetAside(limit: Int) throws -> [(partition: PartitionID, key: DocumentKey)] {
    try store.documentsSetAside(limit: limit)
  }
}
