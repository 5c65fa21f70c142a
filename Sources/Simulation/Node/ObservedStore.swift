import Engine
import Replication

/// What one transaction wrote, as an onlooker notes it.
struct ObservedCommit {
  struct Appended {
    let chain: ChainIdentity
    let run: AppendedRun
  }

  var appended: [Appended] = []
  var statements: [Statement] = []
  var removedStatements: [Digest] = []
  var partitions: [PartitionID: PartitionName] = [:]
  var payloads: [ApartPayload] = []
  var holdings: [(kept: KeptHoldings, partition: PartitionID)] = []
}

/// The power is gone: whatever the engine still does has no effect.
struct PowerLost: StoreFailure {
  var isFatal: Bool { false }
}

/// Tells the world of every transaction that became durable, and loses power where that is planned.
final class ObservedStore: StoreDecorator {
  enum CrashPoint { case beforeCommit, afterCommit }

  private var commit = ObservedCommit()
  var crashPoint: CrashPoint?
  private(set) var hasLostPower = false
  var began: () -> Void = {}
  var committed: (ObservedCommit) -> Void = { _ in }
  /// Throws where the disk takes nothing now.
  var refuse: () throws -> Void = {}

  override func transact<Result>(
    isBacklog: Bool, _ body: (any LogTransaction) throws -> Result
  ) throws -> Result {
    try losePower(at: .beforeCommit)
    try refuse()
    commit = ObservedCommit()
    began()
    let result = try super.transact(isBacklog: isBacklog, body)
    committed(commit)
    try losePower(at: .afterCommit)
    return result
  }

  private func losePower(at point: CrashPoint) throws(PowerLost) {
    if crashPoint == point { hasLostPower = true }
    if hasLostPower { throw PowerLost() }
  }

  override func add(_ statement: Statement, arrived: Int64) throws {
    try super.add(statement, arrived: arrived)
    commit.statements.append(statement)
  }

  override func removeStatement(_ id: Digest) throws {
    try super.removeStatement(id)
    commit.removedStatements.append(id)
  }

  override func addPartition(_ id: PartitionID, _ name: PartitionName) throws {
    try super.addPartition(id, name)
    commit.partitions[id] = name
  }

  override func append(
    _ run: AppendedRun, to chain: ChainIdentity, genesis: @autoclosure () -> Digest
  ) throws -> Int64 {
    commit.appended.append(ObservedCommit.Appended(chain: chain, run: run))
    return try super.append(run, to: chain, genesis: genesis())
  }

  override func put(_ kept: KeptHoldings, in partition: PartitionID) throws {
    try super.put(kept, in: partition)
    commit.holdings.append((kept, partition))
  }

  override func addLargePayload(_ payload: ApartPayload) throws {
    try super.addLargePayload(payload)
    commit.payloads.append(payload)
  }
}
