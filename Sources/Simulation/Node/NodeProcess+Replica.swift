import Replication
import Wire

extension NodeProcess {
  /// Drawn at the first write after the cause, not at start, and stored before anything is signed under it.
  func renewReplicaIfDue() throws {
    guard own.isRenewalDue else { return }
    let key = node.key
    guard let membership = mesh.authority.member(of: key.publicKey) else { throw LocalFailure.notAMember }
    let drawn = random.uuid()
    let nonce = UUIDValue(high: drawn.high, low: drawn.low)
    let id = ReplicaID.derived(device: key.device, nonce: nonce, FakeCryptography.hash)
    let declaration = Statement.ReplicaDeclaration(replica: id, nonce: nonce, membership: membership.id)
    let sequence = UInt64(mesh.authority.replicas(of: key.publicKey).count) + 1
    guard let statement = key.statement(fleet, .replica(declaration), sequence: sequence) else {
      throw LocalFailure.notAMember
    }
    var image = node.disk.image
    image.statements.append(statement.encoded)
    image.replica = ModelDisk.Incarnation(id: id, nonce: nonce)
    image.isRestored = false
    try store(image)
    if own.replica != nil { world.count(.replicaRenewed) }
    own.renew(ModelDisk.Incarnation(id: id, nonce: nonce))
    intakeAuthority = mesh.authority.adding([statement])
    saveSidecar()
    deliver(.statementsStored([statement]))
  }

  /// Own writes on a branch that lost are issued again under the present replica, each with the context it had
  /// (rule C22): they were acknowledged, so they must come to count.
  func reissueLost() {
    guard forksToSettle, !isDead else { return }
    forksToSettle = false
    for (id, partition) in mesh.partitions.sorted(by: { $0.key < $1.key }) {
      let lost = partition.log.lostChanges { mesh.authority.signer(of: $0) == node.key.publicKey }
      guard !lost.isEmpty else { continue }
      do {
        try renewReplicaIfDue()
        var transaction = ModelTransaction(node.disk.image, self)
        try transaction.reissue(lost, in: id)
        transaction.image.ownCommits = own.commits
        try store(transaction.image)
        world.count(.reissued)
        world.oracle.committed(self, PendingCommit(), transaction.done)
        announce(PendingCommit(), transaction.done)
      } catch {
        // What is owed stays owed, and memory is ahead of the disk.
        forksToSettle = true
        world.count(.diskFull)
        return restartMesh()
      }
    }
  }
}

extension ModelTransaction {
  mutating func reissue(_ lost: [HeldChange], in partition: PartitionID) throws {
    let hashes = Set(lost.map(\.hash))
    // In order of arrival, which is causal: what a change names is issued again before it.
    var runs = Set(lost.map(\.dot.replica)).flatMap { image.runs(partition, $0, after: 0) }
    runs.sort { $0.arrival < $1.arrival }
    var moved: [LogChange] = []
    var waiting: Set<ReplicaID> = []
    for run in runs where !waiting.contains(run.replica) {
      let items = process.world.oracle.contents(of: run, in: partition).filter { hashes.contains($0.hash) }
      guard !items.isEmpty else { continue }
      if let change = try reissue(run, items, in: partition) {
        moved.append(change)
      } else {
        waiting.insert(run.replica)
      }
    }
    guard let log = process.mesh.partitions[partition]?.log else { return }
    image.partitions[partition]?.reissues.formUnion(log.knownReissues)
    rebuild(partition, after: moved)
  }

  /// One run again; nil where it has to wait.
  private mutating func reissue(
    _ old: ModelDisk.StoredRun, _ items: [Oracle.Item], in partition: PartitionID
  ) throws -> LogChange? {
    guard let replica = process.own.replica?.id, let log = process.mesh.partitions[partition]?.log,
      let run = try? RunCodec.decode(old.body, fleet: process.fleet, partition: partition, hash: FakeCryptography.hash)
    else { throw LocalFailure.notTaken }
    let own = process.own.ends[partition]
    let lost = items.map { LostChange(dot: $0.dot, hash: $0.hash, writes: $0.writes) }
    let next = Dot(replica: replica, sequence: (own?.sequence ?? 0) + 1)
    guard let again = log.reissue(lost, of: old.context, as: next, after: own?.context ?? VersionVector()) else {
      return nil
    }
    let chain = ChainIdentity(fleet: process.fleet, partition: partition, replica: replica)
    var builder = RunBuilder(
      chain: chain, after: own?.sequence ?? 0, hashBefore: own?.hash ?? chain.genesis(FakeCryptography.hash),
      context: again.context, hash: FakeCryptography.hash)
    for (item, writes) in zip(items, again.writes) {
      let header = run.changes[Int(item.dot.sequence - run.first)].header
      builder.append(
        payload: PayloadEncoder.encode(writes, dot: builder.nextDot), keyHashes: header.keyHashes,
        timestamp: header.timestamp, wall: header.wall,
        origin: header.origin ?? ChangeOrigin(dot: item.dot, hash: item.hash))
      process.own.commits += 1
    }
    let closed = builder.close(sign: process.node.key.sign)
    process.own.advance(partition, closed)
    return try append(closed, to: partition)
  }
}
