// What is held above its chain's limit, for an admin to let it count. Nobody announces it; it is shown as forks are.
//
// A device that may not carry a partition any more, because it was ended or its grant lowered while it was away, hands over
// what it wrote meanwhile: of its own chains alone, to who may carry the partition. It hears nothing of it in return.
extension Mesh {
  /// Changes above its limit that are taken of one chain: who knows of the limit writes nothing more, and who does not may
  /// have been away for long.
  static let handOverLimit: UInt64 = 10_000

  /// `author` may show this chain of its own to `other`, though it may not carry the partition.
  private func handsOver(_ author: PublicKey, _ replica: ReplicaID, to other: PublicKey, _ name: PartitionName) -> Bool
  {
    ledger.authority.author(of: replica) == author && !ledger.authority.isCompromised(author)
      && ledger.authority.level(of: author, in: name) < .carry && ledger.authority.level(of: other, in: name) >= .carry
  }

  // MARK: The author

  /// Begins to show what is held of own chains in partitions that this device may not carry any more.
  /// Once on a session, when the first comparison is through: before that the peer may not be live.
  mutating func offerHeldWork(_ id: SessionID, _ step: inout Step) {
    guard sessions[id]?.mayOfferHeldWork == false else { return }
    sessions[id]?.mayOfferHeldWork = true
    beginHoldings(id, &step)
    for partition in ledger.partitions.keys.sorted() { offerHeldWork(id, partition, &step) }
  }

  func offerHeldWork(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let session = sessions[id], session.mayOfferHeldWork, let state = ledger.partitions[partition] else { return }
    for (replica, _) in state.log.heldAbove.sorted where offers(replica, state.name, session) {
      step.emit(.loadChain(partition, replica, from: 1, .handOver(id, peer: nil)))
    }
  }

  private func offers(_ replica: ReplicaID, _ name: PartitionName, _ session: PeerSession) -> Bool {
    session.passage.rank(ledger.id(of: name), name) != nil
      && handsOver(local.device, replica, to: session.peer, name)
  }

  // MARK: Who takes it

  /// The peer may show this chain of its own here, though it may not carry the partition.
  func takesHeldWork(_ session: PeerSession, _ replica: ReplicaID, _ id: PartitionID, _ name: PartitionName) -> Bool {
    session.interest.wants(id, name: name) && handsOver(session.peer, replica, to: local.device, name)
  }

  /// All of these runs are the peer's own, and not far above their limits.
  func takesHeldWork(_ session: PeerSession, _ runs: [IncomingRun], _ id: PartitionID, _ name: PartitionName) -> Bool {
    runs.allSatisfy { run in
      let bound = ledger.authority.bound(of: run.replica, in: name).sequence
      return takesHeldWork(session, run.replica, id, name)
        && (run.first <= bound || run.first - bound <= Mesh.handOverLimit)
    }
  }

  /// A piece ahead of evidence of such a chain. Answers whether it is one.
  mutating func takeHandedOver(
    _ id: SessionID, _ piece: PayloadPiece, _ partition: PartitionID, _ step: inout Step
  ) -> Bool {
    guard let session = sessions[id], piece.stream == PayloadPiece.evidence, takesPieces(session, partition, piece.name)
    else { return false }
    // Only for this: the partition has no stream on this session.
    guard case .taken? = sessions[id]?.arrivingHandedOver.take(piece, on: nil) else { return true }
    step.emit(.stage(id, StagedKey(device: session.device, partition: partition, hash: piece.hash), piece))
    return true
  }

  private func takesPieces(_ session: PeerSession, _ id: PartitionID, _ name: PartitionName) -> Bool {
    session.interest.wants(id, name: name) && ledger.authority.level(of: session.peer, in: name) < .carry
      && !ledger.authority.isCompromised(session.peer) && ledger.authority.level(of: local.device, in: name) >= .carry
  }

  /// Of a chain that its author shows, and that is not taken yet: nothing allows its runs by the statements that are here,
  /// or nobody here wants the partition. It is offered once on a session, and no stream brings it.
  mutating func noteHandedOverEarly(_ replica: ReplicaID, _ id: SessionID, _ name: PartitionName) {
    guard let session = sessions[id], session.handedOverEarly.count < HandedOverChain.earlyLimit,
      handsOver(session.peer, replica, to: local.device, name)
    else { return }
    sessions[id]?.handedOverEarly.insert(HandedOverChain(name: name, replica: replica))
  }

  /// Statements may allow it now, or it has come to be wanted: its author is told how much of it is here, and shows the
  /// rest.
  mutating func askForHandedOverEarly(_ step: inout Step) {
    for id in sessions.keys.sorted() {
      guard let session = sessions[id], !session.handedOverEarly.isEmpty else { continue }
      for chain in session.handedOverEarly.sorted() {
        let partition = ledger.id(of: chain.name)
        guard takesHeldWork(session, chain.replica, partition, chain.name) else { continue }
        sessions[id]?.handedOverEarly.remove(chain)
        let asked = ChainProbe(name: chain.name, replica: chain.replica, positions: [], wantsReply: true)
        step.emit(.loadChain(partition, chain.replica, from: 1, .handOver(id, peer: asked)))
      }
    }
  }

  // MARK: Both

  /// A probe of a partition that is not in common scope. Answers whether it belongs here.
  mutating func receiveHandOver(
    _ session: PeerSession, _ probe: ChainProbe, _ partition: PartitionID, _ step: inout Step
  ) -> Bool {
    let isOffered = probe.wantsReply && takesHeldWork(session, probe.replica, partition, probe.name)
    if probe.wantsReply, !isOffered { noteHandedOverEarly(probe.replica, session.id, probe.name) }
    guard isOffered || !probe.wantsReply && offers(probe.replica, probe.name, session),
      session.answeredHandOvers < ForkSearch.answeredProbeLimit * max(1, ledger.partitions.count)
    else { return false }
    sessions[session.id]?.answeredHandOvers += 1
    step.emit(.loadChain(partition, probe.replica, from: 1, .handOver(session.id, peer: probe)))
    return true
  }

  mutating func continueHandOver(
    _ id: SessionID, _ partition: PartitionID, _ replica: ReplicaID, _ runs: [RunSummary], _ peer: ChainProbe?,
    _ step: inout Step
  ) {
    guard let session = sessions[id], let name = peer?.name ?? ledger.partitions[partition]?.name else { return }
    func say(wantsReply: Bool) {
      let positions = Mesh.probePositions(of: runs)
      let probe = ChainProbe(name: name, replica: replica, positions: positions, wantsReply: wantsReply)
      step.emit(.send(id, .chainProbe(probe)))
    }
    guard let peer else { return say(wantsReply: true) }
    guard !peer.wantsReply else { return say(wantsReply: false) }
    guard offers(replica, name, session), let first = Mesh.firstLacking(of: runs, peer.positions) else { return }
    step.emit(.loadEvidence(id, partition, replica, above: first - 1))
  }

  /// Evidence of the chain goes to this session.
  func mayShow(_ session: PeerSession, _ replica: ReplicaID, _ state: PartitionState) -> Bool {
    isInScope(session, state) || offers(replica, state.name, session)
  }

  // MARK: From one to all

  /// News for everyone who follows the partition.
  mutating func spreadHeld(_ replicas: Set<ReplicaID>, _ partition: PartitionID, _ step: inout Step) {
    for replica in replicas.sorted() where ledger.partitions[partition]?.log.heldAbove[replica] != nil {
      spreadFork(replica, partition, &step)
    }
  }

  /// Shown to the peer, where the partition differs and perhaps only in this.
  mutating func showHeld(_ id: SessionID, _ partition: PartitionID, _ step: inout Step) {
    guard let session = sessions[id], let state = ledger.partitions[partition], isInScope(session, state) else {
      return
    }
    for (replica, _) in state.log.heldAbove.sorted {
      let opened = sessions[id]?.streams[partition] ?? newStream(session, partition, state.name, step.now)
      sessions[id]?.streams[partition] = opened
      sessions[id]?.streams[partition]?.forks.forget(replica)
      searchFork(id, partition, replica, &step)
    }
  }
}

/// A chain in a partition that is not in the common scope.
struct HandedOverChain: Hashable, Comparable, Sendable {
  let name: PartitionName
  let replica: ReplicaID

  /// Of one session; what is beyond is shown on the next.
  static let earlyLimit = 256

  static func < (a: HandedOverChain, b: HandedOverChain) -> Bool { (a.name, a.replica) < (b.name, b.replica) }
}
