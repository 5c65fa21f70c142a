import Replication
import Wire

/// The disk refused a transaction.
struct DiskFull: Error {}

extension NodeProcess {
  /// What a transaction brought about.
  struct Committed {
    var own: [(partition: PartitionID, run: Run, logged: LoggedRun)] = []
    var receipts: [(WriteJob, dot: Dot?)] = []
    var touched: [PartitionID: Set<DocumentKey>] = [:]
  }

  /// One transaction for all that waits; then, and only then, tells peers and clients.
  func commit() {
    while !pending.isEmpty, !isDead {
      if crashPoint == .beforeCommit { return world.crash(node) }
      let batch = pending
      pending = PendingCommit()
      pending.loads = batch.loads
      do {
        let done = try write(batch)
        world.oracle.committed(self, batch, done)
        if crashPoint == .afterCommit { return world.crash(node) }
        flush()
        announce(batch, done)
      } catch {
        abandon(batch)
      }
    }
  }

  /// Nothing of it was written. Own writes alone are undone already; sessions need not suffer for a full disk.
  func abandon(_ batch: PendingCommit) {
    world.count(.diskFull)
    guard !batch.applied.isEmpty || !batch.statements.isEmpty || !batch.rebuilds.isEmpty else { return flush() }
    restartMesh()
  }

  private func write(_ batch: PendingCommit) throws -> Committed {
    isWriting = true
    defer { isWriting = false }
    if !batch.writes.isEmpty { try renewReplicaIfDue() }
    let ownBefore = own
    let partitionsBefore = Set(batch.writes.map(\.partition)).compactMap { mesh.partitions[world.fleet.partition($0)] }
    do {
      var transaction = ModelTransaction(node.disk.image, self)
      for statement in batch.statements where !transaction.image.statements.contains(statement.encoded) {
        transaction.image.statements.append(statement.encoded)
      }
      for (id, name) in batch.partitions { transaction.image.ensurePartition(id, name) }
      try transaction.applyRemote(batch)
      transaction.rebuild(batch)
      if !batch.writes.isEmpty { try transaction.writeLocal(batch.writes) }
      try store(transaction.image)
      return transaction.done
    } catch {
      own = ownBefore
      mesh.restore(partitionsBefore)
      throw error
    }
  }

  /// Makes it the disk's content, durably.
  func store(_ image: ModelDisk.Image) throws {
    if world.clock < node.diskFullUntil { throw DiskFull() }
    node.disk.image = image
    if !world.has(.forgetToSync) || random.chance(20) { node.disk.sync() }
    guard world.clock < node.slowDiskUntil else { return }
    world.count(.slowDisk)
    busyUntil = world.clock + random.between(20...400)
  }

  func announce(_ batch: PendingCommit, _ done: Committed) {
    for applied in batch.applied {
      deliver(.committed(applied.partition, source: applied.source, applied.runs.map(\.logged)))
    }
    for own in done.own { deliver(.committed(own.partition, source: nil, [own.logged])) }
    for (job, dot) in done.receipts { world.oracle.acknowledge(job, dot, by: self) }
  }
}

/// A transaction on a model disk: what it did is the disk's when it ends well, and nothing otherwise.
struct ModelTransaction {
  let process: NodeProcess
  var image: ModelDisk.Image
  var done = NodeProcess.Committed()

  init(_ image: ModelDisk.Image, _ process: NodeProcess) { (self.image, self.process) = (image, process) }

  // MARK: Remote runs

  mutating func applyRemote(_ batch: PendingCommit) throws {
    for applied in batch.applied {
      guard let state = process.mesh.partitions[applied.partition] else { continue }
      image.ensurePartition(applied.partition, state.name)
      for run in applied.runs {
        if process.world.has(.forgetRun), process.random.chance(3) { continue }
        append(run.logged, hashAtLast: run.incoming.hashes.last ?? .zero, to: applied.partition)
        setMarks(of: run.incoming.replica, in: applied.partition)
        if run.change == nil { fold(run, in: applied.partition) }
        if process.world.has(.applyTwice), process.random.chance(5) { fold(run, in: applied.partition) }
      }
    }
  }

  mutating func append(_ run: LoggedRun, hashAtLast: Digest, to partition: PartitionID) {
    let genesis = ChainIdentity(fleet: process.fleet, partition: partition, replica: run.replica)
      .genesis(FakeCryptography.hash)
    image.append(run, hashAtLast: hashAtLast, to: partition, genesis: genesis)
  }

  /// `accepted` is the chain's trunk: below it nothing is forked or held, above it the log is learned anew at start.
  mutating func setMarks(of replica: ReplicaID, in partition: PartitionID) {
    guard let log = process.mesh.partitions[partition]?.log else { return }
    let trunk = log.trunk(of: replica)
    let accepted = ModelDisk.Mark(sequence: trunk.sequence, hash: trunk.hash)
    let received = log.received.sequence(of: replica)
    image.partitions[partition]?.chains[replica]?.accepted = accepted
    image.partitions[partition]?.chains[replica]?.received = ModelDisk.Mark(
      sequence: max(received, trunk.sequence), hash: trunk.hash)
    image.partitions[partition]?.chains[replica]?.isForked = log.forkPoints[replica] != nil
  }

  private mutating func fold(_ run: DeliveredRun, in partition: PartitionID) {
    guard let content = run.incoming.content as? DecodedRun else { return }
    for change in content.changes {
      let context = WriteContext(
        dot: Dot(replica: content.chain.replica, sequence: change.header.sequence), timestamp: change.header.timestamp,
        context: run.context)
      for write in writes(of: change, context.dot) { apply(AcceptedWrite(context, write), in: partition) }
    }
  }

  func writes(of change: Change, _ dot: Dot) -> [DocumentWrite] {
    (try? PayloadDecoder.decodeWrites(change.payload, dot: dot)) ?? []
  }

  mutating func apply(_ write: AcceptedWrite, in partition: PartitionID) {
    let key = DocumentKey(write.write)
    image.partitions[partition]?.documents[key, default: DocumentState()].apply(write)
    done.touched[partition, default: []].insert(key)
  }

  // MARK: Rebuilding

  /// Accepted positions moved other than by plain delivery: the documents concerned are computed anew from the log.
  mutating func rebuild(_ batch: PendingCommit) {
    var moved: [PartitionID: [LogChange]] = [:]
    for (partition, change) in batch.rebuilds { moved[partition, default: []].append(change) }
    for applied in batch.applied {
      for run in applied.runs { if let change = run.change { moved[applied.partition, default: []].append(change) } }
    }
    for partition in moved.keys.sorted() {
      guard let changes = moved[partition], !process.world.has(.skipRebuild) else { continue }
      if let log = process.mesh.partitions[partition]?.log {
        image.partitions[partition]?.reissues.formUnion(log.knownReissues)
        if !log.forkPoints.isEmpty { process.forksToSettle = true }
      }
      rebuild(partition, after: changes)
      for replica in Set(changes.flatMap { $0.acceptance.map(\.replica) }) { setMarks(of: replica, in: partition) }
    }
  }

  mutating func rebuild(_ partition: PartitionID, after changes: [LogChange]) {
    guard let log = process.mesh.partitions[partition]?.log, let stored = image.partitions[partition] else { return }
    let lowest = log.lowestMoved(by: changes)
    var touched: Set<DocumentKey> = []
    var writes: [DocumentKey: [AcceptedWrite]] = [:]
    for (replica, chain) in stored.chains {
      for run in chain.runs {
        for item in process.world.oracle.contents(of: run, in: partition) {
          let isMoved = lowest[replica].map { item.dot.sequence > $0 } ?? false
          if isMoved { touched.formUnion(item.writes.map { DocumentKey($0) }) }
          guard log.hasEffect(item.hash, at: item.dot) else { continue }
          let context = WriteContext(
            dot: item.dot, timestamp: item.timestamp, context: run.context,
            ceilings: log.ceilings(of: run.context, author: item.dot))
          for write in item.writes { writes[DocumentKey(write), default: []].append(AcceptedWrite(context, write)) }
        }
      }
    }
    for key in touched {
      image.partitions[partition]?.documents[key] = writes[key].map { DocumentState.merged(of: $0) }
      done.touched[partition, default: []].insert(key)
    }
  }
}
