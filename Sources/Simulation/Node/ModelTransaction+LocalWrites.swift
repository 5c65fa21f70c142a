import Replication
import Wire

/// An own run was not taken into the log, or what was composed is malformed: the transaction fails.
enum LocalFailure: Error {
  case notTaken
  case notAMember
}

extension ModelTransaction {
  /// Each job becomes one change, and those of one partition one run, or several where one has no room.
  mutating func writeLocal(_ jobs: [WriteJob]) throws {
    guard let replica = process.own.replica?.id else { throw LocalFailure.notAMember }
    var open: [PartitionID: RunBuilder] = [:]
    for job in jobs {
      let partition = process.world.fleet.partition(job.partition)
      image.ensurePartition(partition, job.partition)
      if let builder = open[partition], !builder.hasRoom(for: 1_024) { try close(builder, replica) }
      if open[partition]?.hasRoom(for: 1_024) != true { open[partition] = builder(partition, replica) }
      guard var builder = open[partition] else { continue }
      done.receipts.append((job, dot: try write(job, partition, &builder)))
      open[partition] = builder
    }
    for partition in open.keys.sorted() {
      if let builder = open[partition], !builder.isEmpty { try close(builder, replica) }
    }
    image.ownCommits = process.own.commits
    image.timestamp = process.own.lastTimestamp
  }

  private func builder(_ partition: PartitionID, _ replica: ReplicaID) -> RunBuilder {
    let own = process.own.ends[partition]
    let chain = ChainIdentity(fleet: process.fleet, partition: partition, replica: replica)
    let previous = own?.context ?? VersionVector()
    var context = process.mesh.partitions[partition]?.log.nextContext(of: replica, after: previous) ?? previous
    if process.world.has(.wrongContext), process.random.chance(30) { context = VersionVector() }
    return RunBuilder(
      chain: chain, after: own?.sequence ?? 0, hashBefore: own?.hash ?? chain.genesis(FakeCryptography.hash),
      context: context, hash: FakeCryptography.hash)
  }

  /// Nil where nothing differs.
  private mutating func write(_ job: WriteJob, _ partition: PartitionID, _ builder: inout RunBuilder) throws -> Dot? {
    var author = DocumentAuthor(world: process.world, seed: job.seed)
    let dot = builder.nextDot
    var writes: [DocumentWrite] = []
    for id in author.documents(job.documents) {
      let key = DocumentKey(collection: DocumentAuthor.collection, id: id)
      if let write = author.write(id, image.partitions[partition]?.documents[key], dot: dot) { writes.append(write) }
    }
    guard !writes.isEmpty else { return nil }
    let timestamp = process.own.nextTimestamp(wall: process.wall)
    let payload = PayloadEncoder.encode(writes, dot: dot)
    let header = ChangeHeader(
      sequence: dot.sequence, timestamp: timestamp, wall: WallTime(milliseconds: process.wall), payloadByteCount: 0,
      payloadHash: .zero, keyHashes: [])
    let keyHashes = try Change.plain(header, payload: payload, chain: builder.chain, FakeCryptography.hash)
      .change.header.keyHashes
    builder.append(payload: payload, keyHashes: keyHashes, timestamp: timestamp, wall: header.wall)
    let context = WriteContext(dot: dot, timestamp: timestamp, context: builder.context)
    for write in writes { apply(AcceptedWrite(context, write), in: partition) }
    process.own.commits += 1
    return dot
  }

  /// Signs and appends.
  private mutating func close(_ builder: RunBuilder, _ replica: ReplicaID) throws {
    guard !builder.isEmpty else { return }
    let partition = builder.chain.partition
    let run = builder.close(sign: process.node.key.sign)
    if run.changes.count > 1 { process.world.count(.runWithSeveralChanges) }
    process.own.advance(partition, run)
    _ = try append(run, to: partition)
  }

  /// Puts a closed own run at the end of the log, in memory and on disk.
  mutating func append(_ run: Run, to partition: PartitionID) throws -> LogChange {
    let replica = run.record.chain.replica
    guard let change = process.mesh.learnOwn(run, in: partition, signer: process.node.key.publicKey) else {
      throw LocalFailure.notTaken
    }
    let logged = LoggedRun(
      replica: replica, first: run.record.first, last: run.record.last, hashBefore: run.record.hashBefore,
      context: run.record.context, encoded: RunCodec.encode(run)[...])
    append(logged, hashAtLast: run.record.hashAtLast, to: partition)
    setMarks(of: replica, in: partition)
    done.own.append((partition, run, logged))
    return change
  }
}
