// What is held above its chain's limit, for an admin to let it count. Nobody announces it; it is shown as forks are.
//
// A device that may not carry a partition any more, because it was ended or its grant lowered while it was away, hands over
// what it wrote meanwhile: of its own chains alone, to who may carry the partition. It hears nothing of it in return. Of a
// chain of which those who ended the device had nothing, what it hands over may count: no limit was set to it then.
extension PeerSession {
  /// Changes above its limit that are taken of one chain: who knows of the limit writes nothing more, and who does not may
  /// have been away for long.
  static let handOverLimit: UInt64 = 10_000

  // MARK: The author

  /// Begins to show what nobody else may have of own chains, in partitions that this device may not carry any more. Once on a
  /// session, when the first comparison is through: before that the peer may not be live.
  mutating func offerHeldWork(_ ledger: Ledger, _ step: inout Step) {
    guard live?.handOvers.mayOffer == false else { return }
    live?.handOvers.mayOffer = true
    for partition in ledger.partitions.keys.sorted() { offerHeldWork(partition, ledger, &step) }
  }

  func offerHeldWork(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard live?.handOvers.mayOffer == true, let state = ledger.partitions[partition],
      ledger.authority.level(of: ledger.device, in: state.name) < .carry
    else { return }
    for (replica, _) in state.log.received.sorted where offers(replica, state.name, ledger) {
      let isUnbounded = ledger.authority.bound(of: replica, in: state.name).sequence == .max
      guard isUnbounded || state.log.heldAbove[replica] != nil else { continue }
      step.emit(.loadChain(partition, replica, from: 1, .handOver(id, peer: nil)))
    }
  }

  func offers(_ replica: ReplicaID, _ name: PartitionName, _ ledger: Ledger) -> Bool {
    passage.rank(ledger.id(of: name), name) != nil && ledger.handsOver(ledger.device, replica, to: peer, name)
  }

  // MARK: Who takes it

  /// The peer may show this chain of its own here, though it may not carry the partition.
  func takesHeldWork(_ replica: ReplicaID, _ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger) -> Bool {
    interest.wants(partition, name: name) && ledger.handsOver(peer, replica, to: ledger.device, name)
  }

  /// All of these runs are the peer's own, and not far above their limits.
  func takesHeldWork(_ runs: [IncomingRun], _ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger) -> Bool {
    runs.allSatisfy { run in
      let bound = ledger.authority.bound(of: run.replica, in: name).sequence
      return takesHeldWork(run.replica, partition, name, ledger)
        && (run.first <= bound || run.first - bound <= PeerSession.handOverLimit)
    }
  }

  /// A piece ahead of evidence of such a chain, of whose partition there is no stream on this session. Answers whether it is
  /// one.
  mutating func takesHandedOver(
    _ piece: PayloadPiece, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step
  ) -> Bool {
    guard piece.stream == PayloadPiece.evidence, takesPieces(partition, piece.name, ledger) else { return false }
    guard case .taken? = live?.handOvers.arriving.take(piece, on: nil) else { return true }
    step.emit(.stage(id, StagedKey(device: device, partition: partition, hash: piece.hash), piece))
    return true
  }

  private func takesPieces(_ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger) -> Bool {
    interest.wants(partition, name: name) && ledger.authority.level(of: peer, in: name) < .carry
      && !ledger.authority.isCompromised(peer) && ledger.authority.level(of: ledger.device, in: name) >= .carry
  }

  /// Of a chain that its author shows, and that is not taken yet: nothing allows its runs by the statements that are here, or
  /// nobody here wants the partition. It is offered once on a session, and no stream brings it. What is known of anybody's
  /// rights may be half of the truth, on either side of it: statements come one after the other.
  mutating func noteHandedOverEarly(_ replica: ReplicaID, _ name: PartitionName, _ ledger: Ledger) {
    guard ledger.authority.author(of: replica) == peer, !ledger.authority.isCompromised(peer) else { return }
    live?.handOvers.noteEarly(HandedOverChain(name: name, replica: replica))
  }

  /// Of runs that are not taken. What is too far above its limit is not asked for again.
  mutating func noteHandedOverEarly(
    _ runs: [IncomingRun], _ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger
  ) {
    for replica in Set(runs.map(\.replica)) where !takesHeldWork(replica, partition, name, ledger) {
      noteHandedOverEarly(replica, name, ledger)
    }
  }

  /// Statements may allow it now, or it has come to be wanted: its author is told how much of it is here, and shows the
  /// rest.
  mutating func askForHandedOverEarly(_ ledger: Ledger, _ step: inout Step) {
    guard let early = live?.handOvers.early, !early.isEmpty else { return }
    for chain in early.sorted() {
      let partition = ledger.id(of: chain.name)
      guard takesHeldWork(chain.replica, partition, chain.name, ledger) else { continue }
      live?.handOvers.takeEarly(chain)
      let asked = ChainProbe(name: chain.name, replica: chain.replica, positions: [], wantsReply: true)
      step.emit(.loadChain(partition, chain.replica, from: 1, .handOver(id, peer: asked)))
    }
  }

  // MARK: Both

  /// A probe of a partition that is not in common scope. Answers whether it belongs here.
  mutating func takesHandOver(
    _ probe: ChainProbe, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step
  ) -> Bool {
    let isOffered = probe.wantsReply && takesHeldWork(probe.replica, partition, probe.name, ledger)
    if probe.wantsReply, !isOffered { noteHandedOverEarly(probe.replica, probe.name, ledger) }
    guard isOffered || !probe.wantsReply && offers(probe.replica, probe.name, ledger),
      live?.handOvers.takesProbe(ledger.partitions.count) == true
    else { return false }
    step.emit(.loadChain(partition, probe.replica, from: 1, .handOver(id, peer: probe)))
    return true
  }

  /// `probe`: what the other side said, if it has.
  func continueHandOver(
    _ probe: ChainProbe?, _ partition: PartitionID, _ replica: ReplicaID, _ runs: [RunSummary], _ ledger: Ledger,
    _ step: inout Step
  ) {
    guard let name = probe?.name ?? ledger.partitions[partition]?.name else { return }
    guard let probe, !probe.wantsReply else {
      let own = ChainProbe(name: name, replica: replica, runs: runs, wantsReply: probe == nil)
      return step.emit(.send(id, .chainProbe(own)))
    }
    guard offers(replica, name, ledger), let first = probe.firstLacking(of: runs) else { return }
    step.emit(.loadEvidence(id, partition, replica, above: first - 1, isRest: false))
  }
}

extension Ledger {
  /// `author` may show this chain of its own to `other`, though it may not carry the partition.
  fileprivate func handsOver(
    _ author: PublicKey, _ replica: ReplicaID, to other: PublicKey, _ name: PartitionName
  ) -> Bool {
    authority.author(of: replica) == author && !authority.isCompromised(author)
      && authority.level(of: author, in: name) < .carry && authority.level(of: other, in: name) >= .carry
  }
}
