import Identity
import Replication
import Storage
import Wire

extension NodeEngine {
  /// Own writes on a branch that lost, as after a cloned directory ran twice, are issued again under the present replica,
  /// each with the context it had (rule C22): they were acknowledged, so they must come to count.
  func reissueLost() {
    guard failure == nil, forksToSettle else { return }
    forksToSettle = false
    let device = files.deviceKey.publicKey
    for (id, partition) in mesh.partitions.sorted(by: { $0.key < $1.key }) {
      let lost = partition.log.lostChanges { mesh.authority.signer(of: $0) == device }
      guard !lost.isEmpty else { continue }
      do {
        let done = try reissue(lost, id, partition.name)
        log.notice("issued again what a fork had put aside", ["changes": String(lost.count), "partition": name(id)])
        announce(PendingCommit(), done)
      } catch {
        reissueIsOverdue = true
        abandon(PendingCommit(), NodeError(any: error))
        return
      }
    }
  }

  /// In a transaction of its own. When it fails, the own chain stands where it stood.
  private func reissue(
    _ lost: [HeldChange], _ partition: PartitionID, _ name: PartitionName
  ) throws -> Committed {
    try renewReplicaIfDue()
    let (ownBefore, partitionBefore) = (own, mesh.partitions[partition])
    do {
      return try store.write(.full) { transaction in
        var done = Committed()
        try reissue(lost, partition, name, transaction, &done)
        try transaction.setInteger(own.commits, for: .ownCommits)
        return done
      }
    } catch {
      own = ownBefore
      if let partitionBefore { mesh.restore([partitionBefore]) }
      throw error
    }
  }

  private func reissue(
    _ lost: [HeldChange], _ partition: PartitionID, _ name: PartitionName, _ transaction: borrowing Transaction,
    _ done: inout Committed
  ) throws {
    let number = try transaction.number(of: partition, name: name)
    let hashes = Set(lost.map(\.hash))
    var runs: [StoredRun] = []
    for replica in Set(lost.map(\.dot.replica)).sorted() {
      guard let chain = try transaction.chainNumber(number, replica) else { continue }
      let first = lost.lazy.filter { $0.dot.replica == replica }.map(\.dot.sequence).min() ?? 1
      runs += try transaction.runs(of: chain, after: first - 1, byteLimit: .max)
    }
    // In order of arrival, which is causal: what a change names is issued again before it.
    runs.sort { $0.arrival < $1.arrival }
    var moved: [LogChange] = []
    var waiting: Set<ReplicaID> = []
    for stored in runs {
      let run = try RunCodec.decode(stored.body[...], fleet: files.fleet, partition: partition, hash: SHA256.hash)
      guard run.hashes.contains(where: hashes.contains), !waiting.contains(run.chain.replica) else { continue }
      let content = try RunContent(run, payloads: transaction)
      if let change = try reissue(content, stored.context, hashes, partition, number, transaction, &done) {
        moved.append(change)
      } else {
        waiting.insert(run.chain.replica)
      }
    }
    guard let state = mesh.partitions[partition] else { return }
    for reissue in state.log.knownReissues { try transaction.addReissue(reissue, in: number) }
    let rebuild = DocumentRebuild(fleet: files.fleet, partition: partition, number: number, state: state)
    done.changes.note(try rebuild.run(moved, transaction))
  }

  /// One run again; nil where it has to wait.
  private func reissue(
    _ content: RunContent, _ context: VersionVector, _ hashes: Set<Digest>, _ partition: PartitionID,
    _ number: PartitionNumber, _ transaction: borrowing Transaction, _ done: inout Committed
  ) throws -> LogChange? {
    let (old, replica) = (content.run.chain.replica, try own.current().id)
    var headers: [ChangeHeader] = []
    var lost: [LostChange] = []
    for change in content.contents {
      let dot = Dot(replica: old, sequence: change.header.sequence)
      let hash = content.run.hashes[Int(dot.sequence - content.run.first)]
      guard hashes.contains(hash) else { continue }
      headers.append(change.header)
      lost.append(
        LostChange(dot: dot, hash: hash, writes: try PayloadDecoder.decodeWrites(change.payload, dot: dot)))
    }
    let next = Dot(replica: replica, sequence: own.sequence(in: partition) + 1)
    guard
      let again = mesh.partitions[partition]?.log.reissue(
        lost, of: context, as: next, after: own.context(in: partition))
    else { return nil }
    let chain = ChainIdentity(fleet: files.fleet, partition: partition, replica: replica)
    var builder = RunBuilder(
      chain: chain, after: own.sequence(in: partition),
      hashBefore: own.tip(in: partition) ?? chain.genesis(SHA256.hash),
      context: again.context, hash: SHA256.hash)
    for (index, header) in headers.enumerated() {
      builder.append(
        payload: PayloadEncoder.encode(again.writes[index], dot: builder.nextDot), keyHashes: header.keyHashes,
        timestamp: header.timestamp, wall: header.wall,
        origin: header.origin ?? ChangeOrigin(dot: lost[index].dot, hash: lost[index].hash))
      own.commits += 1
    }
    let run = builder.close(sign: files.deviceKey.sign)
    own.advance(partition, run)
    return try append(run, partition, number, transaction, &done)
  }
}
