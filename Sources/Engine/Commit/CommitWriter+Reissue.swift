import Replication
import Wire

extension Reissue {
  /// Own writes of one partition on a branch that lost.
  struct Owed {
    let partition: PartitionID
    let name: PartitionName
    let lost: [HeldChange]
  }

  /// In the order of the partitions' ids; those that this device may write to. Without the right a re-issue would be above
  /// its limit and count nowhere, so that it would be owed still: such writes wait in the log until the right is back.
  static func owed(in state: EngineState) -> [Owed] {
    let (authority, device) = (state.mesh.authority, state.identity.device)
    // Put in order when found: few have any, and all of them would be copied.
    return state.mesh.partitions.values.compactMap { partition in
      guard !partition.log.forkPoints.isEmpty, authority.level(of: device, in: partition.name) >= .write,
        ReplicaRenewal(state).mayWrite(in: partition.id, partition.name)
      else { return nil }
      let lost = partition.log.lostChanges { authority.signer(of: $0) == device }
      return lost.isEmpty ? nil : Owed(partition: partition.id, name: partition.name, lost: lost)
    }.sorted { $0.partition < $1.partition }
  }
}

// Own writes on a branch that lost are issued again under the present replica, each with the context it had (rule C22).
extension CommitWriter {
  mutating func issueAgain(_ owed: Reissue.Owed) throws {
    let (lost, partition) = (owed.lost, owed.partition)
    let runs = try runs(of: lost, in: partition)
    // They do not read, and are owed still.
    guard !runs.isEmpty else { return }
    let (renewal, hashes) = (ReplicaRenewal(state), Set(lost.map(\.hash)))
    if renewal.mustChange(for: partition, owed.name) {
      // Of each chain the first goes before the others. Else an id would be drawn for nothing.
      var met: Set<ReplicaID> = []
      let mayIssueAny = try runs.contains { replica, run in
        try met.insert(replica).inserted && mayIssue(run, hashes, partition)
      }
      guard mayIssueAny else { return }
    }
    try renewal.changeIfDue(for: partition, owed.name, transaction, &done)
    var moved: [LogChange] = []
    var waiting: Set<ReplicaID> = []
    // Copies that wrote the same at one moment have one change in two runs: again it is issued once, before what has seen it.
    var left = hashes
    for (replica, run) in runs where !waiting.contains(replica) && !left.isDisjoint(with: run.content.run.hashes) {
      if let change = try reissue(run.content, run.stored.context, left, partition) {
        moved.append(change)
        left.subtract(run.content.run.hashes)
      } else {
        waiting.insert(replica)
      }
    }
    // What waits goes on with what it waits for, which is a cause of its own: to look again now would be to look for ever.
    guard !moved.isEmpty else { return }
    try rebuild([partition: moved])
  }

  private typealias LostRun = (stored: LogRun, content: RunContent)

  /// Those that hold lost changes, in order of their turns, which is causal where everything reads: what a change names is
  /// issued again before it.
  private func runs(of lost: [HeldChange], in partition: PartitionID) throws -> [(replica: ReplicaID, run: LostRun)] {
    var found: [(replica: ReplicaID, turn: Int64, run: LostRun)] = []
    for replica in Set(lost.map(\.dot.replica)).sorted() {
      let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: replica)
      found += try runs(of: chain, holding: lost).map { (replica, $0.turn, $0.run) }
    }
    // Only runs of one chain may have one turn.
    let ordered = found.sorted {
      ($0.turn, $0.run.stored.first, $0.run.stored.arrival) < ($1.turn, $1.run.stored.first, $1.run.stored.arrival)
    }
    return ordered.map { ($0.replica, $0.run) }
  }

  /// Those below the first lost change that does not read: what follows stands on it, and waits until it has come anew.
  private func runs(of chain: ChainIdentity, holding lost: [HeldChange]) throws -> [(turn: Int64, run: LostRun)] {
    let reader = RunReader(state.identity)
    let lost = lost.filter { $0.dot.replica == chain.replica }
    var unread = Set(lost.map(\.hash))
    var (found, isWhole) = ([LostRun](), true)
    let first = lost.lazy.map(\.dot.sequence).min() ?? 1
    for place in try transaction.places(of: chain, after: first - 1, limit: .max) {
      do {
        guard let stored = try transaction.run(at: place, of: chain) else { continue }
        let run = try reader.decode(stored, in: chain.partition)
        guard !unread.isDisjoint(with: run.hashes) else { continue }
        found.append((stored, try reader.content(stored, in: chain.partition, transaction)))
        unread.subtract(run.hashes)
      } catch let failure where DamagedLog.isOfOneRow(failure) {
        // It may be of a branch that is not lost.
        isWhole = false
        let failure = DamagedLog.failure(failure, of: transaction.damagedRun(at: place, of: chain))
        note(failure, in: chain.partition)
      }
    }
    let end = lost.lazy.filter { unread.contains($0.hash) }.map(\.dot.sequence).min() ?? .max
    let readable = found.filter { $0.stored.last < end }
    return isWhole ? readable.map { ($0.stored.arrival, $0) } : turnsBesideDamage(readable)
  }

  /// Where everything reads, each run has its turn when it came. Where not, what stands on a run that does not read may have come
  /// before another run that holds the same changes: that one has its turn as early as anything of its chain that begins behind
  /// its own beginning.
  private func turnsBesideDamage(_ runs: [LostRun]) -> [(turn: Int64, run: LostRun)] {
    // Of what begins behind the present one, and of that with what begins where it does.
    var (behind, notBefore, first) = (Int64.max, Int64.max, UInt64.max)
    return runs.sorted { $0.stored.first > $1.stored.first }.map { run in
      if run.stored.first < first { (behind, first) = (notBefore, run.stored.first) }
      notBefore = min(notBefore, run.stored.arrival)
      return (min(behind, run.stored.arrival), run)
    }
  }

  /// One run again; nil where it has to wait.
  private mutating func reissue(
    _ content: RunContent, _ context: VersionVector, _ hashes: Set<Digest>, _ partition: PartitionID
  ) throws -> LogChange? {
    guard let replica = state.own.replica?.id, let log = state.mesh.partitions[partition]?.log else { return nil }
    let hash = state.identity.cryptography.hash
    let (headers, lost) = try lostChanges(of: content, hashes)
    let (end, tip) = (state.own.sequence(in: partition), state.own.tip(in: partition))
    let next = Dot(replica: replica, sequence: end + 1)
    guard let again = log.reissue(lost, of: context, as: next, after: state.own.context(in: partition)) else {
      return nil
    }
    let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: replica)
    var builder = RunBuilder(
      chain: chain, after: end, hashBefore: tip ?? chain.genesis(hash), context: again.context, hash: hash)
    for (index, header) in headers.enumerated() {
      let origin = header.origin ?? ChangeOrigin(dot: lost[index].dot, hash: lost[index].hash)
      builder.append(
        payload: PayloadEncoder.encode(again.writes[index], dot: builder.nextDot), keyHashes: header.keyHashes,
        timestamp: header.timestamp, wall: header.wall,
        extensions: header.extensions(ofReissue: origin))
      state.own.commits += 1
    }
    return try OwnRuns(state, transaction).append(builder, to: partition, &done)
  }

  /// What leads to it counts by now.
  private func mayIssue(_ run: LostRun, _ hashes: Set<Digest>, _ partition: PartitionID) throws -> Bool {
    let lost = try lostChanges(of: run.content, hashes).changes
    let trial = Dot(replica: .zero, sequence: 1)
    return state.mesh.partitions[partition]?.log.reissue(
      lost, of: run.stored.context, as: trial, after: VersionVector())
      != nil
  }

  private func lostChanges(
    of content: RunContent, _ hashes: Set<Digest>
  ) throws -> (headers: [ChangeHeader], changes: [LostChange]) {
    var (headers, lost): ([ChangeHeader], [LostChange]) = ([], [])
    for change in content.contents {
      let dot = Dot(replica: content.run.chain.replica, sequence: change.header.sequence)
      let changeHash = content.run.hashes[Int(dot.sequence - content.run.first)]
      guard hashes.contains(changeHash) else { continue }
      headers.append(change.header)
      lost.append(
        LostChange(dot: dot, hash: changeHash, writes: try PayloadDecoder.decodeWrites(change.payload, dot: dot)))
    }
    return (headers, lost)
  }
}
