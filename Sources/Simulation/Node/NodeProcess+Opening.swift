import Replication
import Wire

extension SimulatedNode {
  /// Starts a process on what the directory holds; a run that cannot be opened is a violation.
  func start(in world: World) {
    life += 1
    do {
      let mesh = try NodeOpening(node: self, world: world).mesh(instance: world.random.uuid())
      let process = NodeProcess(
        world: world, node: self, life: life, mesh: mesh, own: NodeOpening(node: self, world: world).ownReplica(),
        random: world.random.fork())
      self.process = process
      process.saveSidecar()
      world.oracle.opened(process)
      world.planTurn(process, at: world.clock)
      world.planDials(self)
    } catch {
      world.violate("I15", "node \(slot) cannot be opened: \(error)")
    }
  }
}

/// Puts a node's core together from what its directory holds.
struct NodeOpening {
  let node: SimulatedNode
  let world: World

  enum Failure: Error {
    case statement
    case notAMember
    case run(ReplicaID, UInt64)
  }

  func mesh(instance: SimulationRandom.UInt64Pair) throws -> Mesh {
    let image = node.disk.image
    let statements = try image.statements.map { encoded in
      guard let statement = FakeCryptography.statement(encoded) else { throw Failure.statement }
      return statement
    }
    let authority = Authority(root: world.fleet.root.publicKey, statements: statements, hash: FakeCryptography.hash)
    guard let membership = authority.member(of: node.key.publicKey).flatMap({ authority[$0.id] }) else {
      throw Failure.notAMember
    }
    let local = LocalIdentity(
      fleet: world.fleet.id, device: node.key.publicKey, instance: UUIDValue(high: instance.high, low: instance.low),
      credentials: [membership.encoded])
    let partitions = try image.partitions.keys.sorted().compactMap { id in
      try image.partitions[id].map { PartitionState(id: id, name: $0.name, log: try log(id, $0, authority)) }
    }
    return Mesh(
      local: local, authority: authority, statements: statements, partitions: partitions,
      interest: image.subscriptions.reduce(Interest()) { $0.adding(world.fleet.interest($1)) },
      cryptography: FakeCryptography.cryptography(of: node.key), configuration: world.plan.mesh)
  }

  /// Trunks at their word, then everything above them learned anew.
  private func log(
    _ id: PartitionID, _ stored: ModelDisk.StoredPartition, _ authority: Authority
  ) throws -> PartitionLog {
    let fleet = world.fleet.id
    let trunks = stored.chains.filter { $0.value.accepted.sequence > 0 }.mapValues {
      ChainTrunk(sequence: $0.accepted.sequence, hash: $0.accepted.hash, documents: .any)
    }
    var log = PartitionLog(
      restoring: PartitionLog.Snapshot(trunks: trunks, reissues: stored.reissues), stored.name, root: authority.root
    ) { ChainIdentity(fleet: fleet, partition: id, replica: $0).genesis(FakeCryptography.hash) }
    try settle(&log, id, stored.name, authority) { $0.adopt(authority) }
    for replica in stored.chains.keys.sorted() {
      guard let chain = stored.chains[replica], chain.isForked || chain.received.sequence > chain.accepted.sequence
      else { continue }
      for run in node.disk.image.runs(id, replica, after: chain.accepted.sequence) {
        let summary = try summary(run, id, stored.name, authority)
        try settle(&log, id, stored.name, authority) { $0.learn(summary) }
      }
    }
    return log
  }

  /// Answers what the log asks of the disk until it is done.
  private func settle(
    _ log: inout PartitionLog, _ id: PartitionID, _ name: PartitionName, _ authority: Authority,
    _ step: (inout PartitionLog) -> PartitionLog.Outcome
  ) throws {
    while case .needsHeaders(let requests) = step(&log) {
      for request in requests {
        let runs = node.disk.image.runs(id, request.replica, after: request.sequences.lowerBound - 1)
        try log.unfold(request, runs: try runs.map { try summary($0, id, name, authority) })
      }
    }
  }

  private func summary(
    _ run: ModelDisk.StoredRun, _ id: PartitionID, _ name: PartitionName, _ authority: Authority
  ) throws -> RunSummary {
    guard let summary = RunSummary(run, id, name, world.fleet.id, authority) else {
      throw Failure.run(run.replica, run.first)
    }
    return summary
  }

  /// Own chains, and every reason that the directory alone shows for not going on under the same replica (rule C20).
  func ownReplica() -> OwnReplica {
    let image = node.disk.image
    var own = OwnReplica()
    own.replica = image.replica
    own.commits = image.ownCommits
    own.lastTimestamp = image.timestamp
    guard let replica = image.replica else { return own }
    for (partition, stored) in image.partitions {
      guard let chain = stored.chains[replica.id] else { continue }
      let last = image.runs(partition, replica.id, after: 0).last
      own.ends[partition] = OwnReplica.End(
        sequence: chain.received.sequence, hash: chain.received.hash, context: last?.context ?? VersionVector())
    }
    guard !world.has(.skipRenewalAfterRestore) else { return own }
    if image.isRestored { own.causes.insert(.restored) }
    guard let reached = node.disk.reached else { return own.demanding(.storeID) }
    if reached > image.ownCommits { own.causes.insert(.reached) }
    return own
  }
}

extension NodeProcess {
  /// The mesh took in what did not reach the disk: everything is read again, and every session begins anew.
  func restartMesh() {
    world.count(.meshRestarted)
    for id in links.keys.sorted() { world.close(self, id, afterFlush: false) }
    (pending, outbox) = (PendingCommit(), [])
    let causes = own.causes
    do {
      let opening = NodeOpening(node: node, world: world)
      let instance = mesh.local.instance
      mesh = try opening.mesh(instance: SimulationRandom.UInt64Pair(high: instance.high, low: instance.low))
      own = opening.ownReplica()
      own.causes.formUnion(causes)
      links.removeAll()
    } catch {
      world.violate("I15", "node \(node.slot) cannot be opened: \(error)")
    }
  }
}
