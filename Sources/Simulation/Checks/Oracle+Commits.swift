import Replication
import Wire

// What is looked at while the run goes on.
extension Oracle {
  func opened(_ process: NodeProcess) { checkVectors(process) }

  /// After a transaction, before anyone is told.
  func committed(_ process: NodeProcess, _ batch: PendingCommit, _ done: NodeProcess.Committed) {
    world.trace(4, UInt64(process.node.slot) << 32 | UInt64(process.node.disk.image.nextArrival))
    for applied in batch.applied {
      for run in applied.runs {
        check(run.logged, run.incoming.hashes.last, in: applied.partition, process, isOwn: false)
      }
    }
    for own in done.own { check(own.logged, own.run.hashes.last, in: own.partition, process, isOwn: true) }
    checkVectors(process)
    for partition in done.touched.keys.sorted() {
      for key in (done.touched[partition] ?? []).sorted() { checkDocument(key, in: partition, process) }
    }
  }

  private func check(
    _ run: LoggedRun, _ hashAtLast: Digest?, in partition: PartitionID, _ process: NodeProcess, isOwn: Bool
  ) {
    learn(run, hashAtLast: hashAtLast ?? .zero, in: partition, by: process, isOwn: isOwn)
    let chains = process.node.disk.image.partitions[partition]?.chains ?? [:]
    for (replica, position) in run.context.entries where !mayFork(replica) {
      guard (chains[replica]?.runs.last?.last ?? 0) < position.sequence else { continue }
      world.violate("I3", "run \(run.replica) \(run.first) is at node \(process.node.slot) before what it had seen")
    }
    let twins = chains[run.replica]?.runs.count { $0.first == run.first && $0.body == run.encoded } ?? 0
    if twins > 1 {
      world.violate("I5", "run \(run.replica) \(run.first) is stored \(twins) times at node \(process.node.slot)")
    }
  }

  /// Vectors do not fall in the lifetime of a store, but for chains that changed their branch (I8).
  private func checkVectors(_ process: NodeProcess) {
    for (id, state) in process.mesh.partitions {
      let (received, accepted) = (state.log.received, state.log.accepted)
      if let before = vectors[process.node.slot]?[id] {
        let fallen =
          before.received.entries.first { $0.value.sequence > received.sequence(of: $0.key) && !mayFork($0.key) }
          ?? before.accepted.entries.first { $0.value.sequence > accepted.sequence(of: $0.key) && !mayFork($0.key) }
        if let fallen {
          world.violate(
            "I8", "the vector of node \(process.node.slot) falls at \(fallen.key) below \(fallen.value.sequence)")
        }
      }
      vectors[process.node.slot, default: [:]][id] = Vectors(received: received, accepted: accepted)
    }
  }

  /// Nothing of a lower generation that an accepted deletion has seen is shown (I4, M10).
  private func checkDocument(_ key: DocumentKey, in partition: PartitionID, _ process: NodeProcess) {
    guard let deletions = deletions[DocumentPlace(partition: partition, key: key)],
      let log = process.mesh.partitions[partition]?.log,
      let body = process.node.disk.image.partitions[partition]?.documents[key]?.shown()
    else { return }
    let counts = { (hash: Digest, dot: Dot) in
      log.hasEffect(hash, at: dot)
        && (!self.mayFork(dot.replica) || self.holds(hash, dot, partition, process.node.disk.image))
    }
    let effective = deletions.filter { counts($0.hash, $0.dot) }.map { deletion in
      let ceilings = log.ceilings(of: deletion.context, author: deletion.dot)
      return (
        generation: deletion.generation,
        context: WriteContext(dot: deletion.dot, timestamp: .zero, context: deletion.context, ceilings: ceilings)
      )
    }
    guard !effective.isEmpty else { return }
    for value in Value.map(body).uniqueValues {
      let sources = (sourcesOfValue[value] ?? []).filter { counts($0.hash, $0.dot) }
      let isGone = sources.allSatisfy { source in
        effective.contains { $0.generation > source.generation && $0.context.sees(source.dot) }
      }
      if isGone { world.violate("I4", "value \(value) is shown at node \(process.node.slot) after its deletion") }
    }
  }

  /// What is said to be held is on the disk (durable before sent).
  func sending(_ message: Message, by process: NodeProcess) {
    let stated: [PartitionVector] =
      switch message {
      case .have(let vector), .pull(_, let vector): [vector]
      case .vectors(let vectors): vectors
      case .runs(let batch):
        batch.entries.isEmpty ? [] : unsynced(batch, process)
      default: []
      }
    for item in stated {
      let chains = process.node.disk.synced.partitions[world.fleet.partition(item.name)]?.chains ?? [:]
      for (replica, position) in item.vector.entries {
        guard !(chains[replica]?.runs.contains { $0.last >= position.sequence } ?? false) else { continue }
        world.violate(
          "durable before sent", "node \(process.node.slot) tells of change \(position.sequence) of \(replica)")
      }
    }
  }

  /// Runs that are not on the disk, as what they would tell.
  private func unsynced(_ batch: RunBatch, _ process: NodeProcess) -> [PartitionVector] {
    let partition = world.fleet.partition(batch.name)
    return batch.entries.compactMap { entry in
      guard
        let run = try? RunCodec.decode(
          entry.encoded, fleet: world.fleet.id, partition: partition, hash: FakeCryptography.hash)
      else { return nil }
      var vector = VersionVector()
      vector[run.chain.replica] = ChainPosition(sequence: run.last, tip: run.hashAtLast.tip)
      return PartitionVector(name: batch.name, vector: vector)
    }
  }

  /// Nothing grows without bound, and nothing waits that a turn should have settled.
  func turnEnded(_ process: NodeProcess) {
    let footprint = process.mesh.footprint
    let partitions = process.mesh.partitions.count
    if footprint.parkedBatches > 0 || footprint.awaitedHeaders > 0 {
      world.violate("I13", "node \(process.node.slot) leaves \(footprint.parkedBatches) batches parked")
    }
    if footprint.streams > footprint.sessions * partitions {
      world.violate("I13", "node \(process.node.slot) has \(footprint.streams) streams")
    }
    if footprint.sessions > 4 * world.nodes.count {
      world.violate("I13", "node \(process.node.slot) has \(footprint.sessions) sessions")
    }
  }
}
