import Replication
import Wire

/// Writes what waits, within one transaction.
struct CommitWriter {
  let state: EngineState
  let transaction: any LogTransaction
  var done = Committed()
  /// A chain is forked: own work may have been put aside.
  private(set) var sawFork = false

  init(_ state: EngineState, _ transaction: any LogTransaction) {
    (self.state, self.transaction) = (state, transaction)
    done.staged = state.staged
  }

  mutating func write(_ batch: PendingCommit) throws {
    for id in batch.displaced { try transaction.removeStatement(id) }
    // What came and fell out again within one commit is not written at all.
    for statement in batch.statements where state.mesh.ledger.authority.holds(statement.id) {
      try transaction.add(statement, arrived: state.clock.wallMilliseconds)
    }
    for piece in batch.pieces { try add(piece) }
    for (device, address) in batch.contacts {
      try transaction.noteContact(device, address: address, time: state.clock.wallMilliseconds)
    }
    // In the transaction of what it speaks of, or after it.
    for (record, _) in batch.holdings {
      try transaction.put(record, in: state.identity.id(of: record.holdings.partition))
    }
    try applyRemote(batch)
    try rebuild(batch.moved)
    for owed in batch.reissues { try issueAgain(owed) }
    if !batch.writes.isEmpty {
      var writer = LocalWriter(state, transaction)
      try writer.write(batch.writes, &done)
    }
    // They came behind the writes: a partition that has something by now is not removed with the wish for it.
    for job in batch.subscriptions { try subscribe(job) }
    if !state.mesh.ledger.unread.isEmpty { try oweDocuments() }
    // A transaction that judges nothing leaves no trace of this.
    let isOwing = state.owesDocuments || done.owesDocuments
    if !state.hasNotedUnderstanding, !isOwing, batch.isAheadOfDisk || !done.own.isEmpty {
      try transaction.setUnderstanding(state.identity.cryptography.formats.understanding)
      done.hasNotedUnderstanding = true
    }
    guard !done.own.isEmpty else { return }
    try transaction.setProgress(commits: state.own.commits, timestamp: state.own.lastTimestamp)
  }

  /// Of which something was written.
  func partitions(of batch: PendingCommit) -> Set<PartitionID> {
    Set(batch.applied.map(\.partition) + batch.rebuilds.map(\.0) + done.own.map(\.partition))
  }

  // MARK: Subscriptions

  private mutating func subscribe(_ job: SubscriptionJob) throws {
    if job.isWanted {
      try transaction.subscribe(job.pattern)
      if !Interest(pattern: job.pattern, state.identity).partitions.isEmpty, let name = try? PartitionName(job.pattern)
      {
        try transaction.addPartition(state.identity.id(of: name), name)
      }
    } else {
      try transaction.unsubscribe(job.pattern)
      for partition in state.unused(without: job.pattern) {
        try transaction.removePartition(partition)
        done.forgotten.append(partition)
      }
    }
  }

  // MARK: Remote runs

  private mutating func applyRemote(_ batch: PendingCommit) throws {
    var accepted: [AcceptedRun] = []
    var moved: [PartitionID: Set<ReplicaID>] = [:]
    for applied in batch.applied {
      let partition = applied.partition
      guard let name = state.look(at: partition, \.name) else {
        Invariant.check(applied.runs.isEmpty, "runs were kept of a partition that memory has nothing of")
        continue
      }
      try transaction.addPartition(partition, name)
      for run in applied.runs {
        let arrival = try append(run, partition)
        moved[partition, default: []].insert(run.incoming.replica)
        guard run.change == nil else { continue }
        let author = Dot(replica: run.incoming.replica, sequence: run.incoming.first)
        let sight = state.look(at: partition) { $0.log.sight(of: run.context, author: author) }
        accepted.append(
          AcceptedRun(
            partition: partition, replica: author.replica, context: run.context, sight: sight ?? .plain,
            documents: run.incoming.documents, arrival: arrival))
      }
    }
    // Once per chain, however many of its runs came.
    for (partition, replicas) in moved.sorted(by: { $0.key < $1.key }) { try setMarks(of: replicas, in: partition) }
    let folded = try transaction.fold(accepted)
    done.documents.append(folded)
    for (partition, keys) in folded.damaged.sorted(by: { $0.key < $1.key }) {
      try makeUp(for: keys, passedOverIn: partition)
    }
  }

  /// The run's place in the log.
  private mutating func append(_ run: DeliveredRun, _ partition: PartitionID) throws -> Int64 {
    let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: run.incoming.replica)
    let appended = AppendedRun(
      first: run.incoming.first, last: run.last, context: run.context, body: run.incoming.encoded,
      arrived: state.clock.wallMilliseconds)
    let place = try place(ofStored: appended, endingIn: run.incoming.hashes.last, chain)
    let hash = state.identity.cryptography.hash
    let arrival = try place ?? transaction.append(appended, to: chain, genesis: chain.genesis(hash))
    if place == nil { done.noteArrival(arrival) }
    guard let payload = run.incoming.documents.apart else { return arrival }
    try transaction.addLargePayload(payload)
    for key in done.staged.keys(of: payload.hash) { try removePieces(key) }
    return arrival
  }

  /// In the order of the replicas: one seed has to leave one sequence of writes.
  func setMarks(of replicas: Set<ReplicaID>, in partition: PartitionID) throws {
    for replica in replicas.sorted() {
      guard let marks = state.look(at: partition, { $0.log.marks(of: replica) }) else { return }
      let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: replica)
      try transaction.setMarks(marks, of: chain)
    }
  }

  mutating func noteFork() { sawFork = true }
}

extension PartitionLog {
  /// How far a chain is received and accepted, as the store notes it.
  func marks(of replica: ReplicaID) -> ChainMarks {
    let trunk = trunk(of: replica)
    let accepted = ChainMark(sequence: trunk.sequence, hash: trunk.hash)
    // Above the trunk the hash is found in the log.
    let reached = max(received.sequence(of: replica), trunk.sequence)
    return ChainMarks(
      received: ChainMark(sequence: reached, hash: trunk.hash), accepted: accepted,
      // Of one that is not all here the next opening looks at all that is stored, too.
      isForked: forkPoints[replica] != nil || incompleteChains.contains(replica))
  }
}
