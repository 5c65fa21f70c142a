import Engine
import Replication
import Wire

/// A store that hands every call on to another. What is to be watched or spoiled is overridden.
class StoreDecorator: LogStore, LogTransaction {
  let base: any LogStore & LogTransaction

  init(_ base: any LogStore & LogTransaction) { self.base = base }

  var storeID: UUIDValue { base.storeID }
  var hasFailed: Bool { base.hasFailed }
  var totals: LogTotals { base.totals }

  func transact<Result>(isBacklog: Bool, _ body: (any LogTransaction) throws -> Result) throws -> Result {
    try base.transact(isBacklog: isBacklog) { _ in try body(self) }
  }

  func carryOver(_ occasion: CarryOccasion) throws { try base.carryOver(occasion) }
  var carryDelay: UInt64? { base.carryDelay }

  func statementBytes() throws -> [[UInt8]] { try base.statementBytes() }
  func subscriptions() throws -> [Text] { try base.subscriptions() }
  func invitations() throws -> [Invitation] { try base.invitations() }
  func holdings() throws -> [KeptHoldings] { try base.holdings() }
  func ownFacts() throws -> OwnFacts { try base.ownFacts() }
  func logPartitions() throws -> [LogPartition] { try base.logPartitions() }
  func logChains() throws -> [LogChain] { try base.logChains() }
  func places(of chain: ChainIdentity, after sequence: UInt64, limit: Int) throws -> [RunPlace] {
    try base.places(of: chain, after: sequence, limit: limit)
  }
  func ends(beforeRunsBehind arrival: Int64) throws -> [PartitionID: [ReplicaID: UInt64]] {
    try base.ends(beforeRunsBehind: arrival)
  }
  func run(at place: RunPlace, of chain: ChainIdentity) throws -> LogRun? { try base.run(at: place, of: chain) }
  func body(at place: RunPlace, of chain: ChainIdentity) throws -> [UInt8]? { try base.body(at: place, of: chain) }
  func isWritten(_ body: ArraySlice<UInt8>, at place: RunPlace, of chain: ChainIdentity) throws -> Bool {
    try base.isWritten(body, at: place, of: chain)
  }
  func scrub(
    after arrival: Int64, damagedBases: Set<Int64>, byteLimit: Int, countLimit: Int
  ) throws -> ScrubbedRuns {
    try base.scrub(after: arrival, damagedBases: damagedBases, byteLimit: byteLimit, countLimit: countLimit)
  }
  func logChains(of partition: PartitionID) throws -> [LogChain] { try base.logChains(of: partition) }
  func runs(of chain: ChainIdentity, after sequence: UInt64, byteLimit: Int) throws -> [LogRun] {
    try base.runs(of: chain, after: sequence, byteLimit: byteLimit)
  }
  func lastRun(of chain: ChainIdentity) throws -> LogRun? { try base.lastRun(of: chain) }
  func reissues(in partition: PartitionID) throws -> Set<Reissue> { try base.reissues(in: partition) }
  func largePayload(_ hash: Digest) throws -> [UInt8]? { try base.largePayload(hash) }
  func stagedBytes(_ key: StagedKey) throws -> [UInt8] { try base.stagedBytes(key) }
  func stagedShares() throws -> [StagedShare] { try base.stagedShares() }
  func document(_ key: DocumentKey, in partition: PartitionID) throws -> LogDocument? {
    try base.document(key, in: partition)
  }
  func documentsSetAside(limit: Int) throws -> [(partition: PartitionID, key: DocumentKey)] {
    try base.documentsSetAside(limit: limit)
  }

  func add(_ statement: Statement, arrived: Int64) throws { try base.add(statement, arrived: arrived) }
  func removeStatement(_ id: Digest) throws { try base.removeStatement(id) }
  func setReplica(_ replica: Incarnation) throws { try base.setReplica(replica) }
  func setUnderstanding(_ understanding: [UInt8]) throws { try base.setUnderstanding(understanding) }
  func setLogDamaged(_ isDamaged: Bool) throws { try base.setLogDamaged(isDamaged) }
  func setProgress(commits: UInt64, timestamp: HybridTimestamp) throws {
    try base.setProgress(commits: commits, timestamp: timestamp)
  }
  func subscribe(_ pattern: Text) throws { try base.subscribe(pattern) }
  func unsubscribe(_ pattern: Text) throws { try base.unsubscribe(pattern) }
  func put(_ invitation: Invitation) throws { try base.put(invitation) }
  func removeInvitation(_ serial: UInt64) throws { try base.removeInvitation(serial) }
  func put(_ kept: KeptHoldings, in partition: PartitionID) throws { try base.put(kept, in: partition) }
  func noteContact(_ device: DeviceID, address: String?, time: Int64) throws {
    try base.noteContact(device, address: address, time: time)
  }
  func addPartition(_ id: PartitionID, _ name: PartitionName) throws { try base.addPartition(id, name) }
  func removePartition(_ id: PartitionID) throws { try base.removePartition(id) }
  func append(
    _ run: AppendedRun, to chain: ChainIdentity, genesis: @autoclosure () -> Digest
  ) throws -> Int64 {
    try base.append(run, to: chain, genesis: genesis())
  }
  func replaceRun(at arrival: Int64, with run: AppendedRun, of chain: ChainIdentity) throws {
    try base.replaceRun(at: arrival, with: run, of: chain)
  }
  func noteRebuild(of partition: PartitionID) throws { try base.noteRebuild(of: partition) }
  func setMarks(_ marks: ChainMarks, of chain: ChainIdentity) throws { try base.setMarks(marks, of: chain) }
  func add(_ reissue: Reissue, in partition: PartitionID) throws { try base.add(reissue, in: partition) }
  func addPiece(_ bytes: ArraySlice<UInt8>, to share: StagedShare) throws { try base.addPiece(bytes, to: share) }
  func removePieces(_ key: StagedKey) throws { try base.removePieces(key) }
  func addLargePayload(_ payload: ApartPayload) throws { try base.addLargePayload(payload) }
  func store(_ new: LogDocument, over old: LogDocument?, as key: DocumentKey, in partition: PartitionID) throws {
    try base.store(new, over: old, as: key, in: partition)
  }
  func fold(_ runs: [AcceptedRun]) throws -> ChangedDocuments { try base.fold(runs) }
  func rebuild(_ documents: Set<DocumentKey>, by rebuilding: Rebuilding) throws -> ChangedDocuments {
    try base.rebuild(documents, by: rebuilding)
  }
}
