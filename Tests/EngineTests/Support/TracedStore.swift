import Engine
import Replication
import Storage

/// The real store, and a note of when each of its transactions begins and ends.
final class TracedStore: LogStore {
  let store: Store
  private let trace: TraceBook
  /// Whether each transaction was said to be part of a backlog.
  private(set) var backlogs: [Bool] = []

  init(_ store: Store, _ trace: TraceBook) { (self.store, self.trace) = (store, trace) }

  var storeID: UUIDValue { store.storeID }
  var hasFailed: Bool { store.hasFailed }
  var totals: LogTotals { store.totals }

  func transact<Result>(isBacklog: Bool, _ body: (any LogTransaction) throws -> Result) throws -> Result {
    trace.note(.began)
    backlogs.append(isBacklog)
    do {
      let result = try store.transact(isBacklog: isBacklog, body)
      trace.note(.committed)
      return result
    } catch {
      trace.note(.undone)
      throw error
    }
  }

  func statementBytes() throws -> [[UInt8]] { try store.statementBytes() }
  func subscriptions() throws -> [Text] { try store.subscriptions() }
  func invitations() throws -> [Invitation] { try store.invitations() }
  func holdings() throws -> [KeptHoldings] { try store.holdings() }
  func ownFacts() throws -> OwnFacts { try store.ownFacts() }
  func logPartitions() throws -> [LogPartition] { try store.logPartitions() }
  func logChains() throws -> [LogChain] { try store.logChains() }
  func runs(of chain: ChainIdentity, after sequence: UInt64, byteLimit: Int) throws -> [LogRun] {
    try store.runs(of: chain, after: sequence, byteLimit: byteLimit)
  }
  func lastRun(of chain: ChainIdentity) throws -> LogRun? { try store.lastRun(of: chain) }
  func reissues(in partition: PartitionID) throws -> Set<Reissue> { try store.reissues(in: partition) }
  func largePayload(_ hash: Digest) throws -> [UInt8]? { try store.largePayload(hash) }
  func stagedBytes(_ key: StagedKey) throws -> [UInt8] { try store.stagedBytes(key) }
  func stagedShares() throws -> [StagedShare] { try store.stagedShares() }
  func document(_ key: DocumentKey, in partition: PartitionID) throws -> LogDocument? {
    try store.document(key, in: partition)
  }
}
