import Replication
import Wire

// A run that is not as it was written is asked for anew, and put in its place once it is known to be the same.
extension NodeEngine {
  /// Asks for what lies above the intact part of each chain, as if it were lacking.
  func askForDamagedRuns() {
    lookForOwed()
    guard !state.damagedRuns.isEmpty else { return }
    for (chain, run, last) in state.damagedRuns.due(state.clock.now) {
      // What lies before it may not read, either: then all of the chain is asked for.
      let position = try? LogReader(state).end(of: chain.replica, before: run.first, chain.partition)
      guard
        let (session, probe) = state.mesh.asking(
          for: chain.replica, in: chain.partition, above: position, through: run.last, after: last)
      else { continue }
      carryOut(.send(session, .chainProbe(probe)))
      state.damagedRuns.noteAsked(session, of: links.table[session]?.device, chain, state.clock.now)
    }
  }

  /// Runs that were asked for go into their places. Answers those that are for the core: all that it does not have.
  func mendLog(with runs: [IncomingRun], of batch: RunBatch) -> [IncomingRun] {
    guard batch.isForkEvidence, !state.damagedRuns.isEmpty else { return runs }
    let partition = state.identity.id(of: batch.name)
    return runs.filter { run in
      let chain = DamagedRuns.Chain(partition: partition, replica: run.replica)
      guard state.damagedRuns.isAsked(chain), isKnown(run, in: partition) else { return true }
      if let place = place(of: run, chain) {
        state.damagedRuns.take(run, at: place)
        putBack(chain)
        return false
      }
      // With the numbers of what the trunk has, it may be of another branch.
      return !holds(run, chain)
    }
  }

  /// The core has it, or takes it for what it has: its trunk knows hashes no more.
  private func isKnown(_ run: IncomingRun, in partition: PartitionID) -> Bool {
    guard let end = run.hashes.last, let log = state.mesh.partitions[partition]?.log else { return false }
    return log.hasContent(through: run.last, end, of: run.replica)
  }

  /// The damaged run that it is, or may be: of several with its numbers the one that was written with its bytes.
  private func place(of run: IncomingRun, _ chain: DamagedRuns.Chain) -> DamagedRun? {
    let places = state.damagedRuns.places(of: run, chain)
    guard places.count > 1, let end = run.hashes.last else { return places.first }
    return attempt(nil) { try following(chain).place(of: run.encoded, endingIn: end, among: places) }
  }

  private func holds(_ run: IncomingRun, _ chain: DamagedRuns.Chain) -> Bool {
    attempt(false) { try following(chain).holds(run.encoded, endingAt: run.last) }
  }

  private func following(_ chain: DamagedRuns.Chain) -> Following {
    Following(
      store: state.store, reader: RunReader(state.identity),
      chain: ChainIdentity(fleet: state.identity.fleet, partition: chain.partition, replica: chain.replica))
  }

  /// One that is put back tells whether the one before it is the same.
  private func putBack(_ chain: DamagedRuns.Chain) {
    // What waits to be committed may be what leaves documents undone that the run writes.
    settle()
    for (run, arrived) in state.damagedRuns.candidates(chain) {
      do {
        guard let context = try same(arrived, as: run, chain) else { continue }
        let identity = ChainIdentity(
          fleet: state.identity.fleet, partition: chain.partition, replica: chain.replica)
        let whole = AppendedRun(first: run.first, last: run.last, context: context, body: arrived.encoded)
        let payload = try payload(of: arrived, in: chain.partition)
        let owed = try owedDocuments(of: arrived, payload, in: chain.partition)
        var staged: [StagedKey] = []
        try store { transaction in
          staged = payload.map { state.staged.keys(of: $0.hash) } ?? []
          try transaction.replaceRun(at: run.arrival, with: whole, of: identity)
          try transaction.noteRebuild(of: chain.partition)
          if let payload { try transaction.addLargePayload(payload) }
          for key in staged { try transaction.removePieces(key) }
          for key in owed { try transaction.setAside(key, in: chain.partition) }
        }
        for key in staged { state.staged.remove(key) }
        state.takeSetAside(owed.map { (chain.partition, $0) })
        noteMended(run, chain)
      } catch {
        state.damagedRuns.drop(run)
        journal.note(.error, "a damaged run could not be put right", ["reason": .text("\(error)")])
      }
    }
  }

  /// The payload that travelled ahead of a run, where the one that is stored is not as it was written; nil where none is needed.
  private func payload(of run: IncomingRun, in partition: PartitionID) throws -> ApartPayload? {
    guard let hash = try RunCodec.apartPayload(of: run.encoded), try state.store.intactPayload(hash) == nil else {
      return nil
    }
    guard let key = state.staged.whole(hash, in: partition) else { throw DamagedLog("a payload is not there any more") }
    // It may have waited for long, and what waits has no sum.
    let bytes = try state.store.stagedBytes(key)
    guard Digest.of(bytes, state.identity.cryptography.hash) == hash else {
      try removeShare(key)
      throw DamagedLog("a payload that waited is not as it came")
    }
    return ApartPayload(hash: hash, bytes: bytes[...])
  }

  /// What the run writes was left as it was if something moved meanwhile. It is set aside in the transaction that puts the run back, so
  /// that it is made anew also behind a crash.
  private func owedDocuments(
    of run: IncomingRun, _ payload: ApartPayload?, in partition: PartitionID
  ) throws -> [DocumentKey] {
    guard state.owesDocuments else { return [] }
    return try RunReader(state.identity).documents(writtenBy: Array(run.encoded), in: partition) { hash in
      try payload.map { Array($0.bytes) } ?? state.store.largePayload(hash)
    }.sorted()
  }

  /// The context of a run that is the one that was written: memory, what follows it in the log, or the end of the chain has its
  /// hash, which stands for all that went before. Nil where that cannot be told yet, or it is another.
  private func same(
    _ arrived: IncomingRun, as run: DamagedRun, _ chain: DamagedRuns.Chain
  ) throws -> VersionVector? {
    guard case .full(let context) = arrived.context, arrived.signer != nil, let end = arrived.hashes.last,
      isKnown(arrived, in: chain.partition),
      RunRecord.digest(of: context, state.identity.cryptography.hash) == arrived.contextDigest
    else {
      state.damagedRuns.drop(run)
      return nil
    }
    guard let log = state.mesh.partitions[chain.partition]?.log else { return nil }
    let trunk = log.trunk(of: chain.replica)
    let following = following(chain)
    // Only its payload may be damaged.
    if let body = try following.intactBody(of: run) {
      if body[...] == arrived.encoded { return context }
      state.damagedRuns.drop(run)
      return nil
    }
    // One that lies whole in another place is of another branch, where there may be several.
    let mayBeForked = log.forkPoints[chain.replica] != nil || log.incompleteChains.contains(chain.replica)
    guard try !(mayBeForked && following.holds(arrived.encoded, endingAt: run.last)) else {
      state.damagedRuns.drop(run)
      return nil
    }
    // Memory knows it by its hash.
    if run.last > trunk.sequence { return context }
    if run.last == trunk.sequence, end == trunk.hash { return context }
    let (known, unread) = try following.hashes(behind: run.last)
    if run.last < trunk.sequence, known.contains(end) { return context }
    if known.isEmpty, let unread {
      state.damagedRuns.note(unread, in: chain.partition)
    } else {
      state.damagedRuns.drop(run)
    }
    return nil
  }

  /// - Parameter cameAnew: false where the disk gives it again by itself.
  func noteMended(_ run: DamagedRun, _ chain: DamagedRuns.Chain, cameAnew: Bool = true) {
    state.damagedRuns.noteMended(run, chain, cameAnew: cameAnew)
    state.scrub.noteMended(run, state.clock.now)
    mended[chain.partition, default: []].insert(chain.replica)
    journal.note(
      .notice,
      cameAnew ? "a run of the log that was damaged came anew" : "a run of the log that was damaged reads again",
      ["run": .text("\(run)"), "partition": .text(state.name(chain.partition))])
  }

  /// All that waited for runs that were mended goes on.
  func goOnBehindMended() {
    while let (partition, replicas) = mended.min(by: { $0.key < $1.key }) {
      mended[partition] = nil
      tellMended(replicas, storedAnew(of: replicas, in: partition), in: partition)
      mendQuarantined(in: partition)
    }
  }

  /// What is stored of those chains that were incomplete.
  private func storedAnew(of replicas: Set<ReplicaID>, in id: PartitionID) -> [StoredHeaders] {
    guard let partition = state.mesh.partitions[id] else { return [] }
    let reader = RunReader(state.identity)
    return partition.log.incompleteChains.intersection(replicas).sorted().compactMap { replica in
      let chain = ChainIdentity(fleet: state.identity.fleet, partition: id, replica: replica)
      return attempt(nil) {
        let (runs, unread) = try reader.headers(
          of: chain, after: partition.log.trunk(of: replica).sequence, partition.name, state.mesh.authority,
          in: state.store)
        for run in unread.compactMap(\.runAtFault) { state.damagedRuns.note(run, in: id) }
        return StoredHeaders(replica: replica, runs: runs, isWhole: unread.isEmpty)
      }
    }
  }
}
