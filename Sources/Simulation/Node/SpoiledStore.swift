import Engine
import Replication

/// A store with a mistake in it. It lies below the one that the oracle watches, which takes what was called for done.
final class SpoiledStore: StoreDecorator {
  private let bug: PlantedBug
  private var calls = 0
  private var isWriting = false

  init(_ base: any LogStore & LogTransaction, _ bug: PlantedBug) {
    self.bug = bug
    super.init(base)
  }

  private func isTurn(every interval: Int) -> Bool {
    calls += 1
    return calls.isMultiple(of: interval)
  }

  override func transact<Result>(
    isBacklog: Bool, _ body: (any LogTransaction) throws -> Result
  ) throws -> Result {
    isWriting = true
    defer { isWriting = false }
    return try super.transact(isBacklog: isBacklog, body)
  }

  override func append(
    _ run: AppendedRun, to chain: ChainIdentity, genesis: @autoclosure () -> Digest
  ) throws -> Int64 {
    if bug == .runLost, isTurn(every: 5) { return Int64.max }
    guard bug == .contextForgotten else { return try super.append(run, to: chain, genesis: genesis()) }
    let bare = AppendedRun(
      first: run.first, last: run.last, context: VersionVector(), body: run.body,
      arrived: run.arrived)
    return try super.append(bare, to: chain, genesis: genesis())
  }

  override func setMarks(_ marks: ChainMarks, of chain: ChainIdentity) throws {
    if bug == .marksNotMoved, marks.received.sequence > 1 { return }
    try super.setMarks(marks, of: chain)
  }

  override func fold(_ runs: [AcceptedRun]) throws -> ChangedDocuments {
    try super.fold(bug == .foldSkipped ? [] : runs)
  }

  override func rebuild(_ documents: Set<DocumentKey>, by rebuilding: Rebuilding) throws -> ChangedDocuments {
    try super.rebuild(bug == .rebuildSkipsOne ? Set(documents.sorted().dropFirst()) : documents, by: rebuilding)
  }

  override func addLargePayload(_ payload: ApartPayload) throws {
    if bug != .payloadLost { try super.addLargePayload(payload) }
  }

  override func add(_ statement: Statement, arrived: Int64) throws {
    if bug == .declarationLost, case .replica = statement.body { return }
    try super.add(statement, arrived: arrived)
  }

  override func setReplica(_ replica: Incarnation) throws {
    if bug != .replicaForgotten { try super.setReplica(replica) }
  }

  override func setProgress(commits: UInt64, timestamp: HybridTimestamp) throws {
    if bug != .progressForgotten { try super.setProgress(commits: commits, timestamp: timestamp) }
  }

  override func document(_ key: DocumentKey, in partition: PartitionID) throws -> LogDocument? {
    if bug == .documentNotFound, isWriting, isTurn(every: 3) { return nil }
    return try super.document(key, in: partition)
  }
}
