// Two histories of one replica: seen by tips, searched by probes, shown by signed runs (rules C5, C6, C20).
extension Mesh {
  /// Equal numbers with different tips are two histories; more of this node's own chain than it holds is a lost past.
  mutating func checkPeerVector(_ id: SessionID, _ partition: PartitionID, _ vector: VersionVector, _ step: inout Step)
  {
    guard let state = partitions[partition] else { return }
    for (replica, position) in vector.sorted {
      let mine = state.log.received[replica]
      if replica == ownReplica,
        RenewalEvidence.cause(
          peer: position, own: mine?.sequence ?? 0, tip: mine?.sequence == position.sequence ? mine?.tip : position.tip)
          != nil
      {
        step.emit(.renewReplica(state.name))
      }
      if state.log.judge(position, of: replica, stored: { _, _ in position.tip }) == .differs {
        probe(id, partition, replica, wantsReply: true, &step)
      }
    }
  }

  /// Once per stream: both sides then show what they hold above the last common position.
  mutating func probe(
    _ id: SessionID, _ partition: PartitionID, _ replica: ReplicaID, wantsReply: Bool, _ step: inout Step
  ) {
    guard sessions[id]?.streams[partition]?.probed.insert(replica).inserted == true else { return }
    step.emit(.note(id, .forkSeen(replica)))
    step.emit(.loadChain(partition, replica, from: 1, .probe(id, wantsReply: wantsReply)))
  }

  mutating func receiveProbe(_ id: SessionID, _ probe: ChainProbe, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let partition = probe.name.id(fleet: local.fleet, hash: cryptography.hash)
    guard isInScope(session, partition, probe.name), partitions[partition] != nil,
      let answered = session.streams[partition]?.answeredProbes, answered < PeerStream.answeredProbeLimit
    else { return }
    sessions[id]?.streams[partition]?.answeredProbes = answered + 1
    step.emit(.loadChain(partition, probe.replica, from: 1, .answer(id, probe)))
  }

  mutating func chainLoaded(
    _ partition: PartitionID, _ replica: ReplicaID, _ runs: [RunSummary], _ purpose: ChainPurpose, _ step: inout Step
  ) {
    switch purpose {
    case .unfold(let request): unfold(partition, request, runs, &step)
    case .probe(let id, let wantsReply): sendProbe(id, partition, replica, runs, wantsReply: wantsReply, &step)
    case .answer(let id, let probe): answer(id, partition, probe, runs, &step)
    }
  }

  private func sendProbe(
    _ id: SessionID, _ partition: PartitionID, _ replica: ReplicaID, _ runs: [RunSummary], wantsReply: Bool,
    _ step: inout Step
  ) {
    guard let name = partitions[partition]?.name, sessions[id] != nil else { return }
    let probe = ChainProbe(
      name: name, replica: replica, positions: Mesh.probePositions(of: runs), wantsReply: wantsReply)
    step.emit(.send(id, .chainProbe(probe)))
  }

  /// Ends of runs: the last sixteen, then ever wider apart, ascending.
  static func probePositions(of runs: [RunSummary]) -> [ChainPosition] {
    var positions: [ChainPosition] = []
    var (index, stride) = (runs.count - 1, 1)
    while index >= 0, positions.count < ChainProbe.positionLimit {
      if let tip = runs[index].hashes.last?.tip {
        positions.append(ChainPosition(sequence: runs[index].last, tip: tip))
      }
      if positions.count >= 16 { stride *= 2 }
      index -= stride
    }
    return positions.reversed()
  }

  private mutating func answer(
    _ id: SessionID, _ partition: PartitionID, _ probe: ChainProbe, _ runs: [RunSummary], _ step: inout Step
  ) {
    guard sessions[id] != nil else { return }
    let common = probe.positions.last { position in
      runs.contains { run in
        position.sequence >= run.first && position.sequence <= run.last
          && run.hashes[Int(position.sequence - run.first)].tip == position.tip
      }
    }
    // Of a chain that has forked here the asker may lack a branch even where the end of its own is known.
    let forkPoint = partitions[partition]?.log.forkPoints[probe.replica] ?? .max
    step.emit(.loadEvidence(id, partition, probe.replica, above: min(common?.sequence ?? 0, forkPoint)))
    if probe.wantsReply {
      sendProbe(id, partition, probe.replica, runs, wantsReply: false, &step)
      sessions[id]?.streams[partition]?.probed.insert(probe.replica)
    }
  }

  mutating func evidenceLoaded(
    _ id: SessionID, _ partition: PartitionID, _ runs: [LoggedRun], _ step: inout Step
  ) {
    guard let name = partitions[partition]?.name, sessions[id] != nil else { return }
    for run in runs {
      let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
      step.emit(.send(id, .runs(RunBatch(name: name, stream: 0, entries: [entry], isForkEvidence: true))))
    }
  }

  // MARK: Headers that memory does not hold

  /// Parks what cannot be judged until the chain's stored headers are here. Everything later of this partition waits.
  mutating func park(
    _ batch: ParkedRuns, _ partition: PartitionID, until requests: [HeaderRequest], _ step: inout Step
  ) {
    partitions[partition]?.parked.insert(batch, at: 0)
    partitions[partition]?.awaitedHeaders += requests.count
    for request in requests {
      step.emit(.loadChain(partition, request.replica, from: request.sequences.lowerBound, .unfold(request)))
    }
  }

  private mutating func unfold(
    _ partition: PartitionID, _ request: HeaderRequest, _ runs: [RunSummary], _ step: inout Step
  ) {
    guard let state = partitions[partition] else { return }
    do {
      try partitions[partition]?.log.unfold(request, runs: runs)
    } catch {
      step.emit(.damaged(partition, request.replica))
    }
    partitions[partition]?.awaitedHeaders = max(0, state.awaitedHeaders - 1)
    guard partitions[partition]?.awaitedHeaders == 0 else { return }
    if state.awaitsAuthority { adoptAuthority(partition, &step) }
    // One of them may ask for headers again: then the rest waits behind it.
    while partitions[partition]?.awaitedHeaders == 0, let batch = partitions[partition]?.parked.first {
      partitions[partition]?.parked.removeFirst()
      process(batch, partition, &step)
    }
  }

  /// New statements may move what counts of every chain.
  mutating func reconsiderAcceptance(_ step: inout Step) {
    for partition in partitions.keys.sorted() { adoptAuthority(partition, &step) }
  }

  private mutating func adoptAuthority(_ partition: PartitionID, _ step: inout Step) {
    partitions[partition]?.awaitsAuthority = false
    switch partitions[partition]?.log.adopt(authority) {
    case .done(let change): if change != LogChange() { step.emit(.rebuild(partition, change)) }
    case .needsHeaders(let requests):
      partitions[partition]?.awaitsAuthority = true
      partitions[partition]?.awaitedHeaders += requests.count
      for request in requests {
        step.emit(.loadChain(partition, request.replica, from: request.sequences.lowerBound, .unfold(request)))
      }
    case .ignored, nil: break
    }
  }
}

/// Why a chain's stored headers are read.
package enum ChainPurpose: Sendable {
  case unfold(HeaderRequest)
  case probe(SessionID, wantsReply: Bool)
  case answer(SessionID, ChainProbe)
}

/// Runs of one message, with their contexts resolved, that wait for headers.
struct ParkedRuns: Sendable {
  let session: SessionID
  let runs: ArraySlice<DeliveredRun>
  let isForkEvidence: Bool
}
