import Engine
import Replication
import Wire

// The store as the engine's log: the engine speaks of partitions and chains by their ids, the store by its short numbers.
extension Store: LogStore {
  package var storeID: UUIDValue { id }
  package var hasFailed: Bool { failure != nil }
  package var totals: LogTotals { LogTotals(counters) }

  package func transact<Result>(
    isBacklog: Bool, _ body: (any LogTransaction) throws -> Result
  ) throws -> Result {
    pace = isBacklog ? .catchUp : .live
    return try write(.full, carriesOver: false) { _ in try body(self) }
  }
}

extension Store: LogReading {
  package func statementBytes() throws -> [[UInt8]] { try statements().map(\.encoded) }

  package func ownFacts() throws -> OwnFacts {
    var facts = OwnFacts()
    facts.commits = try integer(.ownCommits) ?? 0
    facts.timestamp = HybridTimestamp(rawValue: try integer(.timestamp) ?? 0)
    facts.isRestored = try meta(.restored) != nil
    facts.understanding = try meta(.understanding)
    facts.isLogDamaged = try meta(.logDamaged) != nil
    if let id = try meta(.replica).flatMap({ ReplicaID($0) }),
      let nonce = try meta(.replicaNonce).flatMap({ UUIDValue($0) })
    {
      facts.replica = Incarnation(id: id, nonce: nonce)
    }
    return facts
  }

  package func logPartitions() throws -> [LogPartition] {
    try partitions().compactMap { stored in
      guard let name = stored.name else { return nil }
      var counters = stored.counters
      // Of the transaction that asks: rows are brought up to date when it commits.
      if let pending = changedCounters[stored.number] { counters += pending }
      return LogPartition(id: stored.id, name: name, totals: LogTotals(counters))
    }
  }

  package func logChains() throws -> [LogChain] {
    let partitions = Dictionary(try partitions().map { ($0.number, $0.id) }) { first, _ in first }
    return try chains().compactMap { chain in
      partitions[chain.number.partition].map { LogChain(partition: $0, replica: chain.replica, marks: chain.marks) }
    }
  }

  package func logChains(of partition: PartitionID) throws -> [LogChain] {
    guard let number = try partitionNumber(partition) else { return [] }
    return try chains(of: number).map { LogChain(partition: partition, replica: $0.replica, marks: $0.marks) }
  }

  package func runs(of chain: ChainIdentity, after sequence: UInt64, byteLimit: Int) throws -> [LogRun] {
    guard let number = try number(of: chain) else { return [] }
    return try runs(of: number, after: sequence, byteLimit: byteLimit).map(LogRun.init)
  }

  package func places(of chain: ChainIdentity, after sequence: UInt64, limit: Int) throws -> [RunPlace] {
    try number(of: chain).map { try places(of: $0, after: sequence, limit: limit) } ?? []
  }

  package func ends(beforeRunsBehind arrival: Int64) throws -> [PartitionID: [ReplicaID: UInt64]] {
    try lowestEnds(behind: arrival)
  }

  package func run(at place: RunPlace, of chain: ChainIdentity) throws -> LogRun? {
    guard let partition = try partitionNumber(chain.partition) else { return nil }
    return try run(at: place.arrival, in: partition).map(LogRun.init)
  }

  package func body(at place: RunPlace, of chain: ChainIdentity) throws -> [UInt8]? {
    try number(of: chain).flatMap { try body(ofRunAt: place.arrival, of: $0) }
  }

  package func isWritten(_ body: ArraySlice<UInt8>, at place: RunPlace, of chain: ChainIdentity) throws -> Bool {
    try number(of: chain).map { try isWritten(body, asRunAt: place.arrival, of: $0) } ?? false
  }

  package func scrub(
    after arrival: Int64, damagedBases: Set<Int64>, byteLimit: Int, countLimit: Int
  ) throws -> ScrubbedRuns {
    try scrubRuns(
      cameAfter: arrival, damagedBases: damagedBases, byteLimit: byteLimit, countLimit: countLimit)
  }

  package func lastRun(of chain: ChainIdentity) throws -> LogRun? {
    try number(of: chain).flatMap { try lastRun(of: $0) }.map(LogRun.init)
  }

  package func reissues(in partition: PartitionID) throws -> Set<Reissue> {
    try partitionNumber(partition).map { try reissues(in: $0) } ?? []
  }

  package func document(_ key: DocumentKey, in partition: PartitionID) throws -> LogDocument? {
    guard let number = try partitionNumber(partition), let collection = try collectionNumber(key.collection) else {
      return nil
    }
    return try document(number, collection, key: key.id).map {
      LogDocument(row: $0.row, isAlive: $0.isAlive, state: $0.state, isIntact: $0.isIntact)
    }
  }

  package func documentsSetAside(limit: Int) throws -> [(partition: PartitionID, key: DocumentKey)] {
    let rows = try database.statement(
      """
      SELECT p.hash, c.name, d.key FROM documents d JOIN partitions p ON p.id=d.partition
      JOIN collections c ON c.id=d.collection
      WHERE d.run IS NULL AND (length(d.state)=0 OR substr(d.state,1,1)=?2) LIMIT ?1
      """)
    defer { rows.reset() }
    try rows.bind(1, Int64(limit))
    try rows.bind(2, copied: [DocumentStateCodec.setAsideByte])
    var found: [(partition: PartitionID, key: DocumentKey)] = []
    while try rows.step() {
      guard let partition = Digest(rows.bytes(0)) else { throw StoreError.damaged("a partition's id") }
      found.append((PartitionID(partition), DocumentKey(collection: Text(rows.text(1)), id: rows.bytes(2))))
    }
    return found
  }

  private func number(of chain: ChainIdentity) throws(StoreError) -> ChainNumber? {
    guard let partition = try partitionNumber(chain.partition) else { return nil }
    return try chainNumber(partition, chain.replica)
  }
}

/// Valid within ``Store/transact(isBacklog:_:)`` alone, where SQLite has a transaction open.
extension Store: LogTransaction {
  private var transaction: Transaction {
    precondition(database.isInTransaction, "a write outside of a transaction")
    return Transaction(store: self)
  }

  package func add(_ statement: Statement, arrived: Int64) throws {
    try transaction.addStatement(id: statement.id, encoded: statement.encoded, arrived: arrived)
  }

  package func removeStatement(_ id: Digest) throws { try transaction.removeStatement(id) }

  package func setReplica(_ replica: Incarnation) throws {
    try transaction.setMeta(replica.id.bytes, for: .replica)
    try transaction.setMeta(replica.nonce.bytes, for: .replicaNonce)
    try transaction.setMeta(nil, for: .restored)
  }

  package func setUnderstanding(_ understanding: [UInt8]) throws {
    try transaction.setMeta(understanding, for: .understanding)
  }

  package func setLogDamaged(_ isDamaged: Bool) throws {
    try transaction.setMeta(isDamaged ? [] : nil, for: .logDamaged)
  }

  package func setProgress(commits: UInt64, timestamp: HybridTimestamp) throws {
    try transaction.setInteger(commits, for: .ownCommits)
    try transaction.setInteger(timestamp.rawValue, for: .timestamp)
  }

  package func subscribe(_ pattern: Text) throws { try transaction.subscribe(pattern) }
  package func unsubscribe(_ pattern: Text) throws { try transaction.unsubscribe(pattern) }

  package func noteContact(_ device: DeviceID, address: String?, time: Int64) throws {
    try transaction.noteContact(device, address: address, time: time)
  }

  package func addPartition(_ id: PartitionID, _ name: PartitionName) throws {
    _ = try transaction.number(of: id, name: name)
  }

  package func removePartition(_ id: PartitionID) throws { try transaction.removeEmptyPartition(id) }

  package func append(
    _ run: AppendedRun, to chain: ChainIdentity, genesis: @autoclosure () -> Digest
  ) throws -> Int64 {
    let partition = try transaction.number(of: chain.partition)
    let number =
      try chainNumber(partition, chain.replica)
      ?? transaction.number(of: chain.replica, in: partition, genesis: genesis())
    return try transaction.appendRun(
      number, first: run.first, last: run.last, context: run.context, body: run.body, arrived: run.arrived)
  }

  package func replaceRun(at arrival: Int64, with run: AppendedRun, of chain: ChainIdentity) throws {
    guard let number = try number(of: chain) else { throw StoreError.damagedLog("a chain is not where it was") }
    try transaction.replaceRun(
      at: arrival, of: number, first: run.first, last: run.last, context: run.context, body: run.body)
  }

  package func noteRebuild(of partition: PartitionID) throws {
    try transaction.noteRebuild(of: try transaction.number(of: partition))
  }

  package func setMarks(_ marks: ChainMarks, of chain: ChainIdentity) throws {
    guard let number = try number(of: chain) else { return }
    try transaction.setMarks(
      of: number, received: ChainMark(marks.received), accepted: ChainMark(marks.accepted),
      holdReason: marks.isForked ? "forked" : nil)
  }

  package func add(_ reissue: Reissue, in partition: PartitionID) throws {
    try transaction.addReissue(reissue, in: try transaction.number(of: partition))
  }

  package func put(_ invitation: Invitation) throws { try transaction.put(invitation) }
  package func removeInvitation(_ serial: UInt64) throws { try transaction.removeInvitation(serial) }
  package func put(_ kept: KeptHoldings, in partition: PartitionID) throws { try transaction.put(kept, in: partition) }

  package func addPiece(_ bytes: ArraySlice<UInt8>, to share: StagedShare) throws {
    try transaction.addPiece(bytes, to: share)
  }

  package func removePieces(_ key: StagedKey) throws { try transaction.removePieces(key) }

  package func addLargePayload(_ payload: ApartPayload) throws {
    try transaction.addLargePayload(payload.hash, bytes: payload.bytes)
  }

  package func store(
    _ new: LogDocument, over old: LogDocument?, as key: DocumentKey, in partition: PartitionID
  ) throws {
    let number = try transaction.number(of: partition)
    let collection = try transaction.number(ofCollection: key.collection)
    if let old, let row = old.row {
      let present = DocumentRow(row: row, key: key.id, isAlive: old.isAlive, state: old.state)
      return try transaction.replace(present, in: number, collection, isAlive: new.isAlive, state: new.state)
    }
    guard try transaction.insertNew(number, collection, key: key.id, isAlive: new.isAlive, state: new.state) else {
      throw StoreError.damaged("a document is there that was not found")
    }
  }

  package func fold(_ runs: [AcceptedRun]) throws -> ChangedDocuments {
    var batch = AcceptedBatch()
    var partitions: [PartitionNumber: PartitionID] = [:]
    for run in runs {
      let number = try transaction.number(of: run.partition)
      partitions[number] = run.partition
      batch.append(
        run.documents.writes, of: run.replica, in: number, context: run.context, sight: run.sight,
        buffer: run.documents.buffer, arrival: run.documents.apart == nil ? run.arrival : nil)
    }
    return try changed(try DocumentFold.fold(batch, in: transaction), partitions)
  }

  package func rebuild(_ documents: Set<DocumentKey>, by rebuilding: Rebuilding) throws -> ChangedDocuments {
    let number = try transaction.number(of: rebuilding.partition)
    try transaction.noteRebuild(of: number)
    let log = DocumentFold.Log(
      fleet: rebuilding.fleet, partition: rebuilding.partition, number: number, hash: rebuilding.hash,
      formats: rebuilding.formats)
    let report = try DocumentFold.rebuild(
      documents, of: log, in: transaction, accepted: rebuilding.accepted, context: rebuilding.context)
    return try changed(report, [number: rebuilding.partition])
  }

  private func changed(
    _ report: FoldReport, _ partitions: [PartitionNumber: PartitionID]
  ) throws(StoreError) -> ChangedDocuments {
    var places: [ChangedDocuments.Place] = []
    for scope in report.scopes {
      guard let partition = partitions[scope.partition] else { throw .damaged("a fold went to another partition") }
      places.append(
        ChangedDocuments.Place(partition: partition, collection: try collectionName(scope.collection)))
    }
    var changed = ChangedDocuments(keys: report.keys, places: places, items: report.places)
    for (scope, key) in report.damaged {
      guard let partition = partitions[scope.partition] else { throw .damaged("a fold went to another partition") }
      let document = DocumentKey(collection: try collectionName(scope.collection), id: Array(report.keys[key]))
      changed.damaged[partition, default: []].insert(document)
    }
    return changed
  }
}

extension StoreError: StoreFailure {}

extension ChainMark {
  fileprivate init(_ mark: Engine.ChainMark) { self.init(sequence: mark.sequence, hash: mark.hash) }
  fileprivate var mark: Engine.ChainMark { Engine.ChainMark(sequence: sequence, hash: hash) }
}

extension LogTotals {
  fileprivate init(_ counters: Counters) {
    self.init(documents: counters.documents, changes: counters.changes, logBytes: counters.logBytes)
  }
}

extension StoredChain {
  fileprivate var marks: ChainMarks {
    ChainMarks(received: received.mark, accepted: accepted.mark, isForked: holdReason != nil)
  }
}

extension LogRun {
  fileprivate init(_ run: StoredRun) {
    self.init(
      arrival: run.arrival, first: run.first, last: run.last, context: run.context, body: run.body, hasSum: run.hasSum)
  }
}
