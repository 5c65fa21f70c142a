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

  /// Runs that were asked for go into their places. Answers those that are for the core: it has all others.
  func mendLog(with runs: [IncomingRun], of batch: RunBatch) -> (rest: [IncomingRun], hasMended: Bool) {
    guard batch.isForkEvidence, !state.damagedRuns.isEmpty else { return (runs, false) }
    let partition = state.identity.id(of: batch.name)
    let before = state.damagedRuns.mendedCount
    var rest: [IncomingRun] = []
    for run in runs {
      let chain = DamagedRuns.Chain(partition: partition, replica: run.replica)
      guard state.damagedRuns.isAsked(chain) else {
        rest.append(run)
        continue
      }
      state.damagedRuns.take(run, in: partition)
      putBack(chain)
      let received = state.mesh.partitions[partition]?.log.received.sequence(of: run.replica) ?? 0
      if run.first + UInt64(clamping: run.hashes.count) - 1 > received { rest.append(run) }
    }
    return (rest, state.damagedRuns.mendedCount > before)
  }

  /// One that is put back tells whether the one before it is the same.
  private func putBack(_ chain: DamagedRuns.Chain) {
    for (run, arrived) in state.damagedRuns.candidates(chain) {
      do {
        guard let context = try same(arrived, as: run, chain) else { continue }
        let identity = ChainIdentity(
          fleet: state.identity.fleet, partition: chain.partition, replica: chain.replica)
        let whole = AppendedRun(first: run.first, last: run.last, context: context, body: arrived.encoded)
        let owed = try owedDocuments(of: arrived, in: chain.partition)
        try store { transaction in
          try transaction.replaceRun(at: run.arrival, with: whole, of: identity)
          for key in owed { try transaction.setAside(key, in: chain.partition) }
        }
        state.damagedRuns.noteMended(run, chain)
        state.takeSetAside(owed.map { (chain.partition, $0) })
        journal.note(
          .notice, "a run of the log that was damaged came anew",
          ["run": .text("\(run)"), "partition": .text(state.name(chain.partition))])
      } catch {
        state.damagedRuns.drop(run)
        journal.note(.error, "a damaged run could not be put right", ["reason": .text("\(error)")])
      }
    }
  }

  /// What the run writes was left as it was if something moved meanwhile. It is set aside in the transaction that puts the run back, so
  /// that it is made anew also behind a crash.
  private func owedDocuments(of run: IncomingRun, in partition: PartitionID) throws -> [DocumentKey] {
    guard state.owesDocuments else { return [] }
    return try RunReader(state.identity).documents(
      writtenBy: Array(run.encoded), in: partition, apart: state.store.largePayload
    ).sorted()
  }

  /// The context of a run that is the one that was written: what follows it in the log, or the end of the chain, has its hash,
  /// which stands for all that went before. Nil where that cannot be told yet, or it is another.
  private func same(
    _ arrived: IncomingRun, as run: DamagedRun, _ chain: DamagedRuns.Chain
  ) throws -> VersionVector? {
    guard case .full(let context) = arrived.context, arrived.signer != nil, let end = arrived.hashes.last,
      RunRecord.digest(of: context, state.identity.cryptography.hash) == arrived.contextDigest
    else {
      state.damagedRuns.drop(run)
      return nil
    }
    if let received = state.mesh.partitions[chain.partition]?.log.received[chain.replica], received.sequence == run.last
    {
      if received.tip == end.tip { return context }
      state.damagedRuns.drop(run)
      return nil
    }
    let identity = ChainIdentity(fleet: state.identity.fleet, partition: chain.partition, replica: chain.replica)
    do {
      // Their bodies alone: the context of what follows may be written as what differs from that of the damaged run.
      let following = try state.store.places(of: identity, after: run.last, limit: 1)
        .compactMap { try state.store.body(at: $0, of: identity) }
      if try following.contains(where: { try RunCodec.hashBefore(of: $0[...]) == end }) { return context }
      state.damagedRuns.drop(run)
      return nil
    } catch let failure as any StoreFailure where failure.isOfOneRow {
      if let next = failure.runAtFault { state.damagedRuns.note(next, in: chain.partition) }
      return nil
    }
  }
}
