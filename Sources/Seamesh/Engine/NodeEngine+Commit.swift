import Identity
import Replication
import Storage
import Wire

extension NodeEngine {
  /// One transaction for all that waits; then, and only then, tells peers, clients and watchers.
  func commit() {
    while !pending.isEmpty, failure == nil {
      let batch = pending
      pending = PendingCommit()
      pending.loads = batch.loads
      do {
        let done = try write(batch)
        if reissueIsOverdue { (forksToSettle, reissueIsOverdue) = (true, false) }
        flush()
        announce(batch, done)
      } catch {
        abandon(batch, NodeError(any: error))
      }
    }
    if failure != nil { refuseWrites() }
  }

  /// What a transaction brought about.
  struct Committed {
    var own: [(PartitionID, Run, [UInt8])] = []
    var receipts: [(LocalWriteJob, Result<WriteReceipt, NodeError>)] = []
    var changes = DocumentChanges()
  }

  private func write(_ batch: PendingCommit) throws -> Committed {
    isWriting = true
    defer { isWriting = false }
    if !batch.writes.isEmpty { try renewReplicaIfDue() }
    store.pace = batch.changeCount > 4_096 ? .catchUp : .live
    let (ownBefore, partitionsBefore) = (own, partitions(of: batch.writes))
    do {
      return try store.write(.full) { transaction in
        var done = Committed()
        for statement in batch.statements {
          try transaction.addStatement(id: statement.id, encoded: statement.encoded)
        }
        for (id, name) in batch.partitions { _ = try transaction.number(of: id, name: name) }
        try keep(batch.pieces, transaction)
        for (device, address) in batch.contacts {
          try transaction.noteContact(device, address: address, time: WallClock.milliseconds)
        }
        try applyRemote(batch, transaction, &done.changes)
        try rebuild(batch, transaction, &done.changes)
        if !batch.writes.isEmpty { try writeLocal(batch.writes, transaction, &done) }
        return done
      }
    } catch {
      own = ownBefore
      mesh.restore(partitionsBefore)
      throw error
    }
  }

  /// As they are before own runs are taken in, to go back to when those do not reach the disk.
  private func partitions(of writes: [LocalWriteJob]) -> [PartitionState] {
    Set(writes.map(\.partition)).compactMap { name in
      mesh.partitions[name.id(fleet: files.fleet, hash: SHA256.hash)]
    }
  }

  // MARK: Remote runs

  private func applyRemote(
    _ batch: PendingCommit, _ transaction: borrowing Transaction, _ changes: inout DocumentChanges
  ) throws {
    var accepted = AcceptedBatch()
    for applied in batch.applied {
      guard let state = mesh.partitions[applied.partition] else { continue }
      let number = try transaction.number(of: applied.partition, name: state.name)
      for run in applied.runs {
        try appendRun(run, applied.partition, number, transaction)
        guard let content = run.incoming.content as? ArrivedContent else { continue }
        try content.open?.storeApart(transaction)
        guard run.change == nil else { continue }
        accepted.append(
          content.writes, of: run.incoming.replica, in: number, context: run.context, buffer: content.buffer)
      }
    }
    try moveMarks(batch, transaction)
    let report = try DocumentFold.fold(accepted, in: transaction)
    if watchers.isWatched { changes.note(report) }
  }

  private func appendRun(
    _ run: DeliveredRun, _ partition: PartitionID, _ number: PartitionNumber, _ transaction: borrowing Transaction
  ) throws {
    let replica = run.incoming.replica
    let identity = ChainIdentity(fleet: files.fleet, partition: partition, replica: replica)
    let known = try transaction.chainNumber(number, replica)
    let chain = try known ?? transaction.number(of: replica, in: number, genesis: identity.genesis(SHA256.hash))
    try transaction.appendRun(
      chain, first: run.incoming.first, last: run.last, context: run.context, body: run.incoming.encoded)
  }

  /// Once per chain, however many of its runs came.
  private func moveMarks(_ batch: PendingCommit, _ transaction: borrowing Transaction) throws {
    var moved: [PartitionID: Set<ReplicaID>] = [:]
    for applied in batch.applied {
      moved[applied.partition, default: []].formUnion(applied.runs.lazy.map(\.incoming.replica))
    }
    for (partition, replicas) in moved {
      guard let state = mesh.partitions[partition] else { continue }
      let number = try transaction.number(of: partition)
      for replica in replicas {
        guard let chain = try transaction.chainNumber(number, replica) else { continue }
        try setMarks(of: chain, replica, state, transaction)
      }
    }
  }

  /// `accepted` is the chain's trunk: below it nothing is forked or held, above it the log is learned anew at start.
  func setMarks(
    of chain: ChainNumber, _ replica: ReplicaID, _ state: PartitionState, _ transaction: borrowing Transaction
  ) throws {
    let trunk = state.log.trunk(of: replica)
    let received = state.log.received[replica]
    let mark = ChainMark(sequence: trunk.sequence, hash: trunk.hash)
    let reached =
      received.map { $0.sequence == trunk.sequence } ?? true
      ? mark : ChainMark(sequence: received?.sequence ?? 0, hash: trunk.hash)
    // Of a forked chain the lost branch must be learned again at start, however short the chosen one is.
    let forked = state.log.forkPoints[replica] == nil ? nil : "forked"
    try transaction.setMarks(of: chain, received: reached, accepted: mark, holdReason: forked)
  }

  /// Pieces of payloads that are not here yet.
  private func keep(_ pieces: [PayloadPiece], _ transaction: borrowing Transaction) throws {
    for piece in pieces where try transaction.largePayload(piece.hash) == nil {
      try transaction.addPiece(of: piece.hash, start: Int(piece.offset), bytes: piece.bytes)
    }
  }

  // MARK: Rebuilding

  /// Accepted positions moved other than by plain delivery: the documents concerned are computed anew from the log.
  private func rebuild(
    _ batch: PendingCommit, _ transaction: borrowing Transaction, _ changes: inout DocumentChanges
  ) throws {
    var moved: [PartitionID: [LogChange]] = [:]
    for (partition, change) in batch.rebuilds { moved[partition, default: []].append(change) }
    for applied in batch.applied {
      for run in applied.runs { if let change = run.change { moved[applied.partition, default: []].append(change) } }
    }
    for partition in moved.keys.sorted() {
      guard let state = mesh.partitions[partition], let changed = moved[partition] else { continue }
      let number = try transaction.number(of: partition, name: state.name)
      for reissue in state.log.knownReissues { try transaction.addReissue(reissue, in: number) }
      if !state.log.forkPoints.isEmpty { forksToSettle = true }
      let report = try DocumentRebuild(fleet: files.fleet, partition: partition, number: number, state: state)
        .run(changed, transaction)
      changes.note(report)
      for replica in Set(changed.flatMap { $0.acceptance.map(\.replica) }) {
        guard let chain = try transaction.chainNumber(number, replica) else { continue }
        try setMarks(of: chain, replica, state, transaction)
      }
    }
  }

  // MARK: Afterwards

  func announce(_ batch: PendingCommit, _ done: Committed) {
    if !batch.pieces.isEmpty || !batch.applied.isEmpty { refreshStaged() }
    for applied in batch.applied {
      let runs = applied.runs.map(\.logged)
      deliver(.committed(applied.partition, source: applied.source, runs))
    }
    for (partition, run, encoded) in done.own {
      let logged = LoggedRun(
        replica: run.record.chain.replica, first: run.record.first, last: run.record.last,
        hashBefore: run.record.hashBefore, context: run.record.context, encoded: encoded[...], apart: run.apart)
      deliver(.committed(partition, source: nil, [logged]))
    }
    for (job, result) in done.receipts { job.reply.fulfil(result) }
    watchers.publish(done.changes)
  }

  /// Nothing of it was written. Remote runs come again after a new session; local writers hear why.
  func abandon(_ batch: PendingCommit, _ error: NodeError) {
    log.error("writing the store failed", ["reason": error.message])
    for job in batch.writes { job.reply.fulfil(.failure(error)) }
    if store.failure != nil {
      failure = error
      demandRenewal(.inputOutputError)
    }
    // Own writes alone are undone already; sessions need not suffer for a full disk.
    guard failure != nil || !batch.applied.isEmpty || !batch.statements.isEmpty || !batch.rebuilds.isEmpty else {
      return flush()
    }
    // What the mesh took in is not on disk: begin again from what is.
    restartMesh()
  }

  func refreshStaged() { mesh.staged = attempt([]) { try store.stagedPayloads(limit: PartitionVector.stagedLimit) } }

  private func refuseWrites() {
    guard let failure else { return }
    for job in pending.writes { job.reply.fulfil(.failure(failure)) }
    pending.writes = []
  }
}

extension DeliveredRun {
  fileprivate var logged: LoggedRun {
    LoggedRun(
      replica: incoming.replica, first: incoming.first, last: last, hashBefore: incoming.hashBefore,
      hashAtLast: incoming.hashes.last, context: context, encoded: incoming.encoded,
      apart: (incoming.content as? ArrivedContent)?.apartPayload)
  }
}

extension Run {
  fileprivate var apart: ApartPayload? {
    guard changes.count == 1, changes[0].payload.count > Run.inlinePayloadByteLimit else { return nil }
    return ApartPayload(hash: changes[0].header.payloadHash, bytes: changes[0].payload)
  }
}
