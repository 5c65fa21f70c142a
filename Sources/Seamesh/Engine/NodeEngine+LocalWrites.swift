import Identity
import Replication
import Storage
import Wire

extension NodeEngine {
  /// Each job becomes one change. A refused one does not touch the others; a failing disk fails them all.
  func writeLocal(
    _ jobs: [LocalWriteJob], _ transaction: borrowing Transaction, _ done: inout Committed
  ) throws {
    var writer = LocalWriter(engine: self)
    for job in jobs {
      do throws(NodeError) {
        done.receipts.append((job, .success(try writer.write(job, transaction, &done))))
      } catch {
        // A failure of the store ends the transaction; anything else is this job's alone.
        if let failure = writer.storeFailure { throw failure }
        done.receipts.append((job, .failure(error)))
      }
    }
    try writer.close(transaction, &done)
    try transaction.setInteger(own.commits, for: .ownCommits)
    try transaction.setInteger(own.lastTimestamp.rawValue, for: .timestamp)
  }
}

/// Turns requests into changes and changes into signed runs, within one transaction.
struct LocalWriter {
  let engine: NodeEngine
  private(set) var storeFailure: (any Error)?
  private var open: [PartitionID: RunBuilder] = [:]
  private var contexts: [PartitionID: VersionVector] = [:]
  /// Partitions that this device may write to; statements do not change within a transaction.
  private var permitted: Set<PartitionID> = []

  init(engine: NodeEngine) { self.engine = engine }

  mutating func write(
    _ job: LocalWriteJob, _ transaction: borrowing Transaction, _ done: inout NodeEngine.Committed
  ) throws(NodeError) -> WriteReceipt {
    let partition = job.partition.id(fleet: engine.files.fleet, hash: SHA256.hash)
    do {
      try permit(partition, job.partition)
      let number = try transaction.number(of: partition, name: job.partition)
      let replica = try engine.own.current()
      let place = try openRun(for: partition, replica.id, transaction)
      var composer = DocumentComposer(partition: partition, number: number, dot: place.dot)
      for request in job.requests { try composer.add(request, transaction, random: &engine.random) }
      guard !composer.writes.isEmpty else { return composer.receipt(dot: nil) }
      let change = try composer.change(
        timestamp: engine.own.nextTimestamp(), wall: WallTime(milliseconds: WallClock.milliseconds),
        context: place.context)
      try add(change, partition, replica.id, transaction, &done)
      try composer.store(change, transaction, &done.changes)
      engine.own.commits += 1
      return composer.receipt(dot: change.dot)
    } catch {
      if let error = error as? StoreError { storeFailure = error }
      throw NodeError(any: error)
    }
  }

  private mutating func permit(_ partition: PartitionID, _ name: PartitionName) throws(NodeError) {
    guard !permitted.contains(partition) else { return }
    guard engine.mesh.authority.level(of: engine.mesh.local.device, in: name) >= .write else {
      throw NodeError(.notPermitted, "this device may not write to \(name.text.string)")
    }
    permitted.insert(partition)
  }

  /// Where the next change of this partition stands. Begins a run where none is open; its context is what is accepted now.
  private mutating func openRun(
    for partition: PartitionID, _ replica: ReplicaID, _ transaction: borrowing Transaction
  ) throws -> (dot: Dot, context: VersionVector) {
    // Not the builder itself: a copy of it would make the next append copy all its changes.
    if let builder = open[partition] { return (builder.nextDot, builder.context) }
    let chain = ChainIdentity(fleet: engine.files.fleet, partition: partition, replica: replica)
    let builder = RunBuilder(
      chain: chain, after: engine.own.sequence(in: partition),
      hashBefore: engine.own.tip(in: partition) ?? chain.genesis(SHA256.hash),
      context: try context(partition, replica, transaction), hash: SHA256.hash)
    open[partition] = builder
    return (builder.nextDot, builder.context)
  }

  private mutating func context(
    _ partition: PartitionID, _ replica: ReplicaID, _ transaction: borrowing Transaction
  ) throws -> VersionVector {
    if let known = contexts[partition] { return known }
    let previous = engine.own.context(in: partition)
    let context =
      engine.mesh.partitions[partition]?.log.nextContext(of: replica, after: previous) ?? previous
    contexts[partition] = context
    return context
  }

  private mutating func add(
    _ change: ComposedChange, _ partition: PartitionID, _ replica: ReplicaID, _ transaction: borrowing Transaction,
    _ done: inout NodeEngine.Committed
  ) throws {
    if open[partition]?.hasRoom(for: change.payload.count) == false {
      try close(partition, transaction, &done)
      _ = try openRun(for: partition, replica, transaction)
    }
    guard let chain = open[partition]?.chain else { return }
    open[partition]?.append(
      payload: change.payload, keyHashes: try change.keyHashes(in: chain), timestamp: change.timestamp,
      wall: change.wall)
  }

  /// Signs and appends every open run.
  mutating func close(_ transaction: borrowing Transaction, _ done: inout NodeEngine.Committed) throws {
    for partition in open.keys.sorted() { try close(partition, transaction, &done) }
  }

  private mutating func close(
    _ partition: PartitionID, _ transaction: borrowing Transaction, _ done: inout NodeEngine.Committed
  ) throws {
    guard let builder = open.removeValue(forKey: partition), !builder.isEmpty else { return }
    let run = builder.close(sign: engine.files.deviceKey.sign)
    engine.own.advance(partition, run)
    let number = try transaction.number(of: partition)
    _ = try engine.append(run, partition, number, transaction, &done)
  }
}

extension NodeEngine {
  /// Puts a closed own run at the end of the log, in memory and on disk.
  func append(
    _ run: Run, _ partition: PartitionID, _ number: PartitionNumber, _ transaction: borrowing Transaction,
    _ done: inout Committed
  ) throws -> LogChange {
    let encoded = RunCodec.encode(run)
    guard let change = mesh.learnOwn(run, in: partition, signer: files.deviceKey.publicKey) else {
      throw NodeError(.failed, "an own run was not taken into the log")
    }
    let replica = run.record.chain.replica
    let chain = try transaction.number(of: replica, in: number, genesis: run.record.chain.genesis(SHA256.hash))
    try transaction.appendRun(
      chain, first: run.record.first, last: run.record.last, context: run.record.context, body: encoded[...])
    for change in run.changes where change.payload.count > Run.inlinePayloadByteLimit {
      try transaction.addLargePayload(change.header.payloadHash, bytes: change.payload)
    }
    if let state = mesh.partitions[partition] { try setMarks(of: chain, replica, state, transaction) }
    done.own.append((partition, run, encoded))
    return change
  }
}
